// The one file that knows Boost.Process (v2 of 1.81). What it does wrong for us, and the answer:
//   - its default launcher forks: a copy of an agent's page tables for a process that lives for
//     microseconds is 3 ms of processor time. The vfork launcher starts nothing but our Execute,
//     which makes the new process ready and executes the program itself; the launcher's own
//     code behind it would run exit handlers in the memory that both still share;
//   - notify_fork in the child closes the epoll descriptor of the context in shared memory: each
//     start has a context of its own, without a reactor as yet;
//   - its handle throws where no pidfd is to be had, kills a process that it loses, and knows no
//     rusage: the pid is taken from the launcher, the handle detached; we wait by pidfd and wait4;
//   - nothing resets signals or leaves the process group: Prepare does, in the child.
// Between vfork and exec only async-signal-safe calls are made; all memory is laid out before.
#include "agent/exec/child.h"

#include <algorithm>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/vfork_launcher.hpp>
#include <boost/process/v2/process.hpp>

#include "agent/exec/family.h"
#include "agent/exec/program.h"
#include "storage/base/check.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace labrack::exec {
namespace {

namespace bp = boost::process::v2;

constexpr int kFirstOwnDescriptor = 3;

// A step between vfork and exec that failed; plain data, since the child writes it.
struct ChildFailure {
  const char* call = nullptr;
  int error_number = 0;
};

// Everything that the child needs between vfork and exec.
struct Layout {
  int input_fd = -1;
  int output_fd = -1;
  int errors_fd = -1;
  const int* inherited_fds = nullptr;
  std::size_t inherited_count = 0;
  const char* directory = nullptr;
  bool new_session = false;
  bool ends_with_caller = false;
  int cgroup_fd = -1;
  sigset_t signal_mask{};
};

void ResetSignals(const Layout& layout) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
  sigprocmask(SIG_SETMASK, &layout.signal_mask, nullptr);
}

