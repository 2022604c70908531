// Disks of a trial: files in the agent's own directory, or in a tmpfs, each behind a loop device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "agent/stack/loop_device.h"
#include "agent/stack/undo_log.h"
#include "labrack/v1/stack.pb.h"
#include "storage/base/bytes.h"
#include "storage/runtime/env.h"

namespace labrack::stack {

struct Disk {
  std::uint32_t index = 0;
  LoopDevice loop;
  Bytes size;
};

// Until when a stack may be built: a playbook's `timeouts.build`, from the beginning.
struct BuildLimit {
  TimePoint until;
  Nanoseconds length{0};
  const runtime::CancelToken* cancel = nullptr;

  // kTimedOut or kCancelled once it has passed or the token is set.
  Result<void> Check() const;
};

struct DiskRequest {
  std::filesystem::path directory;  // there, empty, ours
  std::uint32_t count = 0;
  Bytes size;
  v1::DiskKind kind = v1::DISK_KIND_FILE;
  v1::DiskPreparation prepare = v1::DISK_PREPARATION_WRITTEN;
  BuildLimit limit;
};

// A share of what is free that stays free, so that the host does not choke on us.
constexpr std::uint64_t kFreeShareKept = 20;  // a twentieth

// Only the files, all with the same content: disk-0, disk-1 and so on in the request's directory.
// kNoSpace before anything is made when they do not fit.
Result<std::vector<std::filesystem::path>> MakeDiskFiles(const DiskRequest& request, UndoLog& undo);

// Files, or a tmpfs with them, behind loop devices. kNoSpace before anything is made when the disks
// do not fit. Discards are not passed on by the caller's mkfs (-K, nodiscard), or the files would
// lose the space that was allocated.
Result<std::vector<Disk>> MakeDisks(const DiskRequest& request, UndoLog& undo);

}  // namespace labrack::stack
