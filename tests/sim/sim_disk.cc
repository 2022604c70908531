#include "tests/sim/sim_disk.h"

#include <algorithm>

#include "storage/base/check.h"

namespace labrack::sim {

using runtime::Task;

Task<void> SimDisk::Spend() {
  const auto most = static_cast<std::uint64_t>(options_.time_max.count());
  const Nanoseconds time(static_cast<std::int64_t>(random_.Below(most) + 1));
  const TimePoint until = reactor_.Now() + time;
  Result<void> slept = co_await reactor_.SleepUntil(until, nullptr);
  LABRACK_CHECK(slept.has_value());
}

// Whether the disk answers what was begun when it had been cut off `power` times.
Result<void> SimDisk::Here(std::uint64_t power) const {
  if (off_ || power != power_) return Fail(Errc::kIo, "the power is off");
  if (gone_) return Fail(Errc::kIo, "the disk is gone");
  return {};
}

Task<Result<void>> SimDisk::Read(block::IoContext, Offset at, MutableView into) {
  LABRACK_CHECK(options_.geometry.Covers(at, Bytes(into.size())));
  const std::uint64_t power = power_;
  ++ops_;
  ++reads_;
  co_await Spend();
  Result<void> here = Here(power);
  if (!here) co_return here;
  for (const Range& range : bad_) {
    if (at < range.end && range.begin < at + Bytes(into.size())) {
      co_return Fail(Errc::kIo, "unreadable block");
    }
  }
  image_.Read(at, into);
  co_await Spend();
  co_return Here(power);
}

Task<Result<void>> SimDisk::Write(block::IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(options_.geometry.Covers(at, Bytes(from.size())));
  const std::uint64_t power = power_;
  ++ops_;
  ++writes_[static_cast<std::size_t>(io.purpose)];
  co_await Spend();
  Result<void> here = Here(power);
  if (!here) co_return here;
  const block::DiskImage::WriteId id = image_.Write(at, from);
  const Offset end = at + Bytes(from.size());
  std::erase_if(bad_, [&](const Range& bad) { return at <= bad.begin && bad.end <= end; });
  co_await Spend();
  here = Here(power);
  if (power != power_) co_return here;  // a cut has decided about it
  if (!here) co_return here;
  if (io.durable && poisoned_) co_return Fail(Errc::kIo, "an earlier flush failed");
  if (io.durable || !options_.volatile_cache) {
    image_.Persist(id);
  } else {
    completed_.push_back(id);
  }
  co_return here;
}

Task<Result<void>> SimDisk::Flush(block::IoContext) {
  const std::uint64_t power = power_;
  ++ops_;
  ++flushes_;
  std::vector<block::DiskImage::WriteId> covered = completed_;
  co_await Spend();
  Result<void> here = Here(power);
  if (!here) co_return here;
  if (fail_flush_) poisoned_ = true;
  fail_flush_ = false;
  if (poisoned_) co_return Fail(Errc::kIo, "flush failed");
  for (const block::DiskImage::WriteId id : covered) {
    // Another flush may have been quicker.
    if (std::erase(completed_, id) > 0) image_.Persist(id);
  }
  co_return here;
}

void SimDisk::PowerOn(const block::CutOptions& cut) {
  image_.Cut(cut, random_);
  completed_.clear();
  ++power_;
  off_ = false;
  poisoned_ = false;
  fail_flush_ = false;
}

std::vector<std::byte> SimDisk::Peek(Offset at, Bytes length) const {
  std::vector<std::byte> bytes(length.size());
  image_.Read(at, bytes);
  return bytes;
}

}  // namespace labrack::sim
