#include "controller/run/trial.h"

#include <algorithm>
#include <set>
#include <utility>

#include "controller/compare/validity.h"
#include "controller/plan/planner.h"
#include "controller/run/commands.h"

namespace labrack::run {

using catalog::AssignmentState;

namespace {

// Codes of refusals that mean something to us.
constexpr const char* kNotAtGate = "NOT_AT_GATE";
constexpr const char* kSayAgain = "OLD_EPOCH_HELD";

}  // namespace

Trial::Trial(World world, const v1::Plan& plan, catalog::TrialRow row)
    : world_(world), plan_(&plan), row_(std::move(row)) {
  MakeSpecs();
}

void Trial::MakeSpecs() {
  specs_ = plan::MakeAssignments(*plan_, plan_->trials(static_cast<int>(row_.index)), row_.run_id);
}

void Trial::MakeGate() {
  if (specs_.empty() || !specs_.front().barrier()) return;
  std::set<std::string> names;
  for (const auto& [agent_id, host] : hosts_) names.insert(agent_id);
  gate_.emplace(std::move(names), world_.options->start_lead);
}

void Trial::Begin(Moment now, Effects& effects) {
  std::map<std::string, std::string> names;
  for (const v1::PlannedHost& host : plan_->hosts()) names[host.agent_id()] = host.host_name();
  for (std::size_t index = 0; index < specs_.size(); ++index) {
    v1::AssignmentSpec& spec = specs_[index];
    spec.set_epoch(world_.epochs->Next());
    Host host;
    host.spec_index = index;
    host.row.id = spec.assignment_id();
    host.row.run_id = row_.run_id;
    host.row.trial_index = row_.index;
    host.row.agent_id = spec.assignment_id().substr(spec.assignment_id().rfind('/') + 1);
    host.row.host_name = names[host.row.agent_id];
    host.row.epoch = host.row.offered_epoch = spec.epoch();
    hosts_.emplace(host.row.agent_id, std::move(host));
  }
  open_count_ = hosts_.size();
  MakeGate();
  row_.state = catalog::TrialState::kRunning;
  effects.changes.emplace_back(catalog::UpdateTrial{row_});
  for (auto& [agent_id, host] : hosts_) {
    if (world_.agents->Look(agent_id).connected) {
      Offer(host, now, effects);
    } else {
      Save(host, effects);
    }
  }
}

void Trial::Restore(std::vector<catalog::StoredAssignment> assignments) {
  std::map<std::string, std::size_t> index_of;
  for (std::size_t index = 0; index < specs_.size(); ++index) {
    index_of[specs_[index].assignment_id()] = index;
  }
  for (catalog::StoredAssignment& stored : assignments) {
    const auto found = index_of.find(stored.row.id);
    if (found == index_of.end()) continue;
    specs_[found->second].set_epoch(stored.row.offered_epoch);
    if (stored.row.stop_wanted && stop_reason_.empty()) stop_reason_ = stored.row.stop_reason;
    const std::string agent_id = stored.row.agent_id;
    Host& host = hosts_[agent_id];
    host.spec_index = found->second;
    host.through_seq = stored.through_seq;
    host.result = std::move(stored.result);
    host.row = std::move(stored.row);
    if (IsFinal(host.row.state)) {
      NoteEnd(host);
    } else {
      ++open_count_;
    }
  }
  MakeGate();
  if (gate_) gate_->AssumeOpened();
}

Trial::Host* Trial::FindHost(const std::string& agent_id) {
  const auto found = hosts_.find(agent_id);
  return found == hosts_.end() ? nullptr : &found->second;
}

void Trial::Save(const Host& host, Effects& effects) {
  effects.changes.emplace_back(catalog::PutAssignment{host.row});
  effects.touched[row_.run_id].insert(row_.index);
}

// Agents refuse tokens of an older controller epoch than the newest they have seen. A token that no
// agent can hold is therefore exchanged.
void Trial::RenewToken(Host& host) {
  if (host.row.offered_epoch >> EpochSource::kCounterBits >= world_.epochs->controller_epoch()) {
    return;
  }
  host.row.epoch = host.row.offered_epoch = world_.epochs->Next();
  host.through_seq = 0;
  specs_[host.spec_index].set_epoch(host.row.epoch);
}

void Trial::Offer(Host& host, Moment now, Effects& effects) {
  if (host.row.state == AssignmentState::kPlanned) {
    RenewToken(host);
    host.row.state = AssignmentState::kOffered;
    Save(host, effects);
  }
  host.repeat_at = now.mono + world_.options->repeat_after;
  effects.commands.push_back(AssignCommand(host.row.agent_id, specs_[host.spec_index]));
}

void Trial::WantStop(Host& host, Moment now, Effects& effects) {
  host.repeat_at = now.mono + world_.options->repeat_after;
  if (!world_.agents->Look(host.row.agent_id).connected) return;  // Hello brings it up again
  effects.commands.push_back(WantCommand(host.row.agent_id, host.row.id, host.row.offered_epoch,
                                         v1::WANT_STOP, host.row.stop_reason));
}

void Trial::End(Host& host, AssignmentState state, std::string reason, Effects& effects) {
  if (IsFinal(host.row.state)) return;
  host.row.state = state;
  host.row.reason = std::move(reason);
  --open_count_;
  Save(host, effects);
  NoteEnd(host);
}

void Trial::NoteEnd(const Host& host) {
  const bool measured =
      host.result.has_value() && host.result->measurement().outcome() == v1::OUTCOME_OK;
  if (measured || !doomed_by_.empty()) return;
  // Who was stopped by us is not to blame, unless it never came back.
  if (host.row.stop_wanted && host.row.state != AssignmentState::kAbandoned) return;
  const std::string& name = host.row.host_name.empty() ? host.row.agent_id : host.row.host_name;
  doomed_by_ = name + (host.row.reason.empty() ? " ended" : ": " + host.row.reason);
}

std::optional<Trial::Desired> Trial::OnHello(const std::string& agent_id,
                                             const v1::HeldAssignment* held, Moment now,
                                             Effects& effects) {
  Host* host = FindHost(agent_id);
  if (host == nullptr || IsFinal(host->row.state)) return std::nullopt;
  if (gate_) gate_->Forget(agent_id);
  if (held != nullptr && held->epoch() == host->row.offered_epoch) {
    const AssignmentState state = held->state() == v1::ASSIGNMENT_STATE_ACCEPTED
                                      ? AssignmentState::kAccepted
                                      : AssignmentState::kRunning;
    if (host->row.state < state) {
      host->row.state = state;
      Save(*host, effects);
    }
    return Desired{.epoch = host->row.offered_epoch,
                   .want = host->row.stop_wanted ? v1::WANT_STOP : v1::WANT_RUN,
                   .through_seq = host->through_seq};
  }
  if (host->row.state > AssignmentState::kOffered) {
    host->row.epoch = world_.epochs->Next();
    End(*host, AssignmentState::kAbandoned, "the agent came back without the trial", effects);
  } else if (host->row.stop_wanted) {
    End(*host, AssignmentState::kCancelled, host->row.stop_reason, effects);
  } else {
    // It is not held, so the token can be renewed: PLANNED says just that.
    host->row.state = AssignmentState::kPlanned;
    Offer(*host, now, effects);
  }
  return std::nullopt;
}

void Trial::OnAssignAck(const v1::CommandAck& ack, const std::string& agent_id, Effects& effects) {
  Host* host = FindHost(agent_id);
  if (host == nullptr || ack.epoch() != host->row.offered_epoch) return;
  if (host->row.state != AssignmentState::kOffered) return;  // the answer to a repetition
  if (ack.result() == v1::COMMAND_RESULT_OK) {
    host->row.state = AssignmentState::kAccepted;
    Save(*host, effects);
    return;
  }
  if (ack.code() == kSayAgain) return;  // repeated later
  End(*host, AssignmentState::kRefused, "refused: " + RefusalText(ack), effects);
}

void Trial::OnStopAck(const v1::CommandAck& ack, const std::string& agent_id, Effects& effects) {
  Host* host = FindHost(agent_id);
  if (host == nullptr || ack.epoch() != host->row.offered_epoch) return;
  if (ack.result() == v1::COMMAND_RESULT_OK || !host->row.stop_wanted) return;
  // Commands keep their order within a session, so the agent has seen the Assign: it does not hold
  // the trial, and will not.
  if (host->row.state > AssignmentState::kOffered) {
    host->row.epoch = world_.epochs->Next();
    End(*host, AssignmentState::kAbandoned, "the agent does not hold the trial any more", effects);
  } else {
    End(*host, AssignmentState::kCancelled, host->row.stop_reason, effects);
  }
}

void Trial::OnArmAck(const v1::CommandAck& ack, const std::string& agent_id, std::uint64_t arming) {
  Host* host = FindHost(agent_id);
  if (!gate_ || host == nullptr || ack.epoch() != host->row.offered_epoch) return;
  Gate::Reply reply = Gate::Reply::kArmed;
  if (ack.result() != v1::COMMAND_RESULT_OK) {
    reply = ack.code() == kNotAtGate ? Gate::Reply::kNotAtGate : Gate::Reply::kCannot;
  }
  gate_->Answer(agent_id, arming, reply, RefusalText(ack));
}

void Trial::OnGateReady(const v1::GateReady& ready, const std::string& agent_id, Moment now) {
  Host* host = FindHost(agent_id);
  if (!gate_ || host == nullptr || ready.epoch() != host->row.offered_epoch) return;
  if (!IsFinal(host->row.state)) gate_->Ready(agent_id, ready.gate_index(), now.mono);
}

void Trial::OnEvents(const catalog::StoreEvents& events, const std::string& agent_id,
                     Effects& effects) {
  Host* host = FindHost(agent_id);
  if (host == nullptr || events.epoch != host->row.offered_epoch) return;
  for (const v1::EventRecord& record : events.records) {
    if (record.seq() <= host->through_seq) continue;
    host->through_seq = record.seq();
    TakeRecord(*host, record, effects);
  }
}

void Trial::TakeRecord(Host& host, const v1::EventRecord& record, Effects& effects) {
  if (IsFinal(host.row.state)) return;  // late: stored, but nothing changes
  if (record.has_result()) {
    host.result = record.result();
    End(host, AssignmentState::kClosed, ResultText(record.result()), effects);
    return;
  }
  if (host.row.state == AssignmentState::kRunning) return;
  host.row.state = AssignmentState::kRunning;
  Save(host, effects);
}

void Trial::Stop(const std::string& reason, bool by_user, Moment now, Effects& effects) {
  if (stop_reason_.empty()) stop_reason_ = reason;
  stopped_by_user_ = stopped_by_user_ || by_user;
  for (auto& [agent_id, host] : hosts_) {
    if (IsFinal(host.row.state) || host.row.stop_wanted) continue;
    if (host.row.state == AssignmentState::kPlanned) {
      End(host, AssignmentState::kCancelled, reason, effects);
      continue;
    }
    host.row.stop_wanted = true;
    host.row.stop_reason = reason;
    Save(host, effects);
    WantStop(host, now, effects);
  }
}

std::vector<std::string> Trial::Advance(Moment now, Nanoseconds lost_after, Effects& effects) {
  std::vector<std::string> lost;
  for (auto& [agent_id, host] : hosts_) {
    if (!IsFinal(host.row.state)) AdvanceHost(host, now, lost_after, effects, lost);
  }
  StopWhenDoomed(now, effects);
  AdvanceGate(now, effects);
  return lost;
}

void Trial::AdvanceHost(Host& host, Moment now, Nanoseconds lost_after, Effects& effects,
                        std::vector<std::string>& lost) {
  const AgentView agent = world_.agents->Look(host.row.agent_id);
  if (!agent.connected) {
    const bool too_long = agent.may_be_lost && agent.silent >= lost_after;
    const bool given_up = stopped_by_user_ && agent.away;
    if (!too_long && !given_up) return;
    host.row.epoch = world_.epochs->Next();
    const std::string reason = too_long ? "the agent was silent for " + SecondsText(agent.silent) +
                                              " (lost_after " + SecondsText(lost_after) + ")"
                                        : "cancelled while the agent was away";
    End(host, AssignmentState::kAbandoned, reason, effects);
    if (too_long) lost.push_back(host.row.agent_id);
    return;
  }
  if (now.mono < host.repeat_at) return;
  if (host.row.stop_wanted) {
    WantStop(host, now, effects);
  } else if (host.row.state <= AssignmentState::kOffered) {
    Offer(host, now, effects);
  }
}

void Trial::StopWhenDoomed(Moment now, Effects& effects) {
  if (!gate_ || open_count_ == hosts_.size() || ended() || !stop_reason_.empty()) return;
  // Those who measure are left alone, and as long as all have started none has ended in vain.
  if (!gate_->AnyStanding() && (gate_->opened() || doomed_by_.empty())) return;
  Stop("the common start cannot come: " +
           (doomed_by_.empty() ? std::string("another host has ended already") : doomed_by_),
       /*by_user=*/false, now, effects);
}

void Trial::AdvanceGate(Moment now, Effects& effects) {
  if (!gate_ || ended() || !stop_reason_.empty()) return;
  Nanoseconds worst{0};
  for (const auto& [agent_id, host] : hosts_) {
    worst = std::max(worst, world_.agents->Look(agent_id).round_trip);
  }
  const Gate::Decision decision = gate_->Decide(now.mono, worst, world_.epochs->Next());
  if (decision.step == Gate::Step::kNothing) return;
  if (decision.step == Gate::Step::kBroken) {
    Stop(decision.reason, /*by_user=*/false, now, effects);
    return;
  }
  SendGate(decision, effects);
}

void Trial::SendGate(const Gate::Decision& decision, Effects& effects) {
  for (const auto& [agent_id, host] : hosts_) {
    effects.commands.push_back(
        decision.step == Gate::Step::kArm
            ? ArmCommand(agent_id, host.row, decision, world_.options->clock_uncertainty_max)
            : GoCommand(agent_id, host.row, decision));
  }
}

v1::TrialRecord Trial::Record() const {
  v1::TrialRecord record;
  *record.mutable_summary() = catalog::ToMessage(row_);
  record.mutable_summary()->set_state("ended");
  for (const auto& [agent_id, host] : hosts_) {
    v1::AssignmentRecord* assignment = record.add_assignments();
    assignment->set_assignment_id(host.row.id);
    assignment->set_epoch(host.row.epoch);
    assignment->set_agent_id(agent_id);
    assignment->set_host_name(host.row.host_name);
    assignment->set_state(std::string(catalog::StateName(host.row.state)));
    assignment->set_reason(host.row.reason);
    if (host.result) *assignment->mutable_result() = *host.result;
  }
  return record;
}

catalog::TrialRow Trial::Outcome() const {
  catalog::TrialRow row = row_;
  const compare::TrialAssessment assessment =
      compare::AssessTrial(plan_->cells(static_cast<int>(row_.cell)), Record());
  row.start_skew_ns = assessment.start_skew_max_ns;
  row.overlap = assessment.overlap;
  if (assessment.valid()) {
    row.state = catalog::TrialState::kValid;
    return row;
  }
  for (const auto& [agent_id, host] : hosts_) {
    if (host.row.state != AssignmentState::kAbandoned || stopped_by_user_) continue;
    row.state = catalog::TrialState::kLost;
    row.reason =
        (host.row.host_name.empty() ? agent_id : host.row.host_name) + ": " + host.row.reason;
    return row;
  }
  row.state = stopped_by_user_ ? catalog::TrialState::kCancelled : catalog::TrialState::kInvalid;
  row.reason = stop_reason_.empty() ? assessment.reason : stop_reason_;
  return row;
}

std::optional<catalog::TrialRow> Trial::FurtherAttempt() const {
  if (!ended() || stop_reason_.empty() || stopped_by_user_ || !doomed_by_.empty() ||
      row_.attempt >= kAttemptsMax) {
    return std::nullopt;
  }
  catalog::TrialRow row = row_;
  row.state = catalog::TrialState::kPlanned;
  ++row.attempt;
  return row;
}

std::string Trial::Label() const {
  return "trial " + std::to_string(row_.index + 1) + " (" + row_.cell_name + ")";
}

std::optional<TimePoint> Trial::wake() const {
  if (!gate_ || ended() || !stop_reason_.empty()) return std::nullopt;
  return gate_->wake();
}

}  // namespace labrack::run
