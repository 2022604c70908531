// Env: where code of storage/ and of the workload engine gets time and waiting from. HostEnv
// (host_env.h) blocks the calling thread; the reactors of the storage core suspend the coroutine
// instead. Randomness does not come from here: every part is handed a Seed.
#pragma once

#include <atomic>
#include <cstdint>

#include "storage/base/clock.h"
#include "storage/base/result.h"
#include "storage/runtime/task.h"

namespace labrack::runtime {

// Asked from any thread, or from a signal handler, to stop something; seen at the next operation,
// and by a sleep at once. Never unset.
class CancelToken {
 public:
  void Cancel();
  bool cancelled() const { return word_.load(std::memory_order_relaxed) != 0; }

  // Grows with every Cancel of any token: reactors look through what waits only when it has grown.
  static std::uint64_t CancelCount() { return cancel_count_.load(std::memory_order_acquire); }

  // Blocks the calling thread until `until` (CLOCK_MONOTONIC) or until cancelled. For HostEnv.
  void WaitOnHost(TimePoint until) const;

 private:
  static std::atomic<std::uint64_t> cancel_count_;
  std::atomic<std::uint32_t> word_ = 0;  // a futex: 0, or 1 once cancelled
};

// Rung by one task for one other that waits for something of it. A ring is remembered until the
// next wait, so none is lost; whoever was woken looks himself whether it is there.
class Bell {
 public:
  void Ring();
  // Whether it was rung since this was last asked.
  bool TakeRing() { return word_.exchange(0, std::memory_order_acq_rel) != 0; }

  // Blocks the calling thread until it is rung. For HostEnv.
  void WaitOnHost();

 private:
  std::atomic<std::uint32_t> word_ = 0;  // a futex: 1 once rung
};

class Env : public Clock {
 public:
  // Waits until `until`, or until `cancel` (may be null) is set, which gives kCancelled. An instant
  // that has passed is no wait.
  virtual Task<Result<void>> SleepUntil(TimePoint until, const CancelToken* cancel) = 0;

  // Waits until the bell is rung, and takes the ring. There is no limit: whoever rings it must
  // also ring it at his end.
  virtual Task<void> WaitFor(Bell* bell) = 0;
};

}  // namespace labrack::runtime
