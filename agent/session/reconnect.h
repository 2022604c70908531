// ReconnectWindows: when to try again. In each window the attempt is made at a uniformly random
// instant, and the rest of the window is waited out, so that agents that lost the controller
// together come back evenly spread; windows double. (Windowed jitter, as Buildkite's agents do it.)
#pragma once

#include "storage/base/clock.h"
#include "storage/base/random.h"
#include "storage/base/session_limits.h"

namespace labrack::session {

class ReconnectWindows {
 public:
  static constexpr Nanoseconds kFirst = std::chrono::seconds(1);
  static constexpr Nanoseconds kLongest = kReconnectWindowMax;

  explicit ReconnectWindows(Seed seed) : random_(seed) {}

  // A connection stood: the next loss begins with a window of this length again (as the controller
  // told; 0: kFirst).
  void Reset(Nanoseconds first);
  // The controller does not want us as we are: nothing is to be had by asking often.
  void Slow() { window_ = kLongest; }
  // How long to wait from now until the next attempt.
  Nanoseconds Next();

 private:
  Random random_;
  Nanoseconds window_ = kFirst;
  Nanoseconds rest_{0};  // of the window in which the last attempt was made
};

}  // namespace labrack::session
