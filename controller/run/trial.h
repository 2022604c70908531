// One trial under way: an assignment for each host of its cell, from the first row until all have
// ended. Pure (effects.h).
//
//   PLANNED --agent is there--> OFFERED --ack--> ACCEPTED --first event--> RUNNING --result-->
//   CLOSED
//      |                           |                |                         |
//      +--stopped--> CANCELLED     +--> REFUSED     +--- silent too long -----+--> ABANDONED
//
// A result and CLOSED are one commit. When one host has ended without a result while others stand
// at a gate, the gate can never open, so the others are stopped; what they deliver is kept.
// When the common start itself broke, the trial is begun anew with newer tokens (FurtherAttempt).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/catalog/reader.h"
#include "controller/run/effects.h"
#include "controller/run/gate.h"
#include "labrack/v1/plan.pb.h"

namespace labrack::run {

class Trial {
 public:
  static constexpr std::uint32_t kAttemptsMax = 3;

  // What the trial works with; everything outlives it.
  struct World {
    const AgentDirectory* agents;
    EpochSource* epochs;
    const Options* options;
  };

  // `plan` outlives the trial. `row` is the trial's row, still "planned" for a new one.
  Trial(World world, const v1::Plan& plan, catalog::TrialRow row);

  // A new trial: writes its rows and offers the assignments to the agents that are there.
  void Begin(Moment now, Effects& effects);
  // One that was under way when the controller ended. Agents say in Hello what they hold.
  void Restore(std::vector<catalog::StoredAssignment> assignments);

  // What an agent that has just connected should do about its part, and what is stored of it.
  // `held` is null when it does not hold it. May offer the assignment (again), or give it up when
  // the agent has come back without it.
  struct Desired {
    std::uint64_t epoch = 0;
    v1::WantKind want = v1::WANT_UNSPECIFIED;
    std::uint64_t through_seq = 0;
  };
  std::optional<Desired> OnHello(const std::string& agent_id, const v1::HeldAssignment* held,
                                 Moment now, Effects& effects);
  void OnAssignAck(const v1::CommandAck& ack, const std::string& agent_id, Effects& effects);
  void OnStopAck(const v1::CommandAck& ack, const std::string& agent_id, Effects& effects);
  void OnArmAck(const v1::CommandAck& ack, const std::string& agent_id, std::uint64_t arming);
  void OnGateReady(const v1::GateReady& ready, const std::string& agent_id, Moment now);
  // Records that were not seen before change the state; storing is the caller's.
  void OnEvents(const catalog::StoreEvents& events, const std::string& agent_id, Effects& effects);

  // Level-triggered: every assignment is stopped until it has ended. `by_user`: what has not ended
  // by itself counts as cancelled; otherwise the trial is invalid for this reason.
  void Stop(const std::string& reason, bool by_user, Moment now, Effects& effects);
  // Gates, repetitions and lost agents. Returns agents given up by this call.
  std::vector<std::string> Advance(Moment now, Nanoseconds lost_after, Effects& effects);

  bool ended() const { return open_count_ == 0; }
  // Once it has ended: it is void for no other reason than that its hosts were not started
  // together (a message was late, or the controller was killed between two of them). The row of a
  // further attempt; nullopt when that would not help, or was tried kAttemptsMax times.
  std::optional<catalog::TrialRow> FurtherAttempt() const;
  // The row with its final state, reason, skew and overlap. Only once it has ended.
  catalog::TrialRow Outcome() const;
  const catalog::TrialRow& row() const { return row_; }
  std::string Label() const;  // "trial 3 (ext4/pages)"
  std::optional<TimePoint> wake() const;

 private:
  struct Host {
    catalog::AssignmentRow row;
    std::size_t spec_index = 0;
    std::uint64_t through_seq = 0;
    std::optional<v1::AssignmentResult> result;
    TimePoint repeat_at{};
  };

  void MakeSpecs();
  void MakeGate();
  void Save(const Host& host, Effects& effects);
  void RenewToken(Host& host);
  void Offer(Host& host, Moment now, Effects& effects);
  void WantStop(Host& host, Moment now, Effects& effects);
  void End(Host& host, catalog::AssignmentState state, std::string reason, Effects& effects);
  void NoteEnd(const Host& host);
  void TakeRecord(Host& host, const v1::EventRecord& record, Effects& effects);
  void AdvanceHost(Host& host, Moment now, Nanoseconds lost_after, Effects& effects,
                   std::vector<std::string>& lost);
  void AdvanceGate(Moment now, Effects& effects);
  void SendGate(const Gate::Decision& decision, Effects& effects);
  void StopWhenDoomed(Moment now, Effects& effects);
  Host* FindHost(const std::string& agent_id);
  v1::TrialRecord Record() const;

  World world_;
  const v1::Plan* plan_;
  catalog::TrialRow row_;
  std::vector<v1::AssignmentSpec> specs_;
  std::map<std::string, Host> hosts_;  // by agent id
  std::size_t open_count_ = 0;         // hosts that have not ended
  std::optional<Gate> gate_;           // only with several hosts
  std::string doomed_by_;              // first host that, unasked, ended without measuring well
  std::string stop_reason_;            // set by Stop
  bool stopped_by_user_ = false;
};

}  // namespace labrack::run
