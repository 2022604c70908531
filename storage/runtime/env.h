// Env: where code of storage/ and of the workload engine gets time and waiting from. HostEnv
// (host_env.h) blocks the calling thread; the reactors of the storage core suspend the coroutine
// instead. Randomness does not come from here: every part is handed a Seed.
#pragma once

#include <atomic>

#include "storage/base/clock.h"
#include "storage/base/result.h"
#include "storage/runtime/task.h"

namespace labrack::runtime {

// Asked from any thread to stop something; seen at the next operation or sleep. Never unset.
class CancelToken {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_ = false;
};

class Env : public Clock {
 public:
  // Waits until `until`, or until `cancel` (may be null) is set, which gives kCancelled within 50
  // ms.
  virtual Task<Result<void>> SleepUntil(TimePoint until, const CancelToken* cancel) = 0;
};

}  // namespace labrack::runtime
