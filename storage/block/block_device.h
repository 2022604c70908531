// BlockDevice: what everything that stores blocks is, from a file to a volume. The contract:
//   - Offsets and lengths are multiples of geometry().block_size; anything else is the caller's
//     fault.
//   - A write is durable only after a later completed Flush. A Flush covers writes that were
//     *completed* before it was issued, and nothing else.
//   - Memory handed in stays alive and unchanged until the operation completes.
//   - A cancelled operation completes, with kCancelled.
#pragma once

#include <cstdint>

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
enum class Purpose : std::uint8_t { kUserData, kMetadata, kLog };

struct IoContext {
  Purpose purpose = Purpose::kUserData;
  std::uint8_t depth =
      1;  // 1 + I/Os that had to finish, one after the other, before this one could start
  const runtime::CancelToken* cancel = nullptr;
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
