// StatsDevice: what reached a device, by purpose and by dependency depth, and how long it took. It
// also fills in the tally of the operation that an I/O belongs to. One stands on every disk, above
// its queue: below it, I/Os that went out together would count as one.
#pragma once

#include <array>
#include <cstdint>

#include "storage/base/clock.h"
#include "storage/base/histogram.h"
#include "storage/block/block_device.h"

namespace labrack::block {

struct DeviceStats {
  // Depths count from 1; the last place is of that depth and all beyond.
  static constexpr std::size_t kDepthMax = 8;

  struct Sum {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    Bytes read;
    Bytes written;
    std::uint64_t behind = 0;  // of the I/Os: after the operation was acknowledged, or nobody's
    std::uint64_t failed = 0;  // of the I/Os

    void Add(const Sum& other);
    Sum Since(const Sum& earlier) const;
  };

  std::array<std::array<Sum, kDepthMax + 1>, kPurposeCount> sums = {};  // [purpose][depth]
  std::uint64_t durable_writes = 0;
  std::uint64_t flushes = 0;
  std::uint64_t flushes_failed = 0;
  Histogram read_times;
  Histogram write_times;
  Histogram flush_times;

  Sum OfPurpose(Purpose purpose) const;
  Sum OfDepth(std::size_t depth) const;
  Sum Total() const;

  void Merge(const DeviceStats& other);
  // What was added since `earlier`, an older copy of this.
  DeviceStats Since(const DeviceStats& earlier) const;
};

class StatsDevice final : public BlockDevice {
 public:
  // Both outlive this.
  StatsDevice(const Clock& clock, BlockDevice& device) : clock_(clock), device_(device) {}

  Geometry geometry() const override { return device_.geometry(); }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override;

  const DeviceStats& stats() const { return stats_; }

 private:
  DeviceStats::Sum& SumOf(const IoContext& io);

  const Clock& clock_;
  BlockDevice& device_;
  DeviceStats stats_;
};

}  // namespace labrack::block
