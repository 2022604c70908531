#include "storage/block/disk/ram_disk.h"

#include <cstring>
#include <sys/mman.h>

#include "storage/base/check.h"
#include "storage/base/units.h"

namespace labrack::block {
namespace {

bool Cancelled(const IoContext& io) { return io.cancel != nullptr && io.cancel->cancelled(); }

}  // namespace

// A mapping takes memory only for what is written.
Result<std::unique_ptr<RamDisk>> RamDisk::Create(Geometry geometry) {
  if (geometry.block_size == Bytes(0) || geometry.size == Bytes(0) ||
      !IsAligned(geometry.size, geometry.block_size)) {
    return Fail(Errc::kInvalidArgument, "RAM disk",
                FormatBytesExact(geometry.size) + " is no positive multiple of its block size, " +
                    FormatBytesExact(geometry.block_size));
  }
  void* memory = mmap(nullptr, geometry.size.size(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return FailErrno("mmap", "RAM disk");
  return std::unique_ptr<RamDisk>(new RamDisk(geometry, static_cast<std::byte*>(memory)));
}

RamDisk::~RamDisk() { munmap(memory_, geometry_.size.size()); }

Task<Result<void>> RamDisk::Read(IoContext io, Offset at, MutableView into) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
  if (Cancelled(io)) co_return Fail(Errc::kCancelled, "");
  if (!into.empty()) std::memcpy(into.data(), memory_ + at.value(), into.size());
  co_return Result<void>();
}

Task<Result<void>> RamDisk::Write(IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
  if (Cancelled(io)) co_return Fail(Errc::kCancelled, "");
  if (!from.empty()) std::memcpy(memory_ + at.value(), from.data(), from.size());
  co_return Result<void>();
}

Task<Result<void>> RamDisk::Flush(IoContext io) {
  if (Cancelled(io)) co_return Fail(Errc::kCancelled, "");
  co_return Result<void>();
}

}  // namespace labrack::block
