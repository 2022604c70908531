#include "agent/session/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/exec/cgroup.h"

namespace labrack::session {
namespace {

Result<Descriptor> OpenLog(const worker::TrialFiles& files) {
  Descriptor log(open(files.worker_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return FailErrno("open", files.worker_log().string());
  return log;
}

// By the directory's own number, since several agents of one host may run trials of one name.
std::string CgroupName(const worker::TrialFiles& files) {
  struct stat facts{};
  if (stat(files.directory().c_str(), &facts) != 0) return {};
  return "labrack-" + files.directory().filename().string() + "-" + std::to_string(facts.st_dev) +
         "-" + std::to_string(facts.st_ino);
}

// Written down before it is used, so that another agent finds what is in it. The family's marks are
// enough where there is none.
std::optional<exec::Cgroup> MakeCgroup(const worker::TrialFiles& files) {
  Result<exec::Cgroup> made = exec::Cgroup::Make(CgroupName(files));
  if (!made) return std::nullopt;
  if (worker::WriteFile(files.cgroup(), made->path().string(), /*durable=*/false)) return *made;
  (void)made->Remove();
  return std::nullopt;
}

std::optional<exec::Cgroup> FindCgroup(const worker::TrialFiles& files) {
  constexpr std::size_t kPathMax = 4096;
  const Result<std::string> path = worker::ReadFile(files.cgroup(), kPathMax);
  if (!path) return std::nullopt;
  return exec::Cgroup::Find(*path, CgroupName(files));
}

// A worker that reached its own end has ended what it had started; looking for more costs a look at
// every process of the host.
bool EndedInOrder(const exec::Child& child) {
  const std::optional<int> code = child.PeekExitCode();
  return code == worker::kExitOk || code == worker::kExitNotOk;
}

void KillSession(int session) {
  exec::KillFamily({.mark = "", .session = session, .above = std::nullopt});
}

}  // namespace

std::string LastWords(const worker::TrialFiles& files) {
  constexpr std::size_t kLogReadMax = 1 << 20;
  constexpr std::size_t kLineMax = 500;
  constexpr std::string_view kName = "labrack-worker: ";
  const Result<std::string> log = worker::ReadFile(files.worker_log(), kLogReadMax);
  const std::size_t at = log ? log->rfind(kName) : std::string::npos;
  if (at == std::string::npos) return {};
  const std::string line = log->substr(at + kName.size(), kLineMax);
  return line.substr(0, line.find('\n'));
}

std::vector<exec::ProcessFacts> KillTrial(const worker::TrialFiles& files) {
  const std::optional<exec::Cgroup> group = FindCgroup(files);
  if (group) group->Kill();
  std::vector<exec::ProcessFacts> left = exec::KillFamily(exec::TrialFamily(files.mark()));
  if (left.empty() && group && group->populated()) {
    left.push_back({.name = "processes of " + group->path().string()});
  }
  return left;
}

void RemoveCgroup(const worker::TrialFiles& files) {
  if (const std::optional<exec::Cgroup> group = FindCgroup(files)) (void)group->Remove();
}

Result<WorkerProcess> WorkerProcess::Spawn(const worker::TrialFiles& files, exec::Command command,
                                           exec::SpawnOptions options) {
  Result<Descriptor> log = OpenLog(files);
  if (!log) return std::unexpected(log.error());
  options.new_session = true;
  options.output_fd = log->get();
  options.errors_fd = log->get();
  Result<exec::Child> child = exec::Child::Spawn(command, options);
  if (!child) return std::unexpected(child.error());
  WorkerProcess process(files);
  process.child_ = *std::move(child);
  return process;
}

Result<WorkerProcess> WorkerProcess::Start(const std::filesystem::path& program,
                                           const worker::TrialFiles& files, bool own_cgroup) {
  // Locked before the fork, so that it is never seen unlocked while the worker lives.
  Result<Descriptor> lock = files.Lock();
  if (!lock) return std::unexpected(lock.error());
  exec::Command command;
  command.words = {program.string(),           "--spec",    files.spec().string(),      "--dir",
                   files.directory().string(), "--lock-fd", std::to_string(lock->get())};
  command.environment[exec::kTrialMark] = files.mark();
  exec::SpawnOptions options;
  options.inherited_fds = {lock->get()};
  Descriptor group_processes;
  const std::optional<exec::Cgroup> group = own_cgroup ? MakeCgroup(files) : std::nullopt;
  if (group) {
    if (Result<Descriptor> opened = group->OpenProcesses()) group_processes = *std::move(opened);
    options.cgroup_fd = group_processes.get();
  }
  return Spawn(files, std::move(command), std::move(options));
}

Result<WorkerProcess> WorkerProcess::StartUndo(const std::filesystem::path& program,
                                               const worker::TrialFiles& files) {
  exec::Command command;
  command.words = {program.string(), "--undo", files.directory().string()};
  return Spawn(files, std::move(command), {});
}

Result<WorkerProcess::Holder> WorkerProcess::FindHolder(const worker::TrialFiles& files) {
  const Result<Descriptor> lock = files.Lock();
  if (lock || lock.error().code() == Errc::kNotFound) return Holder::kNobody;
  if (lock.error().code() != Errc::kBusy) return std::unexpected(lock.error());
  const std::optional<worker::LockHolder> holder = files.ReadHolder();
  // A worker that has just been started has not said its number yet.
  return holder && holder->undoes ? Holder::kUndo : Holder::kWorker;
}

int WorkerProcess::poll_fd() const { return child_ ? child_->pidfd() : pidfd_.get(); }

// Opens the descriptor first and looks then: whoever has the number at that time keeps it.
void WorkerProcess::Identify() {
  const std::optional<worker::LockHolder> holder = files_.ReadHolder();
  if (!holder || holder->undoes) return;
  Descriptor opened(static_cast<int>(syscall(SYS_pidfd_open, holder->pid, 0U)));
  const std::optional<worker::LockHolder> still = files_.ReadHolder();
  if (!opened.valid() || !still || still->pid != holder->pid) return;
  pidfd_ = std::move(opened);
  found_pid_ = holder->pid;
}

std::optional<WorkerProcess::End> WorkerProcess::Poll() {
  if (child_) {
    // What it has left running goes with it; before it is reaped, as long as the number is its own.
    if (child_->HasEnded() && !EndedInOrder(*child_)) KillSession(child_->pid());
    Result<std::optional<exec::ExitStatus>> status = child_->Poll();
    if (!status) return End{.exit_code = -1, .how = status.error().ToString()};
    if (!*status) return std::nullopt;
    return End{.exit_code = (*status)->exit_code, .how = (*status)->Describe()};
  }
  if (!pidfd_.valid()) Identify();
  const Result<Holder> holder = FindHolder(files_);
  if (!holder || *holder == Holder::kWorker) return std::nullopt;
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
  if (child_) {
    KillSession(child_->pid());
    return;
  }
  if (Poll() || !pidfd_.valid()) return;
  syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0U);
}

std::string WorkerProcess::Name() const {
  if (child_) return "labrack-worker (pid " + std::to_string(child_->pid()) + ")";
  if (found_pid_) return "labrack-worker (pid " + std::to_string(*found_pid_) + ")";
  return "labrack-worker";
}

}  // namespace labrack::session
