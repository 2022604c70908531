// Progress for logs: one line per change of state, a heartbeat while nothing
// changes, and nothing that moves a cursor.
//
//   12:05:01 r-7f3a progress trial=3/6 pct=41 ops=604000 p99_ms=1.9 hosts=8/8 eta_s=1260
#pragma once

#include <string>
#include <vector>

#include "controller/cli/run_state.h"

namespace labrack::cli {

constexpr Nanoseconds kHeartbeat = std::chrono::seconds(30);

// The lines of one event. `before` is what was known before it, `after` what is known with it.
std::vector<std::string> PlainLines(const RunState& before, const RunState& after,
                                    const v1::RunEvent& event, std::string_view clock);
// The lines of an event's note, fit for a terminal; slow watchers get several notes at once.
std::vector<std::string> NotesOf(const v1::RunEvent& event);
// The heartbeat's line.
std::string PlainHeartbeat(const RunState& state, TimePoint now, std::string_view clock);

// "12:05:01" in the local time zone.
std::string ClockText(Nanoseconds wall);

}  // namespace labrack::cli
