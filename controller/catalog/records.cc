// Runs as the messages that cross the wire, read level by level and trial by trial.
#include <utility>

#include "controller/catalog/catalog.h"
#include "controller/catalog/reader.h"

namespace labrack::catalog {
namespace {

Result<void> AddAssignments(Database& database, const TrialRow& trial, Level level,
                            v1::TrialRecord& record) {
  Result<std::vector<AssignmentRow>> rows = ReadAssignments(database, trial.run_id, trial.index);
  if (!rows) return std::unexpected(rows.error());
  for (const AssignmentRow& row : *rows) {
    v1::AssignmentRecord& message = *record.add_assignments();
    message.set_assignment_id(row.id);
    message.set_epoch(row.epoch);
    message.set_agent_id(row.agent_id);
    message.set_host_name(row.host_name);
    message.set_state(std::string(StateName(row.state)));
    message.set_reason(row.reason);
    Result<bool> stored = false;
    if (level == Level::kResults) {
      stored = ReadResult(database, row.id, row.offered_epoch, *message.mutable_result());
      if (stored && !*stored) message.clear_result();
    } else {
      stored = IsResultStored(database, row.id, row.offered_epoch);
    }
    if (!stored) return std::unexpected(stored.error());
    message.set_late(*stored && row.state != AssignmentState::kClosed);
  }
  return {};
}

Error NoSuchRun(const std::string& id) {
  return Error(Errc::kNotFound, id, "there is no such run; `labrack ls` lists the runs");
}

}  // namespace

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

Result<std::unique_ptr<Reader>> Reader::Open(const std::filesystem::path& directory) {
  Result<std::unique_ptr<Database>> database =
      Database::Open(directory / kCatalogFile, Access::kReader);
  if (!database) return std::unexpected(database.error());
  return std::unique_ptr<Reader>(new Reader(*std::move(database)));
}

void Reader::Interrupt() {
  interrupted_ = true;
  database_->Interrupt();
}

Result<void> Reader::Freeze() {
  Result<void> begun = database_->Execute("BEGIN");
  frozen_ = begun.has_value();
  return begun;
}

Result<void> Reader::Thaw() {
  frozen_ = false;
  return database_->Execute("COMMIT");
}

Result<v1::RunRecord> Reader::Run(const std::string& id, Level level) {
  return AtOneInstant([&]() -> Result<v1::RunRecord> {
    Result<v1::RunRecord> record = Head(id, level);
    if (!record || level < Level::kAssignments) return record;
    record->clear_trials();
    Result<void> read = EachTrial(id, 0, level, [&](v1::TrialRecord trial) {
      record->add_trials()->Swap(&trial);
      return true;
    });
    if (!read) return std::unexpected(read.error());
    return record;
  });
}

Result<v1::RunRecord> Reader::Head(const std::string& id, Level level) {
  Result<std::optional<RunRow>> run =
      level == Level::kSummary ? ReadRunWithoutPlan(*database_, id) : ReadRunRow(*database_, id);
  if (!run) return std::unexpected(run.error());
  if (!*run) return std::unexpected(NoSuchRun(id));
  Result<std::vector<TrialRow>> trials = ReadTrials(*database_, id);
  if (!trials) return std::unexpected(trials.error());
  RunRow& row = **run;
  v1::RunRecord record;
  *record.mutable_summary() = SummaryOf(row, *trials);
  for (const TrialRow& trial : *trials) {
    *record.add_trials()->mutable_summary() = ToMessage(trial);
  }
  if (level == Level::kSummary) return record;
  record.mutable_plan()->Swap(&row.plan);
  record.set_playbook_text(std::move(row.playbook_text));
  record.set_playbook_file(std::move(row.playbook_file));
  return record;
}

Result<void> Reader::EachTrial(const std::string& id, std::uint32_t from, Level level,
                               const UseTrial& use) {
  return AtOneInstant([&]() -> Result<void> {
    Result<std::vector<TrialRow>> trials = ReadTrials(*database_, id);
    if (!trials) return std::unexpected(trials.error());
    for (const TrialRow& trial : *trials) {
      if (trial.index < from) continue;
      // Between two questions SQLite has nothing to interrupt.
      if (interrupted_) return Fail(Errc::kUnavailable, id, "the controller is stopping");
      v1::TrialRecord record;
      *record.mutable_summary() = ToMessage(trial);
      if (level >= Level::kAssignments) {
        Result<void> added = AddAssignments(*database_, trial, level, record);
        if (!added) return added;
      }
      if (!use(std::move(record))) break;
    }
    return {};
  });
}

}  // namespace labrack::catalog
