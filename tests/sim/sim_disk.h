// SimDisk: a disk of a simulation that keeps no more than the contract of a device promises. Times
// are drawn from the seed, so operations overtake each other; a write shows in reads at a drawn
// instant; with a volatile cache it is durable with a later flush only. No mechanics: for time that
// means something there is ModelDisk.
//
//   PowerOff: what is in flight ends with an error and so does all that follows, until PowerOn has
//   decided about every write that was not durable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/block/disk/disk_image.h"
#include "storage/runtime/reactor.h"

namespace labrack::sim {

class SimDisk final : public block::BlockDevice {
 public:
  struct Options {
    block::Geometry geometry{.size = Bytes(1 << 20), .block_size = Bytes(512)};
    bool volatile_cache = true;
    Nanoseconds time_max = std::chrono::microseconds(200);
  };
  SimDisk(runtime::Reactor& reactor, Options options, Seed seed)
      : reactor_(reactor), options_(options), random_(seed) {}

  block::Geometry geometry() const override { return options_.geometry; }
  runtime::Task<Result<void>> Read(block::IoContext io, Offset at, MutableView into) override;
  runtime::Task<Result<void>> Write(block::IoContext io, Offset at, ConstView from) override;
  runtime::Task<Result<void>> Flush(block::IoContext io) override;

  void PowerOff() { off_ = true; }
  void PowerOn(const block::CutOptions& cut);
  // Gone, until it comes back with what it held.
  void Leave() { gone_ = true; }
  void Return() { gone_ = false; }
  // These blocks cannot be read until they are written.
  void MakeUnreadable(Offset at, Bytes length) { bad_.push_back({at, at + length}); }
  // The next flush fails, and with it the device, as the contract says.
  void FailNextFlush() { fail_flush_ = true; }

  // What a reader would get, past all faults and with no time.
  std::vector<std::byte> Peek(Offset at, Bytes length) const;
  std::size_t pending_count() const { return image_.pending_count(); }
  std::uint64_t write_count(block::Purpose purpose) const {
    return writes_[static_cast<std::size_t>(purpose)];
  }
  std::uint64_t read_count() const { return reads_; }
  std::uint64_t flush_count() const { return flushes_; }
  // Operations that were begun, of any kind.
  std::uint64_t op_count() const { return ops_; }

 private:
  struct Range {
    Offset begin;
    Offset end;
  };
  runtime::Task<void> Spend();
  Result<void> Here(std::uint64_t power) const;

  runtime::Reactor& reactor_;
  Options options_;
  Random random_;
  block::DiskImage image_;
  std::vector<block::DiskImage::WriteId> completed_;  // not durable yet
  std::vector<Range> bad_;
  std::uint64_t power_ = 0;  // counts the cuts
  bool off_ = false;
  bool gone_ = false;
  bool fail_flush_ = false;
  bool poisoned_ = false;
  std::array<std::uint64_t, block::kPurposeCount> writes_{};
  std::uint64_t reads_ = 0;
  std::uint64_t flushes_ = 0;
  std::uint64_t ops_ = 0;
};

}  // namespace labrack::sim
