#include "controller/catalog/schema.h"

#include <array>
#include <string>

namespace labrack::catalog {
namespace {

// Steps are never edited once a release has shipped them; a change is a new step.
constexpr const char* kTables = R"sql(
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES('controller_epoch', 0);

CREATE TABLE agents(
  id TEXT PRIMARY KEY, machine_id TEXT NOT NULL, incarnation INTEGER NOT NULL,
  boot_id TEXT NOT NULL, version TEXT NOT NULL, inventory BLOB NOT NULL,
  last_change_wall_ns INTEGER NOT NULL);

CREATE TABLE runs(
  id TEXT PRIMARY KEY, state TEXT NOT NULL, reason TEXT NOT NULL, playbook_name TEXT NOT NULL,
  playbook_file TEXT NOT NULL, playbook_text TEXT NOT NULL, plan BLOB NOT NULL,
  owner TEXT NOT NULL, idempotency_key TEXT UNIQUE, lease_ns INTEGER NOT NULL,
  created_wall_ns INTEGER NOT NULL, ended_wall_ns INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  verdict TEXT NOT NULL);

CREATE TABLE trials(
  run_id TEXT NOT NULL REFERENCES runs(id), trial INTEGER NOT NULL, cell INTEGER NOT NULL,
  cell_name TEXT NOT NULL, repeat INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
  start_skew_ns INTEGER NOT NULL, overlap REAL NOT NULL, host_count INTEGER NOT NULL,
  PRIMARY KEY(run_id, trial)) WITHOUT ROWID;

CREATE TABLE assignments(
  id TEXT PRIMARY KEY, run_id TEXT NOT NULL, trial INTEGER NOT NULL, agent_id TEXT NOT NULL,
  host_name TEXT NOT NULL, epoch INTEGER NOT NULL UNIQUE, offered_epoch INTEGER NOT NULL,
  state TEXT NOT NULL, stop_wanted INTEGER NOT NULL, reason TEXT NOT NULL,
  FOREIGN KEY(run_id, trial) REFERENCES trials(run_id, trial));
CREATE INDEX assignments_by_trial ON assignments(run_id, trial);

-- No reference to assignments: what an agent reports is kept even when nobody asked for it.
CREATE TABLE events(
  assignment_id TEXT NOT NULL, epoch INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
  agent_mono_ns INTEGER NOT NULL, received_wall_ns INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(assignment_id, epoch, seq)) WITHOUT ROWID;
)sql";

constexpr const char* kAuditTrail = R"sql(
CREATE TABLE audit(
  id INTEGER PRIMARY KEY, wall_ns INTEGER NOT NULL, who TEXT NOT NULL, verb TEXT NOT NULL,
  target TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX audit_by_target ON audit(target);
CREATE INDEX runs_by_time ON runs(created_wall_ns);
)sql";

constexpr const char* kAttempts = R"sql(
ALTER TABLE trials ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;
)sql";

constexpr const char* kStopReasons = R"sql(
ALTER TABLE assignments ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';
UPDATE assignments SET stop_reason = reason WHERE stop_wanted;
)sql";

constexpr std::array kSteps = {kTables, kAuditTrail, kAttempts, kStopReasons};

Result<void> CopyBefore(Database& database, const std::filesystem::path& file, int version) {
  const std::string copy = file.string() + ".v" + std::to_string(version);
  std::error_code ignored;
  std::filesystem::remove(copy, ignored);  // of an attempt that did not get far
  Result<Query> query = database.Prepare("VACUUM INTO ?");
  if (!query) return std::unexpected(query.error());
  return query->With(copy).Run();
}

Result<void> RunStep(Database& database, int step) {
  Result<Transaction> transaction = Transaction::Begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  if (Result<void> run = database.Execute(kSteps[static_cast<std::size_t>(step)]); !run) return run;
  if (Result<void> set =
          database.Execute("PRAGMA user_version=" + std::to_string(step + 1));  // is transactional
      !set) {
    return set;
  }
  return transaction->Commit();
}

}  // namespace

int SchemaVersion() { return static_cast<int>(kSteps.size()); }

Result<int> ReadVersion(Database& database, const std::filesystem::path& file) {
  Result<Query> query = database.Prepare("PRAGMA user_version");
  if (!query) return std::unexpected(query.error());
  Result<bool> row = query->Step();
  if (!row) return std::unexpected(row.error());
  const int version = static_cast<int>(query->Integer(0));
  if (version <= SchemaVersion()) return version;
  return Fail(Errc::kUnsupported, file.string(),
              "the catalog has schema version " + std::to_string(version) +
                  ", this labrack knows up to " + std::to_string(SchemaVersion()) +
                  "; start a newer labrack, or name another state directory");
}

Result<void> Migrate(Database& database, const std::filesystem::path& file, int target) {
  const Result<int> version = ReadVersion(database, file);
  if (!version) return std::unexpected(version.error());
  if (*version > 0 && *version < target) {
    if (Result<void> copied = CopyBefore(database, file, *version); !copied) return copied;
  }
  for (int step = *version; step < target; ++step) {
    if (Result<void> run = RunStep(database, step); !run) return run;
  }
  return {};
}

}  // namespace labrack::catalog
