#include "agent/session/clock_sync.h"

namespace labrack::session {
namespace {

ClockEstimate EstimateOf(const ClockProbe& probe, TimePoint now) {
  const Nanoseconds there = probe.controller_received - probe.sent.time_since_epoch();
  const Nanoseconds back = probe.controller_sent - probe.received.time_since_epoch();
  ClockEstimate estimate;
  // Not (there + back) / 2: the sum of two large offsets could overflow.
  estimate.offset = back + (there - back) / 2;
  estimate.round_trip =
      (probe.received - probe.sent) - (probe.controller_sent - probe.controller_received);
  const double age = static_cast<double>((now - probe.received).count());
  const auto drift = Nanoseconds(static_cast<Nanoseconds::rep>(age * ClockSync::kDriftMax));
  estimate.uncertainty = estimate.round_trip / 2 + drift;
  return estimate;
}

}  // namespace

void ClockSync::Add(const ClockProbe& probe) {
  const Nanoseconds whole = probe.received - probe.sent;
  const Nanoseconds there = probe.controller_sent - probe.controller_received;
  if (whole < Nanoseconds(0) || there < Nanoseconds(0) || there > whole) return;
  const std::lock_guard lock(mutex_);
  probes_.push_back(probe);
  if (probes_.size() > kProbesMax) probes_.pop_front();
}

std::optional<ClockEstimate> ClockSync::Best(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  std::optional<ClockEstimate> best;
  for (const ClockProbe& probe : probes_) {
    const ClockEstimate estimate = EstimateOf(probe, now);
    if (!best || estimate.uncertainty < best->uncertainty) best = estimate;
  }
  return best;
}

void ClockSync::Reset() {
  const std::lock_guard lock(mutex_);
  probes_.clear();
}

TimePoint ToAgentClock(Nanoseconds controller_mono, const ClockEstimate& estimate) {
  return TimePoint(controller_mono - estimate.offset);
}

}  // namespace labrack::session
