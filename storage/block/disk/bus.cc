#include "storage/block/disk/bus.h"

#include <algorithm>

#include "storage/base/check.h"

namespace labrack::block {

Result<void> BusOptions::Validate() const {
  if (bytes_per_second == 0 || arbitration_ns < 0) {
    return Fail(Errc::kInvalidArgument, "bus",
                "moves bytes, and its arbitration takes 0 ns or more");
  }
  return {};
}

Bus::Bus(BusOptions options) : options_(options) { LABRACK_CHECK(options.Validate().has_value()); }

// Rounded up: nothing is ever faster than the bus.
Nanoseconds Bus::Time(Bytes length) const {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t rate = options_.bytes_per_second;
  const std::uint64_t seconds = length.count() / rate;
  const std::uint64_t rest = (length.count() % rate * kSecond + rate - 1) / rate;
  return Nanoseconds(options_.arbitration_ns + static_cast<std::int64_t>(seconds * kSecond + rest));
}

TimePoint Bus::Take(TimePoint from, Bytes length) {
  const Nanoseconds time = Time(length);
  free_at_ = std::max(free_at_, from) + time;
  busy_ += time;
  return free_at_;
}

TimePoint Bus::TakeUntil(TimePoint until, Bytes length) {
  return Take(until - Time(length), length);
}

}  // namespace labrack::block
