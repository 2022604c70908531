// What agents and the controller must agree on beyond the messages themselves.
#pragma once

#include <chrono>

#include "storage/base/clock.h"
#include "storage/base/units.h"

namespace labrack {

// An agent without a controller tries once in each window; windows double up to this one. After an
// attempt at the start of one window the next may come at the end of the following one, so that up
// to twice this time passes between two attempts.
inline constexpr Nanoseconds kReconnectWindowMax = std::chrono::seconds(64);

// One message of an agent. A batch of events is at most 256 KiB, or one record; a record of the
// spool is at most 1 MiB (results are cut to 900 KiB).
inline constexpr Bytes kAgentMessageMax = 1_MiB + 64_KiB;

}  // namespace labrack
