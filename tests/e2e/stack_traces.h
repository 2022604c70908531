// What a stack leaves on a host as long as it is built, for tests that look whether it has gone.
#pragma once

#include <filesystem>
#include <string>

#include "agent/stack/mounts.h"
#include "tests/e2e/trial_support.h"

namespace labrack::e2e {

// Where something is mounted below the directory; empty: nowhere.
inline std::filesystem::path MountBelow(const std::filesystem::path& directory) {
  const Result<std::vector<stack::MountEntry>> mounts = stack::ReadMounts();
  if (!mounts) return {};
  for (const stack::MountEntry& entry : *mounts) {
    if (entry.mount_point.starts_with(directory.string() + "/")) return entry.mount_point;
  }
  return {};
}

inline bool HasLoopDeviceBelow(const std::filesystem::path& directory) {
  for (const auto& entry : std::filesystem::directory_iterator("/sys/block")) {
    if (ReadText(entry.path() / "loop" / "backing_file").starts_with(directory.string() + "/")) {
      return true;
    }
  }
  return false;
}

}  // namespace labrack::e2e
