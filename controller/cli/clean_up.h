// How long the clean-up of a cancelled trial may take, as the agents do it (agent/session):
//
//   stop --kStopToTerm, and of a tear-down that has begun its timeouts.teardown + kUndoGrace
//        --> TERM --kTermToKill--> KILL --> --undo, timeouts.teardown + kUndoGrace
//
// Whoever waits less calls a clean-up that goes well a failure, and kills it half-way.
#pragma once

#include "labrack/v1/playbook.pb.h"
#include "storage/base/clock.h"

namespace labrack::cli {

// The agents' own limits; a test holds them against agent/session.
constexpr Nanoseconds kStopToTerm = std::chrono::seconds(70);
constexpr Nanoseconds kTermToKill = std::chrono::seconds(10);
constexpr Nanoseconds kUndoGrace = std::chrono::minutes(1);
// The playbook's default, for a lab that runs none.
constexpr Nanoseconds kTearDownDefault = std::chrono::minutes(2);
// For saying so, and for what is between the steps.
constexpr Nanoseconds kCleanUpMargin = std::chrono::seconds(10);

// The whole of the above. A tear-down of zero means the default.
constexpr Nanoseconds CleanUpLimit(Nanoseconds tear_down) {
  const Nanoseconds once = (tear_down > Nanoseconds(0) ? tear_down : kTearDownDefault) + kUndoGrace;
  return kStopToTerm + once + kTermToKill + once + kCleanUpMargin;
}
inline Nanoseconds CleanUpLimit(const v1::PhaseTimeouts& timeouts) {
  return CleanUpLimit(Nanoseconds(timeouts.teardown()));
}

}  // namespace labrack::cli
