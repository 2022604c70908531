#include "storage/base/clock.h"

#include <time.h>

namespace labrack {
namespace {

Nanoseconds Read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

class RealClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Read(CLOCK_MONOTONIC)); }
};

}  // namespace

const Clock& MonotonicClock() {
  static const RealClock clock;
  return clock;
}

Nanoseconds WallClockNow() { return Read(CLOCK_REALTIME); }

}  // namespace labrack
