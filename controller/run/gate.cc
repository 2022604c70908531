#include "controller/run/gate.h"

#include <algorithm>
#include <utility>

namespace labrack::run {
namespace {

// A host says that it missed its start only once the instant has come on its own clock, which may
// be ahead of ours by the uncertainty that we accept.
constexpr Nanoseconds kMissedTolerance = std::chrono::milliseconds(50);

}  // namespace

void Gate::Ready(const std::string& host, std::uint32_t gate_index, TimePoint now) {
  if (!hosts_.contains(host)) return;
  if (state_ == State::kStarted && gate_index == gate_index_) {
    // An earlier GateReady may have been under way for long: only what is said after the start is
    // about this start.
    if (now + kMissedTolerance >= start_) missed_.insert(host);
    return;
  }
  standing_[host] = gate_index;
}

void Gate::Answer(const std::string& host, std::uint64_t arming, Reply reply,
                  const std::string& detail) {
  if (state_ != State::kArming || arming != arming_) return;
  switch (reply) {
    case Reply::kArmed:
      acknowledged_.insert(host);
      return;
    case Reply::kNotAtGate:
      // After a restart of the controller: it was told Go before, and has started or is about to.
      standing_.erase(host);
      [[fallthrough]];
    case Reply::kCannot:
      refusal_ = host + ": " + detail;
      return;
  }
}

Gate::Decision Gate::Decide(TimePoint now, Nanoseconds round_trip_worst,
                            std::uint64_t next_arming) {
  switch (state_) {
    case State::kWaiting: {
      if (std::optional<std::string> late = Latecomer()) return Broken(*std::move(late));
      if (standing_.size() < hosts_.size()) return {};
      if (std::optional<std::string> mismatch = Mismatch()) return Broken(*std::move(mismatch));
      return Arm(now, round_trip_worst, next_arming);
    }
    case State::kArming:
      if (now >= start_) {
        // No Go has left for this arming, so no host starts. All that still stand are armed anew;
        // who was forgotten meanwhile is waited for. A refusal waits for the instant, too: what was
        // in the way (a clock that is not known yet) needs time.
        state_ = State::kWaiting;
        return Decide(now, round_trip_worst, next_arming);
      }
      if (acknowledged_.size() < hosts_.size()) return {};
      if (start_ - now < now - armed_at_) {
        // Go may take as long as Arm and its answers did, and would come too late somewhere. None
        // has left, so the same hosts are armed for a later instant.
        state_ = State::kWaiting;
        return Decide(now, round_trip_worst, next_arming);
      }
      state_ = State::kStarted;
      opened_ = true;
      missed_.clear();
      standing_.clear();
      return {.step = Step::kGo,
              .gate_index = gate_index_,
              .arming = arming_,
              .start = start_,
              .reason = {}};
    case State::kStarted: {
      Decision decision = AfterStart(now);
      return state_ == State::kWaiting ? Decide(now, round_trip_worst, next_arming) : decision;
    }
  }
  return {};
}

Gate::Decision Gate::Arm(TimePoint now, Nanoseconds round_trip_worst, std::uint64_t next_arming) {
  if (tries_ >= kTriesMax) {
    return Broken("the hosts could not be started together in " + std::to_string(kTriesMax) +
                  " tries" + (refusal_.empty() ? "" : "; last: " + refusal_));
  }
  gate_index_ = standing_.begin()->second;
  state_ = State::kArming;
  arming_ = next_arming;
  armed_at_ = now;
  acknowledged_.clear();
  const Nanoseconds lead = std::max(lead_min_, 10 * round_trip_worst) * (1 << tries_);
  start_ = now + std::min(lead, std::max(kLeadMax, lead_min_));
  ++tries_;
  return {.step = Step::kArm,
          .gate_index = gate_index_,
          .arming = arming_,
          .start = start_,
          .reason = {}};
}

Gate::Decision Gate::AfterStart(TimePoint now) {
  if (missed_.size() == hosts_.size()) {
    for (const std::string& host : hosts_) standing_[host] = gate_index_;
    state_ = State::kWaiting;
    return {};
  }
  const bool all_at_next = standing_.size() == hosts_.size();
  const bool decided = now >= start_ + kDecideAfter;
  if (!missed_.empty() && (decided || !standing_.empty())) {
    std::string who;
    for (const std::string& host : missed_) who += (who.empty() ? "" : ", ") + host;
    return Broken(who + " missed the common start, which the others kept");
  }
  if (all_at_next || decided) WaitForNext();
  return {};
}

void Gate::WaitForNext() {
  state_ = State::kWaiting;
  passed_ = gate_index_;
  tries_ = 0;
  refusal_.clear();
}

Gate::Decision Gate::Broken(std::string reason) const {
  return {.step = Step::kBroken,
          .gate_index = gate_index_,
          .arming = arming_,
          .start = start_,
          .reason = std::move(reason)};
}

// Who still stands at a gate that was taken for passed by all.
std::optional<std::string> Gate::Latecomer() const {
  for (const auto& [host, gate] : standing_) {
    if (passed_ && gate <= *passed_) return host + " missed the common start, and said so late";
  }
  return std::nullopt;
}

std::optional<std::string> Gate::Mismatch() const {
  const auto& [first_host, first_gate] = *standing_.begin();
  for (const auto& [host, gate] : standing_) {
    if (gate == first_gate) continue;
    return first_host + " stands at step " + std::to_string(first_gate) + " and " + host +
           " at step " + std::to_string(gate);
  }
  return std::nullopt;
}

std::optional<TimePoint> Gate::wake() const {
  switch (state_) {
    case State::kWaiting:
      return std::nullopt;
    case State::kArming:
      return start_;
    case State::kStarted:
      return start_ + kDecideAfter;
  }
  return std::nullopt;
}

}  // namespace labrack::run
