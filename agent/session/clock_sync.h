// ClockSync: how the controller's monotonic clock stands to ours, from heartbeats that are
// answered.
//
//   agent       t0 ----------------------- t3   offset (controller - agent)
//                 \                       /         = ((t1 - t0) + (t2 - t3)) / 2
//   controller     t1 ---------------- t2       error <= half of the round trip
//                                                  = (t3 - t0 - (t2 - t1)) / 2
//
// The probe with the smallest error is believed; its error grows with age, since clocks drift. So
// one quick answer counts more than many slow ones, whatever the network and the threads of gRPC do
// to the others.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "storage/base/clock.h"

namespace labrack::session {

struct ClockEstimate {
  Nanoseconds offset{0};       // controller = agent + offset
  Nanoseconds uncertainty{0};  // the true offset is at most that far away
  Nanoseconds round_trip{0};   // of the probe
};

struct ClockProbe {
  TimePoint sent;                   // t0, ours
  Nanoseconds controller_received;  // t1, since the start of the controller's clock
  Nanoseconds controller_sent;      // t2
  TimePoint received;               // t3, ours
};

// Thread-safe.
class ClockSync {
 public:
  static constexpr std::size_t kProbesMax = 64;
  // Crystals of cheap machines are off by up to 50 millionths, in opposite directions.
  static constexpr double kDriftMax = 100e-6;

  // A probe whose times cannot be (an answer before the question) is dropped.
  void Add(const ClockProbe& probe);
  // The best probe as of `now`; nullopt before the first.
  std::optional<ClockEstimate> Best(TimePoint now) const;
  // Another controller: its clock has another start.
  void Reset();

 private:
  mutable std::mutex mutex_;  // guards probes_
  std::deque<ClockProbe> probes_;
};

// An instant of the controller's clock on ours.
TimePoint ToAgentClock(Nanoseconds controller_mono, const ClockEstimate& estimate);

}  // namespace labrack::session
