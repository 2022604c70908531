// Waiting for what another thread or process does.
#pragma once

#include <chrono>
#include <thread>

#include "storage/base/clock.h"

namespace labrack::e2e {

// Asks until it holds; false after `longest`.
template <typename Holds>
bool WaitUntil(Nanoseconds longest, const Holds& holds) {
  const TimePoint limit = MonotonicClock().Now() + longest;
  while (!holds()) {
    if (MonotonicClock().Now() >= limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace labrack::e2e