// Runs in the child. Async-signal-safe.
ChildFailure Prepare(const Layout& layout) {
  if (layout.new_session) {
    if (setsid() < 0) return {"setsid", errno};
  } else if (setpgid(0, 0) != 0) {
    return {"setpgid", errno};
  }
  // Without it the family is found by its marks.
  if (layout.cgroup_fd >= 0) (void)!write(layout.cgroup_fd, "0", 1);
  if (layout.ends_with_caller && prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return {"prctl", errno};
  if (dup2(layout.input_fd, STDIN_FILENO) < 0 || dup2(layout.output_fd, STDOUT_FILENO) < 0 ||
      dup2(layout.errors_fd, STDERR_FILENO) < 0) {
    return {"dup2", errno};
  }
  if (syscall(SYS_close_range, kFirstOwnDescriptor, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    return {"close_range", errno};
  }
  for (std::size_t i = 0; i < layout.inherited_count; ++i) {
    if (fcntl(layout.inherited_fds[i], F_SETFD, 0) != 0) return {"inherit a descriptor", errno};
  }
  if (layout.directory != nullptr && chdir(layout.directory) != 0) return {"chdir", errno};
  umask(022);
  ResetSignals(layout);
  return {};
}

// A descriptor that is handed over would land on 0, 1 or 2 if we had them closed, and Prepare would
// overwrite it.
Result<void> HoldStandardDescriptors() {
  static const int error_number = [] {
    for (int fd = open("/dev/null", O_RDWR);; fd = open("/dev/null", O_RDWR)) {
      if (fd < 0) return errno;
      if (fd >= kFirstOwnDescriptor) {
        close(fd);
        return 0;
      }
    }
  }();
  if (error_number != 0) {
    return std::unexpected(Error::FromErrno(error_number, "open", "/dev/null"));
  }
  return {};
}

class EnvironmentBlock {
 public:
  explicit EnvironmentBlock(const std::map<std::string, std::string>& given) {
    const char* home = getenv("HOME");
    std::map<std::string, std::string> all = {
        {"PATH", std::string(kPath)}, {"LANG", "C"}, {"HOME", home != nullptr ? home : "/"}};
    const char* mark = getenv(kTrialMark);
    if (mark != nullptr) all[kTrialMark] = mark;
    for (const auto& [name, value] : given) all[name] = value;
    for (const auto& [name, value] : all) words_.push_back(name + "=" + value);
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  char** pointers() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

// All signals blocked in this thread, so that no handler of ours runs in the child.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Where the child leaves its failure. Shared by a mapping, since vfork is a fork under
// ThreadSanitizer.
class SharedFailure {
 public:
  SharedFailure()
      : mapped_(mmap(nullptr, sizeof(ChildFailure), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (valid()) new (mapped_) ChildFailure();
  }
  ~SharedFailure() {
    if (valid()) munmap(mapped_, sizeof(ChildFailure));
  }
  SharedFailure(const SharedFailure&) = delete;
  SharedFailure& operator=(const SharedFailure&) = delete;

  bool valid() const { return mapped_ != MAP_FAILED; }
  ChildFailure& operator*() const { return *static_cast<ChildFailure*>(mapped_); }

 private:
  void* mapped_;
};

// An initializer of Boost's; the child's whole life until the program runs.
struct Execute {
  const Layout& layout;
  char* const* environment;
  ChildFailure& failure;

  template <typename Launcher>
  bp::error_code on_exec_setup(Launcher&, const bp::filesystem::path& program,
                               const char* const*& words) {
    failure = Prepare(layout);
    if (failure.call == nullptr) {
      execve(program.c_str(), const_cast<char* const*>(words), environment);
      failure = {"start", errno};
    }
    _exit(EXIT_FAILURE);
  }
};

void KillAndReap(pid_t pid) {
  if (pid <= 0) return;
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Starts the process; `program` and `arguments` are laid out by the caller. The pid, or the error.
// Returns when the program runs: vfork holds the caller until then.
Result<pid_t> Launch(const std::string& program, const std::vector<std::string>& arguments,
                     const Layout& layout, EnvironmentBlock& environment) {
  const SharedFailure failure;
  if (!failure.valid()) return FailErrno("mmap", program);
  bp::posix::vfork_launcher launcher;
  boost::system::error_code code;
  try {
    boost::asio::io_context context;
    auto started = launcher(context.get_executor(), code, bp::filesystem::path(program), arguments,
                            Execute{layout, environment.pointers(), *failure});
    started.detach();
  } catch (const std::exception& exception) {  // no descriptor or memory left, of the library's
    KillAndReap(launcher.pid);
    return Fail(Errc::kExhausted, program, exception.what());
  }
  if (launcher.pid <= 0) return std::unexpected(Error::FromErrno(code.value(), "vfork", program));
  if ((*failure).call == nullptr) return launcher.pid;
  KillAndReap(launcher.pid);
  return std::unexpected(Error::FromErrno((*failure).error_number, (*failure).call, program));
}

v1::CpuUse CpuOf(const rusage& use) {
  const auto nanoseconds = [](const timeval& time) {
    return (static_cast<std::int64_t>(time.tv_sec) * 1'000'000 + time.tv_usec) * 1'000;
  };
  v1::CpuUse cpu;
  cpu.set_user_ns(nanoseconds(use.ru_utime));
  cpu.set_system_ns(nanoseconds(use.ru_stime));
  cpu.set_memory_max_bytes(static_cast<std::uint64_t>(use.ru_maxrss) * 1024);
  cpu.set_context_switches_voluntary(static_cast<std::uint64_t>(use.ru_nvcsw));
  cpu.set_context_switches_involuntary(static_cast<std::uint64_t>(use.ru_nivcsw));
  cpu.set_page_faults_major(static_cast<std::uint64_t>(use.ru_majflt));
  return cpu;
}

// Processes whose Child was destroyed before their end; they are reaped as they end.
class LetGoProcesses {
 public:
  void Add(pid_t pid) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pids_.push_back(pid);
  }
  void Reap() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) {
      const pid_t reaped = waitpid(pid, nullptr, WNOHANG);
      return reaped == pid || (reaped < 0 && errno == ECHILD);
    });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

LetGoProcesses& LetGoList() {
  static LetGoProcesses* const list = new LetGoProcesses;  // lives as long as the process
  return *list;
}

Result<void> CheckCommand(const Command& command) {
  if (command.words.empty()) return Fail(Errc::kInvalidArgument, "a command without words");
  for (const std::string& word : command.words) {
    if (word.find('\0') != std::string::npos) {
      return Fail(Errc::kInvalidArgument, command.words[0],
                  "a word of the command holds a zero byte");
    }
  }
  for (const auto& [name, value] : command.environment) {
    if (name.empty() || name.find('=') != std::string::npos ||
        (name + value).find('\0') != std::string::npos) {
      return Fail(Errc::kInvalidArgument, command.words[0],
                  "'" + name + "' cannot be the name of an environment variable");
    }
  }
  return {};
}

// A missing directory is not told as a missing program.
Result<void> CheckDirectory(const Command& command) {
  std::error_code ignored;
  if (command.directory.empty() || std::filesystem::is_directory(command.directory, ignored)) {
    return {};
  }
  return Fail(Errc::kNotFound, command.directory.string(),
              "the working directory for " + command.words[0] + " is not there");
}

}  // namespace

std::string ExitStatus::Describe() const {
  if (signal == 0) return "exit code " + std::to_string(exit_code);
  const char* name = sigdescr_np(signal);
  return "signal " + std::to_string(signal) + " (" + (name != nullptr ? name : "unknown") + ")";
}

Result<Child> Child::Spawn(const Command& command, const SpawnOptions& options) {
  LetGoList().Reap();
  if (Result<void> checked = CheckCommand(command); !checked)
    return std::unexpected(checked.error());
  if (Result<void> checked = CheckDirectory(command); !checked) {
    return std::unexpected(checked.error());
  }
  if (Result<void> held = HoldStandardDescriptors(); !held) return std::unexpected(held.error());
  const Result<std::filesystem::path> program = FindProgram(command.words[0]);
  if (!program) return std::unexpected(program.error());

  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return FailErrno("open", "/dev/null");
  const auto or_null = [&](int fd) { return fd >= 0 ? fd : null.get(); };
  Layout layout;
  layout.input_fd = or_null(options.input_fd);
  layout.output_fd = or_null(options.output_fd);
  layout.errors_fd = or_null(options.errors_fd);
  layout.inherited_fds = options.inherited_fds.data();
  layout.inherited_count = options.inherited_fds.size();
  layout.directory = command.directory.empty() ? nullptr : command.directory.c_str();
  layout.new_session = options.new_session;
  layout.ends_with_caller = options.ends_with_caller;
  layout.cgroup_fd = options.cgroup_fd;
  sigemptyset(&layout.signal_mask);

  EnvironmentBlock environment(command.environment);
  const std::vector<std::string> arguments(command.words.begin() + 1, command.words.end());
  Result<pid_t> pid = [&] {
    const SignalsBlocked blocked;
    return Launch(program->string(), arguments, layout, environment);
  }();
  if (!pid) return std::unexpected(pid.error());

  Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, *pid, 0)));
  if (!pidfd.valid()) {
    const Error error = Error::FromErrno(errno, "pidfd_open", program->string());
    kill(-*pid, SIGKILL);
    LetGoList().Add(*pid);
    return std::unexpected(error);
  }
  return Child(*pid, std::move(pidfd));
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    LetGo();
    pid_ = other.pid_;
    pidfd_ = std::move(other.pidfd_);
    status_ = std::move(other.status_);
  }
  return *this;
}

