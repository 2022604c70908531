// CoreStack: a stack of our own storage core, as the worker uses it: whose reactor runs the
// clients, what they work on, and which I/Os came of it.
//
//   FlatFileSystem          files on the bare volume
//        |
//   Concat, Stripe, Mirror, Raid5          volume_builder.h
//        |                    a disk each:
//   StatsDevice             I/Os by purpose and depth
//   IoQueue                 policy `legacy` or `classes`, or none
//   FileDisk | RamDisk | ModelDisk         core_disks.h
#pragma once

#include <memory>
#include <vector>

#include "agent/stack/stack.h"
#include "agent/stack/undo_log.h"
#include "labrack/v1/result.pb.h"
#include "storage/block/disk/model_disk.h"
#include "storage/block/queue/io_queue.h"
#include "storage/block/wrap/stats.h"
#include "storage/fs/flat_file_system.h"
#include "storage/runtime/reactor.h"

namespace labrack::stack {

// All counters of a core stack since it was built; two of them make what happened in between.
struct IoReading {
  std::vector<block::DeviceStats> disks;
  std::vector<block::QueueStats> queues;      // empty without queues
  std::vector<block::DiskCounters> modelled;  // empty for real disks
  fs::FlatFileStats files;
};
v1::IoUse IoUseBetween(const IoReading& before, const IoReading& after);
// By disk: "disk 0".
std::vector<v1::DeviceUse> DeviceUseBetween(const IoReading& before, const IoReading& after);

class CoreStack {
 public:
  virtual ~CoreStack() = default;

  // Whose thread clients run on, and whose time they measure.
  virtual runtime::Reactor& reactor() = 0;
  // The time is that of modelled disks: it goes as fast as it is worked out, and is the same on
  // every host.
  virtual bool virtual_time() const = 0;
  virtual fs::FileSystem& files() = 0;
  virtual IoReading Read() const = 0;
};

// Of request.stack.volume(). Errors as BuildStack's. Disks are files of the trial, memory or
// models: no root, loop device or mount is needed.
Result<std::unique_ptr<BuiltStack>> BuildVolumeStack(const BuildRequest& request, UndoLog& undo);

}  // namespace labrack::stack
