#include "storage/runtime/host_env.h"

#include <cerrno>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace labrack::runtime {
namespace {

timespec ToTimespec(TimePoint until) {
  const Nanoseconds since_start = until.time_since_epoch();
  timespec at{};
  at.tv_sec = since_start.count() / 1'000'000'000;
  at.tv_nsec = since_start.count() % 1'000'000'000;
  return at;
}

// The word of a CancelToken or Bell as the futex call wants it.
long Futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* until) {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, until, nullptr,
                 FUTEX_BITSET_MATCH_ANY);
}

void SleepThread(TimePoint until) {
  const timespec at = ToTimespec(until);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

}  // namespace

std::atomic<std::uint64_t> CancelToken::cancel_count_ = 0;

void CancelToken::Cancel() {
  word_.store(1, std::memory_order_relaxed);
  cancel_count_.fetch_add(1, std::memory_order_release);
  Futex(word_, FUTEX_WAKE, INT_MAX, nullptr);
}

// FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC; it returns at once when the word is
// not 0 any more, and early for signals, which the caller's loop deals with.
void CancelToken::WaitOnHost(TimePoint until) const {
  const timespec at = ToTimespec(until);
  Futex(word_, FUTEX_WAIT_BITSET, 0, &at);
}

void Bell::Ring() {
  if (word_.exchange(1, std::memory_order_acq_rel) == 0) Futex(word_, FUTEX_WAKE, 1, nullptr);
}

void Bell::WaitOnHost() {
  while (!TakeRing()) Futex(word_, FUTEX_WAIT_BITSET, 0, nullptr);
}

Task<void> HostEnv::WaitFor(Bell* bell) {
  bell->WaitOnHost();
  co_return;
}

Task<Result<void>> HostEnv::SleepUntil(TimePoint until, const CancelToken* cancel) {
  for (TimePoint now = Now(); now < until; now = Now()) {
    if (cancel == nullptr) {
      SleepThread(until);
      continue;
    }
    if (cancel->cancelled()) co_return std::unexpected(Error(Errc::kCancelled));
    cancel->WaitOnHost(until);
  }
  co_return Result<void>();
}

}  // namespace labrack::runtime
