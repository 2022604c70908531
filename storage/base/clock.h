// Time comes from a Clock that is handed in, never from the system: the storage core, the workload
// engine and the planner run the same in real and in virtual time. TimePoint is a monotonic instant
// of the clock that gave it; instants of two hosts are mapped by agent/session/clock_sync.h, never
// compared.
#pragma once

#include <chrono>

namespace labrack {

using Nanoseconds = std::chrono::nanoseconds;

// Tag of instants that Clock gives out. It is not a std::chrono clock: it has no now().
struct MonotonicTag {
  using rep = Nanoseconds::rep;
  using period = Nanoseconds::period;
  using duration = Nanoseconds;
  using time_point = std::chrono::time_point<MonotonicTag>;
  static constexpr bool is_steady = true;
};
using TimePoint = MonotonicTag::time_point;

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since some fixed start (on a real host: CLOCK_MONOTONIC).
  virtual TimePoint Now() const = 0;
};

// The host's CLOCK_MONOTONIC. For main() and tests of real time; everything else takes a Clock.
const Clock& MonotonicClock();

// Nanoseconds since the Unix epoch (CLOCK_REALTIME), for time stamps that people read. Never used
// to decide.
Nanoseconds WallClockNow();

}  // namespace labrack
