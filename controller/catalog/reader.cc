#include "controller/catalog/reader.h"

#include <algorithm>
#include <utility>

namespace labrack::catalog {
namespace {

constexpr std::string_view kRunRow =
    "SELECT id, state, reason, owner, idempotency_key, lease_ns, created_wall_ns, ended_wall_ns, "
    "exit_code, verdict, playbook_name, playbook_file, playbook_text, plan FROM runs WHERE id = ?";
constexpr std::string_view kRunRowWithoutPlan =
    "SELECT id, state, reason, owner, idempotency_key, lease_ns, created_wall_ns, ended_wall_ns, "
    "exit_code, verdict, playbook_name FROM runs WHERE id = ?";

Error Unreadable(const char* what, const std::string& id) {
  return Error(Errc::kCorrupt, "catalog",
               std::string(what) + " of " + id + " does not read back as it was written");
}

// With the name of the plan only.
Result<RunRow> RunFrom(const Query& query) {
  RunRow run;
  run.id = query.Text(0);
  const std::optional<v1::RunState> state = RunStateFrom(query.View(1));
  if (!state) return std::unexpected(Unreadable("the state", run.id));
  run.state = *state;
  run.reason = query.Text(2);
  run.owner = query.Text(3);
  run.idempotency_key = query.Text(4);
  run.lease_ns = query.Integer(5);
  run.created_wall_ns = query.Integer(6);
  run.ended_wall_ns = query.Integer(7);
  run.exit_code = static_cast<std::int32_t>(query.Integer(8));
  run.verdict = query.Text(9);
  run.plan.set_playbook_name(query.Text(10));
  return run;
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

Result<std::vector<AssignmentRow>> AssignmentsOf(Query& query) {
  std::vector<AssignmentRow> rows;
  for (;;) {
    Result<bool> step = query.Step();
    if (!step) return std::unexpected(step.error());
    if (!*step) return rows;
    Result<AssignmentRow> row = AssignmentFrom(query);
    if (!row) return std::unexpected(row.error());
    rows.push_back(*std::move(row));
  }
}

Result<std::vector<AssignmentRow>> ReadOpenAssignments(Database& database,
                                                       const std::string& run_id) {
  Result<Query> query = database.Prepare("SELECT " + std::string(kAssignmentColumns) +
                                         " FROM assignments WHERE run_id = ?1 AND trial IN "
                                         "(SELECT trial FROM trials WHERE run_id = ?1 AND state "
                                         "IN ('planned', 'running')) ORDER BY trial, agent_id");
  if (!query) return std::unexpected(query.error());
  return AssignmentsOf(query->With(run_id));
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

Result<std::optional<RunRow>> ReadRunWithoutPlan(Database& database, const std::string& id) {
  Result<Query> query = database.Prepare(kRunRowWithoutPlan);
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->With(id).Step();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::nullopt;
  return RunFrom(*query);
}

Result<std::optional<RunRow>> ReadRunRow(Database& database, const std::string& id) {
  Result<Query> query = database.Prepare(kRunRow);
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->With(id).Step();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::nullopt;
  Result<RunRow> run = RunFrom(*query);
  if (!run) return std::unexpected(run.error());
  run->playbook_file = query->Text(11);
  run->playbook_text = query->Text(12);
  if (!run->plan.ParseFromString(query->Text(13))) {
    return std::unexpected(Unreadable("the plan", id));
  }
  return *std::move(run);
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

Result<std::vector<AssignmentRow>> ReadAssignments(Database& database, const std::string& run_id,
                                                   std::uint32_t trial) {
  Result<Query> query =
      database.Prepare("SELECT " + std::string(kAssignmentColumns) +
                       " FROM assignments WHERE run_id = ? AND trial = ? ORDER BY agent_id");
  if (!query) return std::unexpected(query.error());
  return AssignmentsOf(query->With(run_id, trial));
}

Result<bool> ReadResult(Database& database, const std::string& assignment_id, std::uint64_t epoch,
                        v1::AssignmentResult& result) {
  Result<Query> query = database.Prepare(
      "SELECT body FROM events WHERE assignment_id = ? AND epoch = ? AND kind = 'result' "
      "ORDER BY seq LIMIT 1");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->With(assignment_id, epoch).Step();
  if (!row || !*row) return row;
  v1::EventRecord record;
  const std::string_view body = query->View(0);
  if (!record.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return std::unexpected(Unreadable("the result", assignment_id));
  }
  result.Swap(record.mutable_result());
  return true;
}

Result<std::optional<StoredRun>> ReadOpenRun(Database& database, const std::string& id) {
  Result<std::optional<RunRow>> run = ReadRunRow(database, id);
  if (!run) return std::unexpected(run.error());
  if (!*run) return std::nullopt;
  Result<std::vector<TrialRow>> trials = ReadTrials(database, id);
  if (!trials) return std::unexpected(trials.error());
  Result<std::vector<AssignmentRow>> rows = ReadOpenAssignments(database, id);
  if (!rows) return std::unexpected(rows.error());
  StoredRun stored{.run = **std::move(run), .trials = *std::move(trials), .assignments = {}};
  for (AssignmentRow& row : *rows) {
    StoredAssignment& assignment = stored.assignments.emplace_back();
    Result<std::uint64_t> through = ReadThroughSeq(database, row.id, row.offered_epoch);
    if (!through) return std::unexpected(through.error());
    assignment.through_seq = *through;
    v1::AssignmentResult result;
    Result<bool> has_result = ReadResult(database, row.id, row.offered_epoch, result);
    if (!has_result) return std::unexpected(has_result.error());
    if (*has_result) assignment.result = std::move(result);
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

}  // namespace labrack::catalog
