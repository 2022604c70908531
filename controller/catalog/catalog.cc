#include "controller/catalog/catalog.h"

#include <algorithm>
#include <fcntl.h>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "controller/catalog/schema.h"
#include "storage/base/clock.h"
#include "storage/base/file_lock.h"

namespace labrack::catalog {
namespace {

Result<Descriptor> TakeLock(const std::filesystem::path& file) {
  Descriptor lock(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.valid()) return FailErrno("open", file.string());
  const Result<bool> ours = TryLockFile(lock, file.string());
  if (!ours) return std::unexpected(ours.error());
  if (*ours) return lock;
  return Fail(Errc::kBusy, file.parent_path().string(),
              "another controller works on this catalog; stop it, use it with --controller, or "
              "name another state directory");
}

Result<void> CheckWal(Database& database, const std::filesystem::path& file) {
  Result<Query> query = database.Prepare("PRAGMA journal_mode");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->Step();
  if (!row) return std::unexpected(row.error());
  if (query->View(0) == "wal") return {};
  return Fail(Errc::kUnsupported, file.string(),
              "the file system cannot hold a write-ahead log (SQLite chose " + query->Text(0) +
                  "); put the state directory on a local disk");
}

// "result", "phase", ...: the field of the record's body. A kind that this build does not know is
// stored all the same.
std::string KindOf(const v1::EventRecord& record) {
  const google::protobuf::OneofDescriptor* body = record.GetDescriptor()->FindOneofByName("body");
  const google::protobuf::FieldDescriptor* field =
      record.GetReflection()->GetOneofFieldDescriptor(record, body);
  return field == nullptr ? "unknown" : field->name();
}

// Maps of a message are in no fixed order unless asked: the same record must give the same bytes.
std::string Serialized(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// Agents fill the clock's offset in when they send a result, so it may differ when it is sent
// again.
std::string WithoutClock(std::string_view body) {
  v1::EventRecord record;
  if (!record.ParseFromArray(body.data(), static_cast<int>(body.size()))) return std::string(body);
  if (record.has_result()) {
    record.mutable_result()->clear_clock_offset_ns();
    record.mutable_result()->clear_clock_uncertainty_ns();
  }
  return Serialized(record);
}

bool SameRecord(std::string_view a, std::string_view b) {
  return a == b || WithoutClock(a) == WithoutClock(b);
}

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::Open(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return Fail(ErrcFromErrno(error.value()), directory.string(),
                "the state directory cannot be made: " + error.message());
  }
  Result<Descriptor> lock = TakeLock(directory / kLockFile);
  if (!lock) return std::unexpected(lock.error());
  std::unique_ptr<Catalog> catalog(new Catalog(*std::move(lock)));
  const std::filesystem::path file = directory / kCatalogFile;
  Result<std::unique_ptr<Database>> database = Database::Open(file, Access::kWriter);
  if (!database) return std::unexpected(database.error());
  catalog->database_ = *std::move(database);
  if (Result<void> wal = CheckWal(*catalog->database_, file); !wal) {
    return std::unexpected(wal.error());
  }
  if (Result<void> migrated = Migrate(*catalog->database_, file, SchemaVersion()); !migrated) {
    return std::unexpected(migrated.error());
  }
  if (Result<void> raised = catalog->RaiseEpochAtStart(); !raised) {
    return std::unexpected(raised.error());
  }
  return catalog;
}

Result<void> Catalog::RaiseEpochAtStart() {
  Result<Transaction> transaction = Transaction::Begin(*database_);
  if (!transaction) return std::unexpected(transaction.error());
  {
    Result<Query> query = database_->Prepare(
        "UPDATE meta SET value = value + 1 WHERE name = 'controller_epoch' RETURNING value");
    if (!query) return std::unexpected(query.error());
    Result<bool> row = query->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return Fail(Errc::kCorrupt, "catalog", "the controller's epoch is missing");
    controller_epoch_ = query->Unsigned(0);
  }
  return transaction->Commit();
}

Result<Applied> Catalog::Apply(std::span<const Change> changes) {
  Applied applied;
  Result<Transaction> transaction = Transaction::Begin(*database_);
  if (!transaction) return std::unexpected(transaction.error());
  for (const Change& change : changes) {
    Result<void> done = std::visit([&](const auto& one) { return One(one, applied); }, change);
    if (!done) return std::unexpected(done.error());
  }
  if (Result<void> committed = transaction->Commit(); !committed) {
    return std::unexpected(committed.error());
  }
  return applied;
}

Result<void> Catalog::One(const InsertRun& change, Applied&) {
  const RunRow& run = change.run;
  Result<Query> query = database_->Prepare(
      "INSERT INTO runs(id, state, reason, playbook_name, playbook_file, playbook_text, plan, "
      "owner, lease_ns, created_wall_ns, ended_wall_ns, exit_code, verdict, idempotency_key) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''))");
  if (!query) return std::unexpected(query.error());
  Result<void> inserted =
      query
          ->With(run.id, StateName(run.state), run.reason, run.plan.playbook_name(),
                 run.playbook_file, run.playbook_text, Blob{Serialized(run.plan)}, run.owner,
                 run.lease_ns, run.created_wall_ns, run.ended_wall_ns, run.exit_code, run.verdict,
                 run.idempotency_key)
          .Run();
  if (!inserted) return inserted;
  for (const TrialRow& trial : change.trials) {
    if (Result<void> done = InsertTrial(trial); !done) return done;
  }
  return {};
}

Result<void> Catalog::InsertTrial(const TrialRow& trial) {
  Result<Query> query = database_->Prepare(
      "INSERT INTO trials(run_id, trial, cell, cell_name, repeat, state, reason, start_skew_ns, "
      "overlap, host_count) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!query) return std::unexpected(query.error());
  return query
      ->With(trial.run_id, trial.index, trial.cell, trial.cell_name, trial.repeat,
             StateName(trial.state), trial.reason, trial.start_skew_ns, trial.overlap,
             trial.host_count)
      .Run();
}

Result<void> Catalog::One(const UpdateRun& change, Applied&) {
  Result<Query> query = database_->Prepare(
      "UPDATE runs SET state = ?, reason = ?, ended_wall_ns = ?, exit_code = ?, verdict = ? "
      "WHERE id = ?");
  if (!query) return std::unexpected(query.error());
  return query
      ->With(StateName(change.state), change.reason, change.ended_wall_ns, change.exit_code,
             change.verdict, change.id)
      .Run();
}

Result<void> Catalog::One(const UpdateTrial& change, Applied&) {
  const TrialRow& trial = change.trial;
  Result<Query> query = database_->Prepare(
      "UPDATE trials SET state = ?, reason = ?, start_skew_ns = ?, overlap = ?, attempt = ? "
      "WHERE run_id = ? AND trial = ?");
  if (!query) return std::unexpected(query.error());
  return query
      ->With(StateName(trial.state), trial.reason, trial.start_skew_ns, trial.overlap,
             trial.attempt, trial.run_id, trial.index)
      .Run();
}

Result<void> Catalog::One(const PutAssignment& change, Applied& applied) {
  const AssignmentRow& row = change.assignment;
  Result<Query> query = database_->Prepare(
      "INSERT INTO assignments(id, run_id, trial, agent_id, host_name, epoch, offered_epoch, "
      "state, stop_wanted, stop_reason, reason) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
      "ON CONFLICT(id) DO UPDATE SET epoch = excluded.epoch, "
      "offered_epoch = excluded.offered_epoch, state = excluded.state, "
      "stop_wanted = excluded.stop_wanted, stop_reason = excluded.stop_reason, "
      "reason = excluded.reason "
      "WHERE state IN ('planned', 'offered', 'accepted', 'running') "
      "OR excluded.offered_epoch > offered_epoch");
  if (!query) return std::unexpected(query.error());
  Result<void> put = query
                         ->With(row.id, row.run_id, row.trial_index, row.agent_id, row.host_name,
                                row.epoch, row.offered_epoch, StateName(row.state), row.stop_wanted,
                                row.stop_reason, row.reason)
                         .Run();
  if (put && database_->changed_rows() == 0) ++applied.final_changes_refused;
  return put;
}

Result<void> Catalog::One(const StoreEvents& change, Applied& applied) {
  for (const v1::EventRecord& record : change.records) {
    if (Result<void> stored = StoreEvent(change, record, applied); !stored) return stored;
  }
  return {};
}

Result<void> Catalog::StoreEvent(const StoreEvents& batch, const v1::EventRecord& record,
                                 Applied& applied) {
  const std::string body = Serialized(record);
  {
    Result<Query> insert = database_->Prepare(
        "INSERT OR IGNORE INTO events(assignment_id, epoch, seq, kind, agent_mono_ns, "
        "received_wall_ns, body) VALUES(?, ?, ?, ?, ?, ?, ?)");
    if (!insert) return std::unexpected(insert.error());
    Result<void> run = insert
                           ->With(batch.assignment_id, batch.epoch, record.seq(), KindOf(record),
                                  record.mono_ns(), batch.received_wall_ns, Blob{body})
                           .Run();
    if (!run) return run;
  }
  if (database_->changed_rows() > 0) {
    ++applied.events_stored;
    return {};
  }
  Result<Query> stored = database_->Prepare(
      "SELECT body FROM events WHERE assignment_id = ? AND epoch = ? AND seq = ?");
  if (!stored) return std::unexpected(stored.error());
  Result<bool> row = stored->With(batch.assignment_id, batch.epoch, record.seq()).Step();
  if (!row) return std::unexpected(row.error());
  const bool same = *row && SameRecord(body, stored->View(0));
  ++(same ? applied.events_duplicate : applied.events_conflicting);
  return {};
}

Result<void> Catalog::One(const PutAgent& change, Applied&) {
  const AgentRow& agent = change.agent;
  Result<Query> query = database_->Prepare(
      "INSERT OR REPLACE INTO agents(id, machine_id, incarnation, boot_id, version, inventory, "
      "last_change_wall_ns) VALUES(?, ?, ?, ?, ?, ?, ?)");
  if (!query) return std::unexpected(query.error());
  return query
      ->With(agent.id, agent.machine_id, agent.incarnation, agent.boot_id, agent.version,
             Blob{Serialized(agent.inventory)}, WallClockNow().count())
      .Run();
}

Result<void> Catalog::One(const Audit& change, Applied&) {
  Result<Query> query = database_->Prepare(
      "INSERT INTO audit(wall_ns, who, verb, target, detail) VALUES(?, ?, ?, ?, ?)");
  if (!query) return std::unexpected(query.error());
  return query->With(change.wall_ns, change.who, change.verb, change.target, change.detail).Run();
}

Result<void> Catalog::One(const RaiseEpoch& change, Applied&) {
  Result<Query> query =
      database_->Prepare("UPDATE meta SET value = max(value, ?) WHERE name = 'controller_epoch'");
  if (!query) return std::unexpected(query.error());
  Result<void> run = query->With(change.controller_epoch).Run();
  if (run) controller_epoch_ = std::max(controller_epoch_, change.controller_epoch);
  return run;
}

Result<std::vector<StoredRun>> Catalog::OpenRuns() {
  Result<std::vector<std::string>> ids = ReadOpenRunIds(*database_);
  if (!ids) return std::unexpected(ids.error());
  std::vector<StoredRun> runs;
  for (const std::string& id : *ids) {
    Result<std::optional<StoredRun>> run = ReadOpenRun(*database_, id);
    if (!run) return std::unexpected(run.error());
    if (*run) runs.push_back(**std::move(run));
  }
  return runs;
}

Result<std::optional<std::string>> Catalog::RunByKey(const std::string& idempotency_key) {
  Result<Query> query = database_->Prepare("SELECT id FROM runs WHERE idempotency_key = ?");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->With(idempotency_key).Step();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::nullopt;
  return query->Text(0);
}

Result<bool> Catalog::HasRun(const std::string& id) {
  Result<Query> query = database_->Prepare("SELECT 1 FROM runs WHERE id = ?");
  if (!query) return std::unexpected(query.error());
  return query->With(id).Step();
}

Result<bool> IsHeld(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kLockFile;
  const Descriptor lock(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.valid()) return IsFileLocked(lock, file.string());
  if (errno == ENOENT) return false;
  return FailErrno("open", file.string());
}

Result<bool> Exists(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::path file = directory / kCatalogFile;
  const bool exists = std::filesystem::exists(file, error);
  if (error) return std::unexpected(Error::FromErrno(error.value(), "look for", file.string()));
  return exists;
}

Result<bool> IsUpToDate(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kCatalogFile;
  Result<std::unique_ptr<Database>> database = Database::Open(file, Access::kReader);
  if (!database) return std::unexpected(database.error());
  const Result<int> version = ReadVersion(**database, file);
  if (!version) return std::unexpected(version.error());
  return *version == SchemaVersion();
}

}  // namespace labrack::catalog
