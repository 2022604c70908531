// A device in memory for tests of what stands above devices: each I/O takes a time that the seed
// draws, and takes effect when it begins or when it ends, as the seed draws; what is at the device
// at once is counted, blocks can be bad, and everything is noted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "storage/base/random.h"
#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"

namespace labrack::block {

class MemoryDevice final : public BlockDevice {
 public:
  enum class Kind { kRead, kWrite, kFlush };
  struct Done {
    Kind kind;
    Offset at;
    Bytes length;
    IoContext io;
  };

  MemoryDevice(runtime::Reactor& reactor, Geometry geometry, Seed seed)
      : bytes(geometry.size.size()), reactor_(reactor), geometry_(geometry), random_(seed) {}

  Geometry geometry() const override { return geometry_; }

  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override {
    const bool early = random_.Chance(0.5);
    if (early) std::ranges::copy(Place(at, into.size()), into.begin());
    Result<void> taken = co_await Take(Kind::kRead, io, at, Bytes(into.size()));
    if (taken && !early) std::ranges::copy(Place(at, into.size()), into.begin());
    co_return taken;
  }
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override {
    const bool early = random_.Chance(0.5) && !broken && !BadBlock(at, Bytes(from.size()));
    if (early) std::ranges::copy(from, Place(at, from.size()).begin());
    Result<void> taken = co_await Take(Kind::kWrite, io, at, Bytes(from.size()));
    if (taken && !early) std::ranges::copy(from, Place(at, from.size()).begin());
    co_return taken;
  }
  Task<Result<void>> Flush(IoContext io) override {
    Result<void> taken = co_await Take(Kind::kFlush, io, Offset(), Bytes());
    co_return taken;
  }

  Nanoseconds latency_min{1000};
  Nanoseconds latency_max{1'000'000};
  std::set<std::uint64_t> bad_blocks;  // by number: fail with kIo
  std::optional<Errc> broken;          // everything fails with it
  std::vector<std::byte> bytes;
  std::vector<Done> done;
  std::uint32_t active = 0;
  std::uint32_t active_max = 0;
  std::array<std::uint32_t, kPriorityClassCount> class_active = {};
  std::array<std::uint32_t, kPriorityClassCount> class_active_max = {};

 private:
  MutableView Place(Offset at, std::size_t length) {
    return MutableView(bytes).subspan(at.value(), length);
  }

  // The first of the range that is bad.
  std::optional<std::uint64_t> BadBlock(Offset at, Bytes length) const {
    const std::uint64_t first = at.value() / geometry_.block_size.count();
    const auto bad = bad_blocks.lower_bound(first);
    if (bad == bad_blocks.end() || *bad >= first + length / geometry_.block_size) {
      return std::nullopt;
    }
    return *bad;
  }

  Task<Result<void>> Take(Kind kind, IoContext io, Offset at, Bytes length) {
    LABRACK_CHECK(geometry_.Covers(at, length));
    const auto index = static_cast<std::size_t>(io.priority);
    if (kind != Kind::kFlush) {
      active_max = std::max(active_max, ++active);
      class_active_max[index] = std::max(class_active_max[index], ++class_active[index]);
    }
    const auto spread = static_cast<std::uint64_t>((latency_max - latency_min).count());
    const Nanoseconds latency =
        latency_min + Nanoseconds(static_cast<std::int64_t>(random_.Below(spread + 1)));
    Result<void> slept = co_await reactor_.SleepUntil(reactor_.Now() + latency, io.cancel);
    if (kind != Kind::kFlush) {
      --active;
      --class_active[index];
    }
    if (!slept) co_return slept;
    done.push_back({kind, at, length, io});
    if (broken) co_return Fail(*broken, "the disk", "broken");
    const std::optional<std::uint64_t> bad = BadBlock(at, length);
    if (bad) co_return Fail(Errc::kIo, "the disk", "block " + std::to_string(*bad));
    co_return Result<void>();
  }

  runtime::Reactor& reactor_;
  Geometry geometry_;
  Random random_;
};

}  // namespace labrack::block
