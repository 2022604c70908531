// A family: all processes that something we started has started in turn. Groups and sessions do not
// hold one together (fio's jobs and daemons call setsid), so that three other things do:
//
//   mark      a word in the environment, which fork and exec hand on, whoever dies in between
//   session   of its first process, as long as that one's number is known to be its own
//   ancestry  children of what was found otherwise; those whose parent died come to the next
//             ancestor that is a reaper (AdoptOrphans)
//
// Where a cgroup can be made (cgroup.h) it holds what escapes all of these as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::exec {

// The variable that exec::Child hands on to whatever it starts.
inline constexpr const char* kTrialMark = "LABRACK_TRIAL";

struct Family {
  std::string mark;              // "LABRACK_TRIAL=/x"; empty: none
  std::optional<pid_t> session;  // its first process' number
  std::optional<pid_t> above;    // everything below this process, itself excluded
};
// What carries this value of kTrialMark.
Family TrialFamily(const std::string& mark, std::optional<pid_t> above = std::nullopt);

struct ProcessFacts {
  pid_t pid = -1;
  pid_t parent = -1;
  pid_t session = -1;
  char state = '?';
  std::uint64_t start_ticks = 0;  // since the host was started; tells apart who had the same number
  std::string name;               // UTF-8, whatever the process calls itself
};
std::vector<pid_t> AllProcesses();
// nullopt: there is no such process.
std::optional<ProcessFacts> ReadProcess(pid_t pid);

// Those that live, without the caller.
std::vector<ProcessFacts> MembersOf(const Family& family);
// SIGKILL to each of them, and again to those that were started meanwhile, for a few milliseconds.
// Gives those that are still there: they are dying, or hang in the kernel.
std::vector<ProcessFacts> KillFamily(const Family& family);
// Until none is left, for at most `longest`. Gives those that are.
std::vector<ProcessFacts> EndFamily(const Family& family, Nanoseconds longest);
// "fio (pid 123), sh (pid 124)"; at most eight.
std::string NamesOf(const std::vector<ProcessFacts>& processes);

// Orphans below this process become its children from now on.
Result<void> AdoptOrphans();

}  // namespace labrack::exec
