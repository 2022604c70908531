// RamDisk: memory as a disk. Everything completes at once, and a power cut takes it all.
#pragma once

#include <memory>

#include "storage/block/block_device.h"

namespace labrack::block {

class RamDisk final : public BlockDevice {
 public:
  // All zeros. kInvalidArgument when the size is no positive multiple of the block size;
  // kExhausted when there is not so much memory.
  static Result<std::unique_ptr<RamDisk>> Create(Geometry geometry);
  ~RamDisk() override;
  RamDisk(const RamDisk&) = delete;
  RamDisk& operator=(const RamDisk&) = delete;

  Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override;

 private:
  RamDisk(Geometry geometry, std::byte* memory) : geometry_(geometry), memory_(memory) {}

  Geometry geometry_;
  std::byte* memory_;  // a mapping of ours, of geometry_.size
};

}  // namespace labrack::block
