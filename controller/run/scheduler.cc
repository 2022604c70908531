#include "controller/run/scheduler.h"

#include <algorithm>
#include <utility>

#include "controller/run/commands.h"
#include "proto/convert/names.h"
#include "storage/base/exit_codes.h"

namespace labrack::run {
namespace {

std::set<std::string> HostsOfPlan(const v1::Plan& plan) {
  std::set<std::string> hosts;
  for (const v1::PlannedHost& host : plan.hosts()) hosts.insert(host.agent_id());
  for (const v1::PlannedCell& cell : plan.cells()) {
    hosts.insert(cell.agent_ids().begin(), cell.agent_ids().end());
  }
  return hosts;
}

std::vector<catalog::TrialRow> TrialsOfPlan(const std::string& run_id, const v1::Plan& plan) {
  std::vector<catalog::TrialRow> rows;
  for (const v1::PlannedTrial& trial : plan.trials()) {
    const v1::PlannedCell& cell = plan.cells(static_cast<int>(trial.cell()));
    catalog::TrialRow& row = rows.emplace_back();
    row.run_id = run_id;
    row.index = trial.index();
    row.cell = trial.cell();
    row.cell_name = convert::CellName(cell);
    row.repeat = trial.repeat();
    row.host_count = static_cast<std::uint32_t>(cell.agent_ids_size());
  }
  return rows;
}

bool Intersect(const std::set<std::string>& a, const std::set<std::string>& b) {
  const auto& [few, many] = a.size() < b.size() ? std::tie(a, b) : std::tie(b, a);
  return std::ranges::any_of(few, [&](const std::string& name) { return many.contains(name); });
}

bool HasResult(const std::vector<v1::EventRecord>& records) {
  return std::ranges::any_of(records,
                             [](const v1::EventRecord& record) { return record.has_result(); });
}

}  // namespace

Scheduler::Scheduler(Options options, const AgentDirectory& agents, std::uint64_t controller_epoch)
    : options_(options), agents_(&agents), epochs_(controller_epoch) {}

Scheduler::Run* Scheduler::Find(const std::string& run_id) {
  const auto found = runs_.find(run_id);
  return found == runs_.end() ? nullptr : found->second.get();
}

Scheduler::Run* Scheduler::RunOfAssignment(const std::string& assignment_id) {
  Run* run = Find(assignment_id.substr(0, assignment_id.find('/')));
  if (run == nullptr || run->current == nullptr) return nullptr;
  const std::string prefix = run->row.id + "/" + std::to_string(run->current->row().index) + "/";
  return assignment_id.starts_with(prefix) ? run : nullptr;
}

void Scheduler::Restore(catalog::StoredRun stored, Moment now) {
  auto run = std::make_unique<Run>();
  run->row = std::move(stored.run);
  run->trials = std::move(stored.trials);
  run->hosts = HostsOfPlan(run->row.plan);
  run->last_watched = run->started = now.mono;
  while (run->next_trial < run->trials.size() && IsFinal(run->trials[run->next_trial].state)) {
    ++run->next_trial;
  }
  if (run->next_trial < run->trials.size() &&
      run->trials[run->next_trial].state == catalog::TrialState::kRunning) {
    const catalog::TrialRow& row = run->trials[run->next_trial++];
    run->current = std::make_unique<Trial>(world(), run->row.plan, row);
    std::erase_if(stored.assignments, [&](const catalog::StoredAssignment& assignment) {
      return assignment.row.trial_index != row.index;
    });
    run->current->Restore(std::move(stored.assignments));
    if (run->row.state == v1::RUN_STATE_CANCELLING) {
      // Assignments are marked already; this only tells the trial why.
      Effects known;
      run->current->Stop(run->row.reason, /*by_user=*/true, now, known);
    }
  }
  order_.push_back(run->row.id);
  runs_.emplace(run->row.id, std::move(run));
}

void Scheduler::Submit(catalog::RunRow row, Moment now, Effects& effects) {
  auto run = std::make_unique<Run>();
  run->row = std::move(row);
  run->row.state = v1::RUN_STATE_PENDING;
  run->trials = TrialsOfPlan(run->row.id, run->row.plan);
  run->hosts = HostsOfPlan(run->row.plan);
  run->last_watched = now.mono;
  effects.changes.emplace_back(catalog::InsertRun{run->row, run->trials});
  effects.changes.emplace_back(catalog::Audit{.wall_ns = now.wall_ns,
                                              .who = run->row.owner,
                                              .verb = "submit",
                                              .target = run->row.id,
                                              .detail = run->row.playbook_file});
  effects.touched[run->row.id];
  order_.push_back(run->row.id);
  runs_.emplace(run->row.id, std::move(run));
}

bool Scheduler::Cancel(const std::string& run_id, const std::string& who, const std::string& reason,
                       Moment now, Effects& effects) {
  Run* run = Find(run_id);
  if (run == nullptr || run->verdict_wanted) return false;
  if (run->row.state == v1::RUN_STATE_CANCELLING) return true;
  run->row.state = v1::RUN_STATE_CANCELLING;
  run->row.reason = reason.empty() ? "cancelled" : reason;
  SaveRun(*run, effects);
  effects.changes.emplace_back(catalog::Audit{.wall_ns = now.wall_ns,
                                              .who = who,
                                              .verb = "cancel",
                                              .target = run_id,
                                              .detail = run->row.reason});
  effects.notes.push_back({run_id, "cancelling: " + run->row.reason});
  if (run->current) run->current->Stop(run->row.reason, /*by_user=*/true, now, effects);
  return true;
}

void Scheduler::SetWatchers(const std::string& run_id, std::size_t count, Moment now) {
  Run* run = Find(run_id);
  if (run == nullptr) return;
  run->watchers = count;
  run->last_watched = now.mono;
}

void Scheduler::SetVerdict(const std::string& run_id, const std::string& verdict,
                           std::int32_t exit_code, Moment now, Effects& effects) {
  Run* run = Find(run_id);
  if (run == nullptr || !run->verdict_wanted) return;
  const bool lab_failed =
      exit_code == ToInt(ExitCode::kLabFailed) || exit_code == ToInt(ExitCode::kNothingRan);
  if (run->row.state == v1::RUN_STATE_CANCELLING) {
    run->row.state = v1::RUN_STATE_CANCELLED;
  } else {
    run->row.state = lab_failed ? v1::RUN_STATE_FAILED : v1::RUN_STATE_DONE;
  }
  if (lab_failed && run->row.reason.empty()) {
    for (const catalog::TrialRow& trial : run->trials) {
      if (trial.reason.empty()) continue;
      run->row.reason = "trial " + std::to_string(trial.index + 1) + " (" + trial.cell_name +
                        "): " + trial.reason;
      break;
    }
  }
  run->row.verdict = verdict;
  run->row.exit_code = exit_code;
  run->row.ended_wall_ns = now.wall_ns;
  SaveRun(*run, effects);
}

void Scheduler::SaveRun(const Run& run, Effects& effects) {
  effects.changes.emplace_back(catalog::UpdateRun{.id = run.row.id,
                                                  .state = run.row.state,
                                                  .reason = run.row.reason,
                                                  .ended_wall_ns = run.row.ended_wall_ns,
                                                  .exit_code = run.row.exit_code,
                                                  .verdict = run.row.verdict});
  effects.touched[run.row.id];
}

Scheduler::Diff Scheduler::OnHello(const std::string& agent_id, const v1::Hello& hello, Moment now,
                                   Effects& effects) {
  Diff diff;
  // What the last session said counts no more: Hello tells what is held, Welcome what is stored.
  reports_.Forget(agent_id);
  closing_.erase(agent_id);
  for (const auto& [id, run] : runs_) run->lost_agents.erase(agent_id);
  std::map<Run*, const v1::HeldAssignment*> held_of;
  for (const v1::HeldAssignment& held : hello.held()) {
    Run* run = RunOfAssignment(held.assignment_id());
    if (run == nullptr || !BelongsTo(held.assignment_id(), agent_id)) continue;
    const v1::HeldAssignment*& newest = held_of[run];
    if (newest == nullptr || newest->epoch() < held.epoch()) newest = &held;
  }
  std::set<const v1::HeldAssignment*> answered;
  for (const auto& [id, run] : runs_) {
    if (!run->current) continue;
    const auto found = held_of.find(run.get());
    const v1::HeldAssignment* held = found == held_of.end() ? nullptr : found->second;
    std::optional<Trial::Desired> desired = run->current->OnHello(agent_id, held, now, effects);
    if (!desired) continue;
    diff.desired.push_back(*desired);
    diff.desired_ids.push_back(held->assignment_id());
    KnowStored(agent_id, *held, desired->through_seq);
    answered.insert(held);
  }
  for (const v1::HeldAssignment& held : hello.held()) {
    if (!answered.contains(&held)) diff.strangers.push_back(held);
  }
  return diff;
}

void Scheduler::OnCommandAck(const std::string& agent_id, const v1::CommandAck& ack,
                             Effects& effects) {
  const CommandId command = ParseCommandId(ack.command_id());
  if (command.kind == CommandKind::kClose) {
    const ReportKey key{ack.assignment_id(), ack.epoch()};
    reports_.Forget(agent_id, key);
    if (const auto agent = closing_.find(agent_id); agent != closing_.end()) {
      agent->second.erase(key);
      if (agent->second.empty()) closing_.erase(agent);
    }
    return;
  }
  Run* run = RunOfAssignment(ack.assignment_id());
  if (run == nullptr) return;
  switch (command.kind) {
    case CommandKind::kAssign:
      run->current->OnAssignAck(ack, agent_id, effects);
      break;
    case CommandKind::kStop:
      run->current->OnStopAck(ack, agent_id, effects);
      break;
    case CommandKind::kArm:
      run->current->OnArmAck(ack, agent_id, command.arming);
      break;
    case CommandKind::kClose:
    case CommandKind::kUnknown:
      break;
  }
}

void Scheduler::OnGateReady(const std::string& agent_id, const v1::GateReady& ready, Moment now) {
  if (Run* run = RunOfAssignment(ready.assignment_id())) {
    run->current->OnGateReady(ready, agent_id, now);
  }
}

void Scheduler::KnowStored(const std::string& agent_id, const v1::HeldAssignment& held,
                           std::uint64_t through_seq) {
  reports_.Know(agent_id, {held.assignment_id(), held.epoch()}, through_seq);
}

void Scheduler::OnEvents(const std::string& agent_id, const v1::Events& events, Moment now,
                         Effects& effects) {
  const Reports::Taken taken = reports_.Take(agent_id, events);
  effects.refused_events += static_cast<std::uint64_t>(events.records_size() - taken.count);
  bool ended = false;
  if (taken.count > 0) {
    catalog::StoreEvents stored{
        .assignment_id = EventsKey(agent_id, events.assignment_id()),
        .epoch = events.epoch(),
        .received_wall_ns = now.wall_ns,
        .records = {events.records().begin(), events.records().begin() + taken.count}};
    if (!BelongsTo(events.assignment_id(), agent_id)) {
      ++effects.foreign_events;
    } else if (Run* run = RunOfAssignment(events.assignment_id())) {
      run->current->OnEvents(stored, agent_id, effects);
    }
    ended = HasResult(stored.records);
    effects.changes.emplace_back(std::move(stored));
  }
  if (taken.through_seq > 0) {
    effects.commands.push_back(
        EventAckCommand(agent_id, events.assignment_id(), events.epoch(), taken.through_seq));
  }
  if (ended) Close(agent_id, events, now, effects);
}

// Its result is stored, so the agent may delete it.
void Scheduler::Close(const std::string& agent_id, const v1::Events& events, Moment now,
                      Effects& effects) {
  effects.commands.push_back(
      WantCommand(agent_id, events.assignment_id(), events.epoch(), v1::WANT_CLOSED, ""));
  std::map<ReportKey, TimePoint>& closing = closing_[agent_id];
  // Beyond the bound it is not repeated: the next Welcome says it again.
  if (closing.size() >= kClosingPerAgentMax) return;
  closing[{events.assignment_id(), events.epoch()}] = now.mono + options_.repeat_after;
}

void Scheduler::Advance(Moment now, Effects& effects) {
  std::vector<const Run*> earlier;
  for (const std::string& id : order_) {
    Run& run = *runs_.at(id);
    CheckLease(run, now, effects);
    if (run.row.state == v1::RUN_STATE_PENDING &&
        std::ranges::none_of(
            earlier, [&](const Run* other) { return Intersect(other->hosts, run.hosts); })) {
      run.row.state = v1::RUN_STATE_RUNNING;
      run.started = now.mono;
      SaveRun(run, effects);
    }
    if (run.row.state != v1::RUN_STATE_PENDING) AdvanceRun(run, now, effects);
    // A run whose trials have ended holds no host, even while its verdict is being made.
    if (!run.verdict_wanted) earlier.push_back(&run);
  }
  std::erase_if(order_, [&](const std::string& id) {
    if (!catalog::IsFinal(runs_.at(id)->row.state)) return false;
    // Watchers get their last event from `touched`, so the run is kept until the next call.
    return !effects.touched.contains(id) && runs_.erase(id) > 0;
  });
  RepeatCloses(now, effects);
}

void Scheduler::AdvanceRun(Run& run, Moment now, Effects& effects) {
  if (run.verdict_wanted) return;
  for (;;) {
    if (run.current) {
      const Nanoseconds lost_after(run.row.plan.playbook().lost_after());
      for (const std::string& agent : run.current->Advance(now, lost_after, effects)) {
        run.lost_agents.insert(agent);
        effects.changes.emplace_back(catalog::Audit{.wall_ns = now.wall_ns,
                                                    .who = "controller",
                                                    .verb = "abandon",
                                                    .target = run.row.id,
                                                    .detail = agent});
      }
      if (!run.current->ended()) return;
      if (BeginAnew(run, now, effects)) continue;
      EndTrial(run, run.current->Outcome(), effects);
      run.current.reset();
    }
    if (run.next_trial == run.trials.size()) break;
    StartNextTrial(run, now, effects);
  }
  run.verdict_wanted = true;
  effects.ended_runs.push_back(run.row.id);
}

void Scheduler::StartNextTrial(Run& run, Moment now, Effects& effects) {
  catalog::TrialRow row = run.trials[run.next_trial++];
  if (run.row.state == v1::RUN_STATE_CANCELLING) {
    row.state = catalog::TrialState::kCancelled;
    row.reason = run.row.reason;
    EndTrial(run, row, effects);
    return;
  }
  if (std::optional<std::string> lost = LostHostOf(run, row)) {
    row.state = catalog::TrialState::kLost;
    row.reason = *lost + " was lost in an earlier trial";
    EndTrial(run, row, effects);
    return;
  }
  run.current = std::make_unique<Trial>(world(), run.row.plan, row);
  run.current->Begin(now, effects);
  run.trials[row.index] = run.current->row();
}

bool Scheduler::BeginAnew(Run& run, Moment now, Effects& effects) {
  const std::optional<catalog::TrialRow> row = run.current->FurtherAttempt();
  if (!row || run.row.state == v1::RUN_STATE_CANCELLING) return false;
  effects.notes.push_back({run.row.id, run.current->Label() + " is begun anew, attempt " +
                                           std::to_string(row->attempt) + " of " +
                                           std::to_string(Trial::kAttemptsMax) + ": " +
                                           run.current->Outcome().reason});
  run.current = std::make_unique<Trial>(world(), run.row.plan, *row);
  run.current->Begin(now, effects);
  run.trials[row->index] = run.current->row();
  return true;
}

void Scheduler::EndTrial(Run& run, const catalog::TrialRow& row, Effects& effects) {
  run.trials[row.index] = row;
  ++run.ended_here;
  effects.changes.emplace_back(catalog::UpdateTrial{row});
  effects.touched[run.row.id].insert(row.index);
  if (row.state == catalog::TrialState::kValid || row.state == catalog::TrialState::kCancelled) {
    return;
  }
  effects.notes.push_back(
      {run.row.id, "trial " + std::to_string(row.index + 1) + " (" + row.cell_name + ") " +
                       std::string(catalog::StateName(row.state)) + ": " + row.reason});
}

std::optional<std::string> Scheduler::LostHostOf(const Run& run,
                                                 const catalog::TrialRow& trial) const {
  if (run.lost_agents.empty()) return std::nullopt;
  for (const std::string& agent : run.row.plan.cells(static_cast<int>(trial.cell)).agent_ids()) {
    if (!run.lost_agents.contains(agent)) continue;
    for (const v1::PlannedHost& host : run.row.plan.hosts()) {
      if (host.agent_id() == agent && !host.host_name().empty()) return host.host_name();
    }
    return agent;
  }
  return std::nullopt;
}

void Scheduler::CheckLease(Run& run, Moment now, Effects& effects) {
  if (run.row.lease_ns <= 0 || run.watchers > 0 || catalog::IsFinal(run.row.state)) return;
  if (run.row.state == v1::RUN_STATE_CANCELLING) return;
  const Nanoseconds lease(run.row.lease_ns);
  if (now.mono - run.last_watched < lease) return;
  Cancel(run.row.id, "controller", "nobody watched the run for " + SecondsText(lease), now,
         effects);
}

void Scheduler::RepeatCloses(Moment now, Effects& effects) {
  for (auto& [agent_id, closing] : closing_) {
    if (!agents_->Look(agent_id).connected) continue;
    for (auto& [key, repeat_at] : closing) {
      if (now.mono < repeat_at) continue;
      repeat_at = now.mono + options_.repeat_after;
      effects.commands.push_back(
          WantCommand(agent_id, key.assignment_id, key.epoch, v1::WANT_CLOSED, ""));
    }
  }
}

std::optional<TimePoint> Scheduler::wake() const {
  std::optional<TimePoint> first;
  for (const auto& [id, run] : runs_) {
    if (!run->current) continue;
    const std::optional<TimePoint> wake = run->current->wake();
    if (wake && (!first || *wake < *first)) first = wake;
  }
  return first;
}

std::int64_t Scheduler::Estimate(const Run& run, Moment now) {
  const auto total = static_cast<std::int64_t>(run.trials.size());
  const std::int64_t done = std::ranges::count_if(
      run.trials, [](const catalog::TrialRow& trial) { return IsFinal(trial.state); });
  if (total == 0 || catalog::IsFinal(run.row.state)) return 0;
  const std::int64_t planned = run.row.plan.duration_ns() / total;
  // The time since the last trial ended is not known here, so the figure falls in steps.
  const std::int64_t each =
      run.ended_here > 0 ? (now.mono - run.started).count() / run.ended_here : planned;
  return each * (total - done);
}

std::optional<v1::RunSummary> Scheduler::Summary(const std::string& run_id, Moment now) const {
  const auto found = runs_.find(run_id);
  if (found == runs_.end()) return std::nullopt;
  const Run& run = *found->second;
  v1::RunSummary summary = catalog::SummaryOf(run.row, run.trials);
  summary.set_eta_ns(Estimate(run, now));
  return summary;
}

std::vector<v1::TrialSummary> Scheduler::Trials(const std::string& run_id,
                                                const std::set<std::uint32_t>* only) const {
  std::vector<v1::TrialSummary> trials;
  const auto found = runs_.find(run_id);
  if (found == runs_.end()) return trials;
  for (const catalog::TrialRow& row : found->second->trials) {
    if (only == nullptr || only->contains(row.index)) trials.push_back(catalog::ToMessage(row));
  }
  return trials;
}

std::vector<std::string> Scheduler::HostsOf(const std::string& run_id) const {
  const auto found = runs_.find(run_id);
  if (found == runs_.end()) return {};
  return {found->second->hosts.begin(), found->second->hosts.end()};
}

std::string Scheduler::WorkOf(const std::string& agent_id) const {
  for (const auto& [id, run] : runs_) {
    if (run->current && run->hosts.contains(agent_id)) return id + " " + run->current->Label();
  }
  return "";
}

v1::WantKind DesiredOfStranger(bool known, bool result_stored, const v1::HeldAssignment& held) {
  if (result_stored) return v1::WANT_CLOSED;
  // Another catalog's finishes and reports, and is kept; so does what has ended and is late.
  const bool sealed = held.state() == v1::ASSIGNMENT_STATE_SEALED;
  return !known || sealed ? v1::WANT_RUN : v1::WANT_STOP;
}

}  // namespace labrack::run
