#include "controller/cli/agent_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <boost/process.hpp>
#include <boost/process/extend.hpp>
#include <fmt/format.h>

#include "controller/cli/output.h"
#include "storage/base/check.h"

namespace labrack::cli {
namespace {

namespace process = boost::process;

constexpr Nanoseconds kPollEvery = std::chrono::milliseconds(10);
constexpr std::size_t kLogTailLines = 15;
constexpr std::size_t kLogBytesMax = 64 << 20;

// Runs in the child between fork and exec. A group of its own keeps the terminal's Ctrl-C from it:
// we are told, and it ends when the run has been cleaned up. Boost's own descriptors, gRPC's and
// the catalog's must not live on in it.
struct PrepareChild : process::extend::handler {
  template <typename Executor>
  void on_exec_setup(Executor&) const {
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  }
};

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<AgentProcess>> AgentProcess::Start(const Options& options) {
  std::unique_ptr<AgentProcess> agent(new AgentProcess);
  agent->options_ = options;
  std::error_code error;
  const std::uintmax_t log_size = std::filesystem::file_size(options.log, error);
  agent->log_begin_ = error ? 0 : log_size;

  const Descriptor log(open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return FailErrno("open", options.log.string());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailErrno("pipe", options.name);
  const Descriptor child_input(ends[0]);
  agent->lifeline_ = Descriptor(ends[1]);

  try {
    process::child child(options.program.string(),
                         process::args({"--config", options.config.string()}),
                         process::posix::fd.bind(STDIN_FILENO, child_input.get()),
                         process::posix::fd.bind(STDOUT_FILENO, log.get()),
                         process::posix::fd.bind(STDERR_FILENO, log.get()), PrepareChild());
    agent->pid_ = child.id();
    // Waiting is ours: Boost's bounded wait swaps the handler of SIGCHLD of the whole process, and
    // its destructor kills and then blocks.
    child.detach();
  } catch (const process::process_error& failure) {
    return Fail(Errc::kUnavailable, options.program.string(),
                fmt::format("cannot be started: {}", failure.what()));
  }
  return agent;
}

AgentProcess::~AgentProcess() {
  AskToEnd();
  if (pid_ > 0 && !Ended()) {
    kill(-pid_, SIGKILL);
    WaitFor(kKillLimit);
  }
}

std::optional<std::string> AgentProcess::Ended() {
  if (ended_) return ended_;
  int status = 0;
  const pid_t got = waitpid(pid_, &status, WNOHANG);
  if (got == pid_) ended_ = HowItEnded(status);
  if (got < 0 && errno == ECHILD) ended_ = "already waited for";
  return ended_;
}

std::string AgentProcess::LogTail() const {
  const Result<std::string> whole = ReadWholeFile(options_.log.string(), kLogBytesMax);
  if (!whole) return "";
  std::string text = whole->size() > log_begin_ ? whole->substr(log_begin_) : "";
  while (text.ends_with('\n')) text.pop_back();
  std::size_t from = text.size();
  for (std::size_t lines = 0; lines < kLogTailLines && from != std::string::npos; ++lines) {
    if (from == 0) return text;
    from = text.rfind('\n', from - 1);
  }
  return from == std::string::npos ? text : text.substr(from + 1);
}

void AgentProcess::AskToEnd() { lifeline_.Close(); }

Result<void> AgentProcess::WaitUntilEnded(Nanoseconds limit) {
  AskToEnd();
  if (WaitFor(limit)) return {};
  kill(pid_, SIGTERM);
  if (WaitFor(kTermLimit)) return {};
  kill(-pid_, SIGKILL);
  const bool gone = WaitFor(kKillLimit);
  return Fail(
      Errc::kTimedOut, options_.name,
      gone ? fmt::format("did not end by itself and was killed; log: {}", options_.log.string())
           : fmt::format("cannot be killed (pid {}); log: {}", pid_, options_.log.string()));
}

bool AgentProcess::WaitFor(Nanoseconds limit) {
  const TimePoint until = MonotonicClock().Now() + limit;
  while (!Ended()) {
    if (MonotonicClock().Now() >= until) return false;
    std::this_thread::sleep_for(kPollEvery);
  }
  return true;
}

Result<std::filesystem::path> FindAgentProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Fail(Errc::kNotFound, "/proc/self/exe", error.message());
  const std::filesystem::path program = self.parent_path() / "labrack-agent";
  if (access(program.c_str(), X_OK) != 0) {
    return Fail(Errc::kNotFound, program.string(),
                "labrack-agent must be installed beside labrack");
  }
  return program;
}

}  // namespace labrack::cli
