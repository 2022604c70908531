// Gate: how the hosts of a trial begin a step at one instant. Pure; the agent's loop feeds it.
//
//   worker at gate --> GateReady --> (controller: all ready) --> Arm(start) --> Go --> it starts
//                          ^                                         |                 at `start`
//                          +------ no Go before `start`: disarm -----+
//
// Arm names an instant of the controller's clock; it is mapped onto ours when it is armed. Nobody
// starts on Arm alone: had one host not heard it, the others would measure without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/session/clock_sync.h"
#include "labrack/v1/fleet.pb.h"

namespace labrack::session {

class Gate {
 public:
  // The worker stands at the gate, or has left it.
  void Reached(std::uint32_t gate_index);
  void Left();
  std::optional<std::uint32_t> index() const { return index_; }

  struct Answer {
    v1::CommandResult result = v1::COMMAND_RESULT_OK;
    std::string code;  // NOT_AT_GATE, CLOCK_UNCERTAIN, TOO_LATE
    std::string detail;
  };
  Answer Arm(const v1::Arm& arm, const std::optional<ClockEstimate>& clock, TimePoint now);
  // The instant to start at; nullopt: not armed so, or too late.
  std::optional<TimePoint> Go(const v1::Go& go, TimePoint now);
  // True, once: the instant passed without Go, the gate is disarmed, and GateReady is due again.
  bool Expire(TimePoint now);
  // When Expire has to be asked again.
  std::optional<TimePoint> armed_until() const;

 private:
  struct Armed {
    std::uint64_t arming = 0;
    TimePoint start;
    bool confirmed = false;
  };
  std::optional<std::uint32_t> index_;
  std::optional<Armed> armed_;
};

}  // namespace labrack::session