Child::~Child() { LetGo(); }

void Child::LetGo() {
  if (pidfd_.valid() && !status_) LetGoList().Add(pid_);
  pidfd_.Close();
}

Result<void> Child::Signal(int signal_number) {
  if (status_) return {};
  if (syscall(SYS_pidfd_send_signal, pidfd_.get(), signal_number, nullptr, 0) != 0 &&
      errno != ESRCH) {
    return FailErrno("pidfd_send_signal", std::to_string(pid_));
  }
  return {};
}

Result<void> Child::SignalGroup(int signal_number) {
  // Until it is reaped, the process (or its zombie) keeps the group's number from being used again.
  if (status_) return {};
  if (kill(-pid_, signal_number) != 0 && errno != ESRCH) {
    return FailErrno("kill", std::to_string(pid_));
  }
  return {};
}

Result<void> Child::KillGroup() { return SignalGroup(SIGKILL); }

bool Child::HasEnded() const {
  if (status_) return true;
  pollfd entry{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) > 0;
}

std::optional<int> Child::PeekExitCode() const {
  if (status_) return status_->signal == 0 ? std::optional<int>(status_->exit_code) : std::nullopt;
  siginfo_t info{};
  const auto pidfd = static_cast<id_t>(pidfd_.get());
  if (waitid(P_PIDFD, pidfd, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return std::nullopt;
  if (info.si_pid == 0 || info.si_code != CLD_EXITED) return std::nullopt;
  return info.si_status;
}

Result<std::optional<ExitStatus>> Child::Poll() {
  if (status_) return status_;
  if (!HasEnded()) return std::nullopt;
  int status = 0;
  rusage use{};
  pid_t reaped = 0;
  do {
    reaped = wait4(pid_, &status, WNOHANG, &use);
  } while (reaped < 0 && errno == EINTR);
  if (reaped < 0) return FailErrno("wait4", std::to_string(pid_));
  if (reaped == 0) return std::nullopt;  // the pidfd was ready too early
  ExitStatus ended;
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  ended.cpu = CpuOf(use);
  status_ = ended;
  return status_;
}

Result<ExitStatus> Child::WaitUntil(TimePoint until) {
  while (true) {
    Result<std::optional<ExitStatus>> polled = Poll();
    if (!polled) return std::unexpected(polled.error());
    if (*polled) return **polled;
    const Nanoseconds left = until - MonotonicClock().Now();
    if (left <= Nanoseconds(0)) {
      return Fail(Errc::kTimedOut, "process " + std::to_string(pid_), "has not ended in time");
    }
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd entry{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(milliseconds, 60'000)));
  }
}

}  // namespace labrack::exec
