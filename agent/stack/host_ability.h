// What this host has that stacks need. Plain data, so that tests and reasons need no real host.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "labrack/v1/host.pb.h"

namespace labrack::stack {

struct HostAbility {
  bool is_root = false;
  bool may_mount = false;                       // CAP_SYS_ADMIN; root in a container may lack it
  bool loop_devices = false;                    // /dev/loop-control can be opened
  std::set<std::string> file_systems;           // that the kernel has, or can load as a module
  std::map<std::string, std::string> programs;  // name -> path, of those that were found
  std::string zfs_problem;  // why `zpool list` does not work; empty when it does
};

enum class ZfsProbe { kTry, kSkip };

// Looks at the host; kTry runs `zpool list` where there is a zpool.
HostAbility ProbeHost(ZfsProbe zfs);

// One entry per kind of HostStack, with the reason why not.
std::vector<v1::StackSupport> SupportOf(const HostAbility& ability);

// Why loop devices cannot be made and mounted here; empty when they can.
std::string WhyNoDisks(const HostAbility& ability);

}  // namespace labrack::stack
