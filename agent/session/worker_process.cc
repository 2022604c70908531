#include "agent/session/worker_process.h"

#include <charconv>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace labrack::session {
namespace {

Result<Descriptor> OpenLog(const worker::TrialFiles& files) {
  Descriptor log(open(files.worker_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return FailErrno("open", files.worker_log().string());
  return log;
}

// The session that a process belongs to: the sixth word of its stat, behind the name in brackets,
// which may hold anything. nullopt: it has gone.
std::optional<int> SessionOf(const std::string& pid) {
  const Result<std::string> stat = worker::ReadFile("/proc/" + pid + "/stat", 4096);
  if (!stat) return std::nullopt;
  std::size_t at = stat->rfind(')');
  if (at == std::string::npos || at + 4 > stat->size()) return std::nullopt;
  if ((*stat)[at + 2] == 'Z') return std::nullopt;  // dead, not reaped
  // ") S ppid pgrp session ..."
  at += 3;
  int value = 0;
  for (int word = 0; word < 3; ++word) {
    at = stat->find_first_not_of(' ', at);
    if (at == std::string::npos) return std::nullopt;
    const auto [end, error] =
        std::from_chars(stat->data() + at, stat->data() + stat->size(), value);
    if (error != std::errc()) return std::nullopt;
    at = static_cast<std::size_t>(end - stat->data());
  }
  return value;
}

}  // namespace

std::size_t KillSession(int session) {
  // Processes may be made while we look; each round finds fewer, as the makers are dead.
  constexpr int kRoundsMax = 10;
  std::size_t killed = 0;
  for (int round = 0; round < kRoundsMax; ++round) {
    std::size_t found = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      int pid = 0;
      const auto [stop, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (bad != std::errc() || stop != name.data() + name.size()) continue;
      if (SessionOf(name) != session) continue;
      if (kill(pid, SIGKILL) == 0) ++found;
    }
    killed += found;
    if (found == 0) break;
    usleep(2000);
  }
  return killed;
}

Result<WorkerProcess> WorkerProcess::Start(const std::filesystem::path& program,
                                           const worker::TrialFiles& files) {
  WorkerProcess process(files);
  Result<Descriptor> log = OpenLog(files);
  if (!log) return std::unexpected(log.error());
  // Locked before the fork, so that it is never seen unlocked while the worker lives.
  Result<Descriptor> lock = files.Lock();
  if (!lock) return std::unexpected(lock.error());
  exec::Command command;
  command.words = {program.string(),           "--spec",    files.spec().string(),      "--dir",
                   files.directory().string(), "--lock-fd", std::to_string(lock->get())};
  exec::SpawnOptions options;
  options.new_session = true;
  options.output_fd = log->get();
  options.errors_fd = log->get();
  options.inherited_fds = {lock->get()};
  Result<exec::Child> child = exec::Child::Spawn(command, options);
  if (!child) return std::unexpected(child.error());
  process.child_ = *std::move(child);
  return process;
}

Result<WorkerProcess> WorkerProcess::StartUndo(const std::filesystem::path& program,
                                               const worker::TrialFiles& files) {
  WorkerProcess process(files);
  Result<Descriptor> log = OpenLog(files);
  if (!log) return std::unexpected(log.error());
  exec::Command command;
  command.words = {program.string(), "--undo", files.directory().string()};
  exec::SpawnOptions options;
  options.new_session = true;
  options.output_fd = log->get();
  options.errors_fd = log->get();
  Result<exec::Child> child = exec::Child::Spawn(command, options);
  if (!child) return std::unexpected(child.error());
  process.child_ = *std::move(child);
  return process;
}

Result<std::optional<WorkerProcess>> WorkerProcess::Find(const worker::TrialFiles& files) {
  const Result<Descriptor> lock = files.Lock();
  if (lock) return std::nullopt;
  if (lock.error().code() == Errc::kNotFound) return std::nullopt;
  if (lock.error().code() != Errc::kBusy) return std::unexpected(lock.error());
  return WorkerProcess(files);
}

int WorkerProcess::poll_fd() const { return child_ ? child_->pidfd() : pidfd_.get(); }

std::optional<int> WorkerProcess::pid() const {
  if (child_) return child_->pid();
  return files_.ReadPid();
}

std::optional<WorkerProcess::End> WorkerProcess::Poll() {
  if (child_) {
    // What it has left running goes with it; before it is reaped, as long as the number is its own.
    if (child_->HasEnded()) KillSession(child_->pid());
    Result<std::optional<exec::ExitStatus>> status = child_->Poll();
    if (!status) return End{.exit_code = -1, .how = status.error().ToString()};
    if (!*status) return std::nullopt;
    return End{.exit_code = (*status)->exit_code, .how = (*status)->Describe()};
  }
  if (!pidfd_.valid()) {
    // The number is right as long as the lock is held: its holder is the process that wrote it.
    const std::optional<int> number = pid();
    if (number) {
      pidfd_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, *number, 0U)));
    }
  }
  const Result<Descriptor> lock = files_.Lock();
  if (!lock && lock.error().code() == Errc::kBusy) return std::nullopt;
  if (const std::optional<int> number = pid()) KillSession(*number);
  return End{.exit_code = -1, .how = "it ended, and no agent was there to see how"};
}

void WorkerProcess::Terminate() {
  if (child_) {
    (void)child_->Signal(SIGTERM);
    return;
  }
  if (Poll() || !pidfd_.valid()) return;
  syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGTERM, nullptr, 0U);
}

void WorkerProcess::Kill() {
  const std::optional<int> session = pid();
  if (!session || (!child_ && Poll())) return;
  KillSession(*session);
}

}  // namespace labrack::session
