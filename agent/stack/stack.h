// Stacks, built for one trial. Of the host's kernel: disks, what joins them, a file system, and a
// fresh directory on it for the workload. Of our own storage core (core_stack.h): disks and a
// volume, in this process. Everything that is made on the host is in the undo log first;
// UndoLog::RunAll is the only tear-down there is.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/stack/device_use.h"
#include "agent/stack/undo_log.h"
#include "labrack/v1/stack.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/random.h"
#include "storage/base/result.h"
#include "storage/runtime/env.h"

namespace labrack::stack {

struct BuildRequest {
  v1::Stack stack;
  v1::Disks disks;
  std::string stand_in;             // not empty: a directory is built instead, and why
  std::filesystem::path disks_dir;  // of this trial alone; made here
  std::filesystem::path mount_dir;  // likewise
  std::string tag;                  // unique on this host: run, trial, epoch
  Seed seed = {};                   // of what is drawn: where the platters of modelled disks stand
  Nanoseconds timeout{0};           // of the whole build; must be set
  const runtime::CancelToken* cancel = nullptr;
  std::vector<std::string> allowed_directories;  // that `dir` stacks may name
};

class CoreStack;

// What memory may still answer for, and why; empty where it may not.
struct KeptInMemory {
  std::string data = {};   // of files
  std::string names = {};  // and attributes
};

class BuiltStack {
 public:
  virtual ~BuiltStack() = default;

  // Null for stacks of the host. Where it is not, the workload works on core()->files(), and there
  // is no directory.
  virtual CoreStack* core() { return nullptr; }
  // Where the workload works: empty, on the stack, and nobody else's.
  virtual const std::filesystem::path& directory() const = 0;
  // What the file system can hold.
  virtual Bytes capacity() const = 0;
  virtual const std::vector<DeviceRef>& devices() const = 0;
  // Everything written is on the medium and nothing of it is cached by the file system. No file of
  // the stack may be open.
  virtual Result<void> DropCaches() = 0;
  // What the last DropCaches could not drop: on a `dir` stack, whose caches are the host's own.
  virtual stack::KeptInMemory KeptInMemory() const { return {}; }
  // Whether the stack still stands as it was built: mounted, writable, on its own devices.
  virtual Result<void> Check() const = 0;
  // For people: "btrfs raid1 on loop3, loop4 (2 disks of 1GiB, direct I/O)".
  virtual const std::string& description() const = 0;
  // What is behind the disks: "ext4 on /dev/vda1 (QEMU HARDDISK, serial X)", "memory".
  virtual const std::string& backing() const = 0;
};

// Errors: kUnsupported when this host cannot, with the reason; kInvalidArgument for disks that are
// too few or too small and for options that are not accepted; kRefusedBySafety for options that
// could reach another disk; kNoSpace; kTimedOut, kCancelled; kIo with what the tool said. What was
// made until then is in `undo`.
Result<std::unique_ptr<BuiltStack>> BuildStack(const BuildRequest& request, UndoLog& undo);

}  // namespace labrack::stack
