#include "agent/session/gate.h"

#include <fmt/format.h>

#include "storage/base/units.h"

namespace labrack::session {

void Gate::Reached(std::uint32_t gate_index) {
  if (index_ == gate_index) return;
  index_ = gate_index;
  armed_.reset();
}

void Gate::Left() {
  index_.reset();
  armed_.reset();
}

Gate::Answer Gate::Arm(const v1::Arm& arm, const std::optional<ClockEstimate>& clock,
                       TimePoint now) {
  if (index_ != arm.gate_index()) {
    return {v1::COMMAND_RESULT_REFUSED, "NOT_AT_GATE",
            index_ ? fmt::format("stands at gate {}, not {}", *index_, arm.gate_index())
                   : fmt::format("does not stand at gate {}", arm.gate_index())};
  }
  const Nanoseconds limit(arm.uncertainty_max_ns());
  if (!clock || (limit > Nanoseconds(0) && clock->uncertainty > limit)) {
    return {v1::COMMAND_RESULT_REFUSED, "CLOCK_UNCERTAIN",
            clock ? fmt::format("the controller's clock is known to {}, {} are asked for",
                                FormatDuration(clock->uncertainty), FormatDuration(limit))
                  : std::string("the controller's clock is not known yet")};
  }
  const TimePoint start = ToAgentClock(Nanoseconds(arm.start_controller_mono_ns()), *clock);
  if (start <= now) {
    return {v1::COMMAND_RESULT_REFUSED, "TOO_LATE",
            fmt::format("the start passed {} ago", FormatDuration(now - start))};
  }
  if (armed_ && armed_->confirmed) {
    return {v1::COMMAND_RESULT_REFUSED, "NOT_AT_GATE", "an earlier arming was confirmed"};
  }
  armed_ = Armed{.arming = arm.arming(), .start = start};
  return {};
}

std::optional<TimePoint> Gate::Go(const v1::Go& go, TimePoint now) {
  if (index_ != go.gate_index() || !armed_ || armed_->arming != go.arming()) return std::nullopt;
  if (armed_->confirmed || armed_->start <= now) return std::nullopt;
  armed_->confirmed = true;
  return armed_->start;
}

bool Gate::Expire(TimePoint now) {
  if (!armed_ || armed_->confirmed || now < armed_->start) return false;
  armed_.reset();
  return true;
}

std::optional<TimePoint> Gate::armed_until() const {
  if (!armed_ || armed_->confirmed) return std::nullopt;
  return armed_->start;
}

}  // namespace labrack::session
