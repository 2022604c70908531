#include "storage/runtime/host_env.h"

#include <algorithm>
#include <time.h>

namespace labrack::runtime {
namespace {

constexpr Nanoseconds kCancelCheckInterval = std::chrono::milliseconds(50);

void SleepThread(TimePoint until) {
  const Nanoseconds since_start = until.time_since_epoch();
  timespec at{};
  at.tv_sec = since_start.count() / 1'000'000'000;
  at.tv_nsec = since_start.count() % 1'000'000'000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

}  // namespace

Task<Result<void>> HostEnv::SleepUntil(TimePoint until, const CancelToken* cancel) {
  for (TimePoint now = Now(); now < until; now = Now()) {
    if (cancel != nullptr && cancel->cancelled())
      co_return std::unexpected(Error(Errc::kCancelled));
    SleepThread(cancel == nullptr ? until : std::min(until, now + kCancelCheckInterval));
  }
  co_return Result<void>();
}

}  // namespace labrack::runtime
