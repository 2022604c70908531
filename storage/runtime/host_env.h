// HostEnv: real time; a sleep blocks the calling thread, which is the client's own.
#pragma once

#include "storage/runtime/env.h"

namespace labrack::runtime {

class HostEnv final : public Env {
 public:
  TimePoint Now() const override { return MonotonicClock().Now(); }
  Task<Result<void>> SleepUntil(TimePoint until, const CancelToken* cancel) override;
  Task<void> WaitFor(Bell* bell) override;
};

}  // namespace labrack::runtime
