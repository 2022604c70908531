// BlockDevice: what everything that stores blocks is, from a file to a volume. The contract:
//   - Offsets and lengths are multiples of geometry().block_size; anything else is the caller's
//     fault.
//   - A write is durable once it has completed with io.durable (FUA), or once a later Flush has. A
//     Flush covers writes that were *completed* before it was issued, and nothing else.
//   - A Flush that failed has lost what it should have covered: it is never repeated as if it could
//     still succeed. The device answers every later Flush and durable write with the same error
//     until it is opened anew.
//   - A write that failed, or was cancelled, may have changed none, some or all of its blocks.
//   - Memory handed in stays alive and unchanged until the operation completes.
//   - A cancelled operation completes, with kCancelled.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "storage/base/bytes.h"
#include "storage/base/result.h"
#include "storage/runtime/env.h"
#include "storage/runtime/task.h"

namespace labrack::block {

using runtime::Task;

struct Geometry {
  Bytes size;
  Bytes block_size;  // smallest unit of read and write

  bool Covers(Offset at, Bytes length) const {
    return IsAligned(at, block_size) && IsAligned(length, block_size) &&
           at.value() <= size.count() && length <= size - Bytes(at.value());
  }
};

// Why an I/O is done; sums by purpose explain results (`labrack why`).
enum class Purpose : std::uint8_t {
  kUserData,
  kMetadata,
  kLog,
  kOldData,        // read to work out parity
  kOldParity,      // likewise
  kParity,         // written
  kPrewrite,       // data and parity in the parity log, before they go in place
  kDirtyRegion,    // a mirror's note that its submirrors may differ
  kStateDatabase,  // which disk is what, and which is current
  kResync,         // a submirror or a parity made equal again
  kRebuild,        // a disk's content worked out from the others
  kReplay,         // of a parity log, when a volume is assembled
};
inline constexpr int kPurposeCount = 12;
std::string_view PurposeName(Purpose purpose);  // "user data", ...

// Who is to wait when a queue cannot serve all; see queue/io_queue.h.
enum class PriorityClass : std::uint8_t {
  kSyncRead,    // somebody waits for it
  kSyncWrite,   // likewise
  kAsyncRead,   // read ahead
  kAsyncWrite,  // written behind
  kScrub,       // resync, rebuild, scrub
};
inline constexpr int kPriorityClassCount = 5;
std::string_view PriorityClassName(PriorityClass priority);  // "sync read", ...

// What one operation of a caller came to, summed up by the devices at the bottom (wrap/stats.h). It
// lives as long as the operation.
struct IoTally {
  struct Sum {
    std::uint32_t reads = 0;
    std::uint32_t writes = 0;
    std::uint64_t bytes = 0;
  };
  std::array<Sum, kPurposeCount> by_purpose = {};
  std::uint32_t flushes = 0;
  std::uint8_t depth_max = 0;  // the longest chain of I/Os that had to wait for each other
};

struct IoContext {
  Purpose purpose = Purpose::kUserData;
  PriorityClass priority = PriorityClass::kSyncRead;
  // A write: on the medium before it completes.
  bool durable = false;
  // 1 + I/Os that had to finish, one after the other, before this one could start.
  std::uint8_t depth = 1;
  // Null for what is done after the operation was acknowledged, or for nobody's operation.
  IoTally* tally = nullptr;
  const runtime::CancelToken* cancel = nullptr;

  // For an I/O of the same operation that is done for another reason.
  IoContext For(Purpose other) const {
    IoContext io = *this;
    io.purpose = other;
    return io;
  }
  // For one that can only start when an I/O of this context has finished.
  IoContext After() const {
    IoContext io = *this;
    if (io.depth < std::numeric_limits<std::uint8_t>::max()) ++io.depth;
    return io;
  }
  // For one that goes on when the operation has been acknowledged.
  IoContext Behind(PriorityClass other) const {
    IoContext io = *this;
    io.priority = other;
    io.tally = nullptr;
    io.cancel = nullptr;
    return io;
  }
};

// What a layer does with Flush. Only `kPass` keeps the contract above; the others are what real
// volume managers did, so that their effect can be shown.
enum class FlushMode : std::uint8_t {
  kPass,    // to every device below
  kRefuse,  // kUnsupported, as ENOTTY of a volume without it
  kDrop,    // success, and nothing is done
};

class BlockDevice {
 public:
  virtual ~BlockDevice() = default;

  virtual Geometry geometry() const = 0;
  // Errors: kIo, kNoSpace, kCancelled. A short transfer is an error, never a success.
  virtual Task<Result<void>> Read(IoContext io, Offset at, MutableView into) = 0;
  virtual Task<Result<void>> Write(IoContext io, Offset at, ConstView from) = 0;
  virtual Task<Result<void>> Flush(IoContext io) = 0;
};

}  // namespace labrack::block
