// NullDevice: completes everything at once, moves nothing. It shows what the engine itself costs.
#pragma once

#include "storage/block/block_device.h"

namespace labrack::block {

class NullDevice final : public BlockDevice {
 public:
  explicit NullDevice(Geometry geometry) : geometry_(geometry) {}

  Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override;

 private:
  Geometry geometry_;
};

}  // namespace labrack::block
