// Child: a process of ours, found by its pidfd, so that no signal can ever reach another process
// that got the same number. It leads a process group of its own. A Child that is destroyed while
// its process runs lets it go on; such processes are reaped by later calls of Spawn.
//
// Every object of this class is used by one thread at a time; different ones by any threads.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "agent/exec/command.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::exec {

struct SpawnOptions {
  bool new_session = false;       // setsid: the process outlives our own session and its terminal
  bool ends_with_caller = false;  // SIGTERM once the thread that calls Spawn has ended
  int cgroup_fd = -1;             // Cgroup::OpenProcesses: the process begins in that group
  // What the process gets as standard input, output and errors; -1: /dev/null. They stay the
  // caller's.
  int input_fd = -1;
  int output_fd = -1;
  int errors_fd = -1;
  // Descriptors that the process keeps under the same number. All others are closed in it.
  std::vector<int> inherited_fds = {};
};

class Child {
 public:
  // Returns once the program has been executed. Of `command` the words, the directory and the
  // environment count. Errors: kNotFound for a missing program or directory, kPermissionDenied,
  // kExhausted.
  static Result<Child> Spawn(const Command& command, const SpawnOptions& options);

  Child(Child&&) noexcept = default;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  // Readable (poll) once the process has ended.
  int pidfd() const { return pidfd_.get(); }

  // To the process alone, or to its whole group. Fine when it has ended; the group is reached as
  // long as the process has not been reaped.
  Result<void> Signal(int signal_number);
  Result<void> SignalGroup(int signal_number);
  Result<void> KillGroup();

  // The status once the process has ended and has been reaped; nullopt while it runs. Never blocks.
  Result<std::optional<ExitStatus>> Poll();
  // Whether it has ended; does not reap it.
  bool HasEnded() const;
  // The exit code of a process that has ended by itself; does not reap it.
  std::optional<int> PeekExitCode() const;
  // Waits for the end. kTimedOut at `until` (of MonotonicClock); the process then still runs.
  Result<ExitStatus> WaitUntil(TimePoint until);

 private:
  Child(pid_t pid, Descriptor pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  void LetGo();

  pid_t pid_ = -1;
  Descriptor pidfd_;
  std::optional<ExitStatus> status_;
};

}  // namespace labrack::exec
