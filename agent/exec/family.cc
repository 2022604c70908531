#include "agent/exec/family.h"

#include <algorithm>
#include <charconv>
#include <errno.h>
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "storage/base/config/utf8.h"
#include "storage/base/descriptor.h"

namespace labrack::exec {
namespace {

constexpr std::size_t kStatMax = 4096;
constexpr std::size_t kEnvironmentMax = 4 << 20;  // more the kernel does not take by far
constexpr Nanoseconds kRoundPause = std::chrono::milliseconds(2);
constexpr int kRoundsMax = 10;
constexpr std::size_t kNamedMax = 8;

// Empty when it has gone, or may not be read.
std::string ReadProc(pid_t pid, const char* file, std::size_t size_max) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  const Descriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char chunk[16 << 10];
  while (opened.valid() && text.size() < size_max) {
    const ssize_t count = read(opened.get(), chunk, sizeof(chunk));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(chunk, static_cast<std::size_t>(count));
  }
  return text;
}

bool HasMark(pid_t pid, const std::string& mark) {
  const std::string environment = ReadProc(pid, "environ", kEnvironmentMax);
  const std::string_view wanted(mark.c_str(), mark.size() + 1);  // with the zero that ends it
  for (std::size_t at = environment.find(wanted); at != std::string::npos;
       at = environment.find(wanted, at + 1)) {
    if (at == 0 || environment[at - 1] == '\0') return true;
  }
  return false;
}

// Whoever is looked for among the ancestors is found over this many generations.
constexpr int kGenerationsMax = 1000;

class Snapshot {
 public:
  explicit Snapshot(const Family& family) : family_(family) {
    for (pid_t pid : AllProcesses()) {
      if (std::optional<ProcessFacts> facts = ReadProcess(pid)) all_.push_back(*std::move(facts));
    }
    std::sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
    is_seed_.reserve(all_.size());
    for (const ProcessFacts& one : all_) is_seed_.push_back(IsSeed(one));
  }

  std::vector<ProcessFacts> Members() const {
    std::vector<ProcessFacts> members;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const bool is_dead = all_[i].state == 'Z' || all_[i].state == 'X';
      if (!is_dead && all_[i].pid != getpid() && (is_seed_[i] || IsBelow(i))) {
        members.push_back(all_[i]);
      }
    }
    return members;
  }

 private:
  bool IsSeed(const ProcessFacts& one) const {
    if (one.pid == getpid()) return false;
    if (family_.session && one.session == *family_.session) return true;
    return !family_.mark.empty() && HasMark(one.pid, family_.mark);
  }
  bool IsBelow(std::size_t index) const {
    for (int generation = 0; generation < kGenerationsMax; ++generation) {
      const pid_t parent = all_[index].parent;
      if (family_.above && parent == *family_.above) return true;
      const auto found = std::lower_bound(
          all_.begin(), all_.end(), parent,
          [](const ProcessFacts& facts, pid_t number) { return facts.pid < number; });
      if (found == all_.end() || found->pid != parent) return false;
      index = static_cast<std::size_t>(found - all_.begin());
      if (is_seed_[index]) return true;
    }
    return false;
  }

  const Family& family_;
  std::vector<ProcessFacts> all_;  // by number
  std::vector<bool> is_seed_;
};

// By a descriptor, so that nobody is hit who got the number meanwhile.
void Kill(const ProcessFacts& process) {
  const Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0U)));
  if (!pidfd.valid()) return;
  const std::optional<ProcessFacts> now = ReadProcess(process.pid);
  if (!now || now->start_ticks != process.start_ticks) return;
  syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0U);
}

}  // namespace

// "PID (name) S ppid pgrp session tty ... starttime": the name may hold anything.
std::optional<ProcessFacts> ReadProcess(pid_t pid) {
  const std::string stat = ReadProc(pid, "stat", kStatMax);
  const std::size_t open_at = stat.find('(');
  const std::size_t close_at = stat.rfind(')');
  if (open_at == std::string::npos || close_at == std::string::npos || close_at < open_at) {
    return std::nullopt;
  }
  ProcessFacts facts;
  facts.pid = pid;
  facts.name = config::AsUtf8(stat.substr(open_at + 1, close_at - open_at - 1));
  std::vector<std::string> words;  // from the third of the line on
  for (std::size_t at = close_at + 1; at < stat.size();) {
    const std::size_t begin = stat.find_first_not_of(" \n", at);
    if (begin == std::string::npos) break;
    at = std::min(stat.find_first_of(" \n", begin), stat.size());
    words.push_back(stat.substr(begin, at - begin));
  }
  constexpr std::size_t kStartTime = 19;
  if (words.size() <= kStartTime) return std::nullopt;
  const auto number = [&](std::size_t word, auto& into) {
    std::from_chars(words[word].data(), words[word].data() + words[word].size(), into);
  };
  facts.state = words[0][0];
  number(1, facts.parent);
  number(3, facts.session);
  number(kStartTime, facts.start_ticks);
  return facts;
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    const auto [stop, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc() && stop == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

Family TrialFamily(const std::string& mark, std::optional<pid_t> above) {
  return {.mark = std::string(kTrialMark) + "=" + mark, .session = std::nullopt, .above = above};
}

std::vector<ProcessFacts> MembersOf(const Family& family) { return Snapshot(family).Members(); }

std::vector<ProcessFacts> KillFamily(const Family& family) {
  std::vector<ProcessFacts> members;
  for (int round = 0; round < kRoundsMax; ++round) {
    members = MembersOf(family);
    if (members.empty()) break;
    for (const ProcessFacts& member : members) Kill(member);
    std::this_thread::sleep_for(kRoundPause);
  }
  return members.empty() ? members : MembersOf(family);
}

std::vector<ProcessFacts> EndFamily(const Family& family, Nanoseconds longest) {
  const TimePoint until = MonotonicClock().Now() + longest;
  for (;;) {
    std::vector<ProcessFacts> members = KillFamily(family);
    if (members.empty() || MonotonicClock().Now() >= until) return members;
  }
}

std::string NamesOf(const std::vector<ProcessFacts>& processes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(processes.size(), kNamedMax); ++i) {
    text += (i == 0 ? "" : ", ") + processes[i].name + " (pid " + std::to_string(processes[i].pid) +
            ")";
  }
  return text;
}

Result<void> AdoptOrphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return FailErrno("prctl", "subreaper");
  return {};
}

}  // namespace labrack::exec
