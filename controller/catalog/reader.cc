#include "controller/catalog/reader.h"

#include <algorithm>
#include <utility>

#include "controller/catalog/catalog.h"

namespace labrack::catalog {
namespace {

constexpr std::string_view kRunColumns =
    "SELECT id, state, reason, playbook_file, playbook_text, plan, owner, idempotency_key, "
    "lease_ns, created_wall_ns, ended_wall_ns, exit_code, verdict FROM runs WHERE id = ?";

Error Unreadable(const char* what, const std::string& id) {
  return Error(Errc::kCorrupt, "catalog",
               std::string(what) + " of " + id + " does not read back as it was written");
}

Result<RunRow> RunFrom(const Query& query) {
  RunRow run;
  run.id = query.Text(0);
  const std::optional<v1::RunState> state = RunStateFrom(query.View(1));
  if (!state) return std::unexpected(Unreadable("the state", run.id));
  run.state = *state;
  run.reason = query.Text(2);
  run.playbook_file = query.Text(3);
  run.playbook_text = query.Text(4);
  if (!run.plan.ParseFromString(query.Text(5))) {
    return std::unexpected(Unreadable("the plan", run.id));
  }
  run.owner = query.Text(6);
  run.idempotency_key = query.Text(7);
  run.lease_ns = query.Integer(8);
  run.created_wall_ns = query.Integer(9);
  run.ended_wall_ns = query.Integer(10);
  run.exit_code = static_cast<std::int32_t>(query.Integer(11));
  run.verdict = query.Text(12);
  return run;
}

Result<std::vector<TrialRow>> ReadTrials(Database& database, const std::string& run_id) {
  Result<Query> query = database.Prepare(
      "SELECT trial, cell, cell_name, repeat, state, reason, start_skew_ns, overlap, host_count, "
      "attempt FROM trials WHERE run_id = ? ORDER BY trial");
  if (!query) return std::unexpected(query.error());
  query->With(run_id);
  std::vector<TrialRow> trials;
  for (;;) {
    Result<bool> row = query->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return trials;
    TrialRow& trial = trials.emplace_back();
    trial.run_id = run_id;
    trial.index = static_cast<std::uint32_t>(query->Integer(0));
    trial.cell = static_cast<std::uint32_t>(query->Integer(1));
    trial.cell_name = query->Text(2);
    trial.repeat = static_cast<std::uint32_t>(query->Integer(3));
    const std::optional<TrialState> state = TrialStateFrom(query->View(4));
    if (!state) return std::unexpected(Unreadable("a trial's state", run_id));
    trial.state = *state;
    trial.reason = query->Text(5);
    trial.start_skew_ns = query->Integer(6);
    trial.overlap = query->Real(7);
    trial.host_count = static_cast<std::uint32_t>(query->Integer(8));
    trial.attempt = static_cast<std::uint32_t>(query->Integer(9));
  }
}

constexpr std::string_view kAssignmentColumns =
    "id, run_id, trial, agent_id, host_name, epoch, offered_epoch, state, stop_wanted, "
    "stop_reason, reason";

Result<AssignmentRow> AssignmentFrom(const Query& query) {
  AssignmentRow row;
  row.id = query.Text(0);
  row.run_id = query.Text(1);
  row.trial_index = static_cast<std::uint32_t>(query.Integer(2));
  row.agent_id = query.Text(3);
  row.host_name = query.Text(4);
  row.epoch = query.Unsigned(5);
  row.offered_epoch = query.Unsigned(6);
  const std::optional<AssignmentState> state = AssignmentStateFrom(query.View(7));
  if (!state) return std::unexpected(Unreadable("the state", row.id));
  row.state = *state;
  row.stop_wanted = query.Integer(8) != 0;
  row.stop_reason = query.Text(9);
  row.reason = query.Text(10);
  return row;
}

Result<std::vector<AssignmentRow>> ReadAssignments(Database& database, const std::string& run_id,
                                                   WithAssignments which) {
  std::string sql = "SELECT " + std::string(kAssignmentColumns) +
                    " FROM assignments WHERE run_id = ?1 "
                    "AND (?2 OR trial IN (SELECT trial FROM trials WHERE run_id = ?1 "
                    "AND state IN ('planned', 'running'))) ORDER BY trial, agent_id";
  Result<Query> query = database.Prepare(sql);
  if (!query) return std::unexpected(query.error());
  query->With(run_id, which == WithAssignments::kAll);
  std::vector<AssignmentRow> rows;
  for (;;) {
    Result<bool> step = query->Step();
    if (!step) return std::unexpected(step.error());
    if (!*step) return rows;
    Result<AssignmentRow> row = AssignmentFrom(*query);
    if (!row) return std::unexpected(row.error());
    rows.push_back(*std::move(row));
  }
}

Result<std::optional<v1::AssignmentResult>> ReadResult(Database& database, const std::string& id,
                                                       std::uint64_t epoch) {
  Result<Query> query = database.Prepare(
      "SELECT body FROM events WHERE assignment_id = ? AND epoch = ? AND kind = 'result' "
      "ORDER BY seq LIMIT 1");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->With(id, epoch).Step();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::nullopt;
  v1::EventRecord record;
  if (!record.ParseFromString(query->Text(0))) return std::unexpected(Unreadable("the result", id));
  return std::move(*record.mutable_result());
}

template <typename Key>
Result<void> CountByState(Database& database, const char* sql,
                          std::optional<Key> (*from)(std::string_view),
                          std::map<Key, std::uint64_t>& counts) {
  Result<Query> query = database.Prepare(sql);
  if (!query) return std::unexpected(query.error());
  for (;;) {
    Result<bool> row = query->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
    if (std::optional<Key> key = from(query->View(0))) counts[*key] = query->Unsigned(1);
  }
}

}  // namespace

Result<std::optional<StoredRun>> ReadRun(Database& database, const std::string& id,
                                         WithAssignments which) {
  StoredRun stored;
  {
    Result<Query> query = database.Prepare(kRunColumns);
    if (!query) return std::unexpected(query.error());
    Result<bool> row = query->With(id).Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::nullopt;
    Result<RunRow> run = RunFrom(*query);
    if (!run) return std::unexpected(run.error());
    stored.run = *std::move(run);
  }
  Result<std::vector<TrialRow>> trials = ReadTrials(database, id);
  if (!trials) return std::unexpected(trials.error());
  stored.trials = *std::move(trials);
  Result<std::vector<AssignmentRow>> rows = ReadAssignments(database, id, which);
  if (!rows) return std::unexpected(rows.error());
  for (AssignmentRow& row : *rows) {
    StoredAssignment& assignment = stored.assignments.emplace_back();
    Result<std::uint64_t> through = ReadThroughSeq(database, row.id, row.offered_epoch);
    if (!through) return std::unexpected(through.error());
    Result<std::optional<v1::AssignmentResult>> result =
        ReadResult(database, row.id, row.offered_epoch);
    if (!result) return std::unexpected(result.error());
    assignment.through_seq = *through;
    assignment.result = *std::move(result);
    assignment.row = std::move(row);
  }
  return stored;
}

Result<std::vector<std::string>> ReadOpenRunIds(Database& database) {
  Result<Query> query = database.Prepare(
      "SELECT id FROM runs WHERE state IN ('pending', 'running', 'cancelling') "
      "ORDER BY created_wall_ns, id");
  if (!query) return std::unexpected(query.error());
  std::vector<std::string> ids;
  for (;;) {
    Result<bool> row = query->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return ids;
    ids.push_back(query->Text(0));
  }
}

Result<std::vector<v1::RunSummary>> ReadSummaries(Database& database, std::uint32_t limit) {
  Result<Query> query = database.Prepare(
      "SELECT r.id, r.playbook_name, r.state, r.reason, r.created_wall_ns, r.ended_wall_ns, "
      "r.owner, r.exit_code, r.verdict, count(t.trial), "
      "coalesce(sum(t.state NOT IN ('planned', 'running')), 0), "
      "coalesce(sum(t.state = 'valid'), 0) FROM (SELECT * FROM runs "
      "ORDER BY created_wall_ns DESC, id DESC LIMIT ?) r LEFT JOIN trials t ON t.run_id = r.id "
      "GROUP BY r.id ORDER BY r.created_wall_ns DESC, r.id DESC");
  if (!query) return std::unexpected(query.error());
  query->With(limit);
  std::vector<v1::RunSummary> summaries;
  for (;;) {
    Result<bool> row = query->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return summaries;
    v1::RunSummary& summary = summaries.emplace_back();
    summary.set_run_id(query->Text(0));
    summary.set_playbook_name(query->Text(1));
    summary.set_state(RunStateFrom(query->View(2)).value_or(v1::RUN_STATE_UNSPECIFIED));
    summary.set_reason(query->Text(3));
    summary.set_created_wall_ns(query->Integer(4));
    summary.set_ended_wall_ns(query->Integer(5));
    summary.set_owner(query->Text(6));
    summary.set_exit_code(static_cast<std::int32_t>(query->Integer(7)));
    summary.set_verdict(query->Text(8));
    summary.set_trials_total(static_cast<std::uint32_t>(query->Integer(9)));
    summary.set_trials_done(static_cast<std::uint32_t>(query->Integer(10)));
    summary.set_trials_valid(static_cast<std::uint32_t>(query->Integer(11)));
  }
}

Result<std::vector<AgentRow>> ReadAgents(Database& database) {
  Result<Query> query = database.Prepare(
      "SELECT id, machine_id, incarnation, boot_id, version, inventory FROM agents ORDER BY id");
  if (!query) return std::unexpected(query.error());
  std::vector<AgentRow> agents;
  for (;;) {
    Result<bool> row = query->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return agents;
    AgentRow& agent = agents.emplace_back();
    agent.id = query->Text(0);
    agent.machine_id = query->Text(1);
    agent.incarnation = query->Unsigned(2);
    agent.boot_id = query->Text(3);
    agent.version = query->Text(4);
    if (!agent.inventory.ParseFromString(query->Text(5))) {
      return std::unexpected(Unreadable("the inventory", agent.id));
    }
  }
}

Result<std::uint64_t> ReadThroughSeq(Database& database, const std::string& assignment_id,
                                     std::uint64_t epoch) {
  Result<Query> query = database.Prepare(
      "SELECT coalesce(max(seq), 0) FROM events WHERE assignment_id = ? AND epoch = ?");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->With(assignment_id, epoch).Step();
  if (!row) return std::unexpected(row.error());
  return query->Unsigned(0);
}

Result<bool> IsResultStored(Database& database, const std::string& assignment_id,
                            std::uint64_t epoch) {
  Result<Query> query = database.Prepare(
      "SELECT 1 FROM events WHERE assignment_id = ? AND epoch = ? AND kind = 'result'");
  if (!query) return std::unexpected(query.error());
  return query->With(assignment_id, epoch).Step();
}

Result<std::optional<AssignmentRow>> ReadAssignment(Database& database, const std::string& id) {
  Result<Query> query = database.Prepare("SELECT " + std::string(kAssignmentColumns) +
                                         " FROM assignments WHERE id = ?");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->With(id).Step();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::nullopt;
  Result<AssignmentRow> assignment = AssignmentFrom(*query);
  if (!assignment) return std::unexpected(assignment.error());
  return *std::move(assignment);
}

Result<Totals> ReadTotals(Database& database) {
  Totals totals;
  Result<void> counted = CountByState<v1::RunState>(
      database, "SELECT state, count(*) FROM runs GROUP BY state", RunStateFrom, totals.runs);
  if (!counted) return std::unexpected(counted.error());
  counted = CountByState<TrialState>(database, "SELECT state, count(*) FROM trials GROUP BY state",
                                     TrialStateFrom, totals.trials);
  if (!counted) return std::unexpected(counted.error());
  Result<Query> query = database.Prepare("SELECT count(*) FROM events");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->Step();
  if (!row) return std::unexpected(row.error());
  totals.events = query->Unsigned(0);
  return totals;
}

v1::TrialSummary ToMessage(const TrialRow& trial) {
  v1::TrialSummary message;
  message.set_index(trial.index);
  message.set_cell(trial.cell);
  message.set_cell_name(trial.cell_name);
  message.set_repeat(trial.repeat);
  message.set_state(std::string(StateName(trial.state)));
  message.set_reason(trial.reason);
  message.set_start_skew_ns(trial.start_skew_ns);
  message.set_overlap(trial.overlap);
  message.set_host_count(trial.host_count);
  message.set_attempt(trial.attempt);
  return message;
}

v1::RunSummary SummaryOf(const RunRow& run, const std::vector<TrialRow>& trials) {
  v1::RunSummary summary;
  summary.set_run_id(run.id);
  summary.set_playbook_name(run.plan.playbook_name());
  summary.set_state(run.state);
  summary.set_reason(run.reason);
  summary.set_created_wall_ns(run.created_wall_ns);
  summary.set_ended_wall_ns(run.ended_wall_ns);
  summary.set_owner(run.owner);
  summary.set_exit_code(run.exit_code);
  summary.set_verdict(run.verdict);
  summary.set_trials_total(static_cast<std::uint32_t>(trials.size()));
  for (const TrialRow& trial : trials) {
    if (IsFinal(trial.state)) summary.set_trials_done(summary.trials_done() + 1);
    if (trial.state == TrialState::kValid) summary.set_trials_valid(summary.trials_valid() + 1);
    if (trial.state == TrialState::kRunning) {
      summary.set_current_trial(trial.index);
      summary.set_current_cell(trial.cell_name);
    }
  }
  return summary;
}

v1::RunRecord ToMessage(const StoredRun& stored) {
  v1::RunRecord record;
  *record.mutable_summary() = SummaryOf(stored.run, stored.trials);
  *record.mutable_plan() = stored.run.plan;
  record.set_playbook_text(stored.run.playbook_text);
  record.set_playbook_file(stored.run.playbook_file);
  for (const TrialRow& trial : stored.trials) {
    *record.add_trials()->mutable_summary() = ToMessage(trial);
  }
  for (const StoredAssignment& assignment : stored.assignments) {
    const AssignmentRow& row = assignment.row;
    if (row.trial_index >= static_cast<std::uint32_t>(record.trials_size())) continue;
    v1::AssignmentRecord* message =
        record.mutable_trials(static_cast<int>(row.trial_index))->add_assignments();
    message->set_assignment_id(row.id);
    message->set_epoch(row.epoch);
    message->set_agent_id(row.agent_id);
    message->set_host_name(row.host_name);
    message->set_state(std::string(StateName(row.state)));
    message->set_reason(row.reason);
    if (assignment.result) *message->mutable_result() = *assignment.result;
    message->set_late(assignment.result && row.state != AssignmentState::kClosed);
  }
  return record;
}

Result<std::unique_ptr<Reader>> Reader::Open(const std::filesystem::path& directory) {
  Result<std::unique_ptr<Database>> database =
      Database::Open(directory / kCatalogFile, Access::kReader);
  if (!database) return std::unexpected(database.error());
  return std::unique_ptr<Reader>(new Reader(*std::move(database)));
}

Result<v1::RunRecord> Reader::Run(const std::string& id) {
  // One snapshot for all tables: a run that changes meanwhile is seen as it was at one instant.
  if (Result<void> begun = database_->Execute("BEGIN"); !begun) {
    return std::unexpected(begun.error());
  }
  Result<std::optional<StoredRun>> run = ReadRun(*database_, id, WithAssignments::kAll);
  if (Result<void> ended = database_->Execute("COMMIT"); !ended) {
    return std::unexpected(ended.error());
  }
  if (!run) return std::unexpected(run.error());
  if (!*run) {
    return Fail(Errc::kNotFound, id, "there is no such run; `labrack ls` lists the runs");
  }
  return ToMessage(**run);
}

}  // namespace labrack::catalog
