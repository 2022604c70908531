#include "agent/session/journal.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

namespace labrack::session {
namespace {

constexpr int kSchemaVersion = 1;
constexpr const char* kSchema = R"sql(
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE assignments (
    assignment_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    state INTEGER NOT NULL,
    spec BLOB NOT NULL,
    boot_id TEXT NOT NULL DEFAULT '',
    clock_offset_ns INTEGER NOT NULL DEFAULT 0,
    clock_uncertainty_ns INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (assignment_id, epoch)
  ) WITHOUT ROWID;
  CREATE INDEX by_epoch ON assignments (epoch);
  PRAGMA user_version = 1;
)sql";

// After this many pages the write-ahead log is copied into the database.
constexpr int kCheckpointPages = 1000;

Errc ErrcOf(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Errc::kNoSpace;
    case SQLITE_BUSY:
      return Errc::kBusy;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Errc::kCorrupt;
    default:
      return Errc::kIo;
  }
}

bool IsFailureOfTheMedium(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_IOERR || primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
}

// `code` is what the call gave: the connection's own may be of a later one.
Error SqliteError(sqlite3* database, int code, std::string_view what) {
  std::string note = fmt::format("{}: {}", what, sqlite3_errstr(code));
  if (IsFailureOfTheMedium(code)) {
    const bool is_sync = code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC;
    const int error_number = sqlite3_system_errno(database);
    if (is_sync) note += ", fsync failed";
    if (error_number != 0) note += fmt::format(": {}", std::strerror(error_number));
  }
  return {ErrcOf(code), "journal", note};
}

// SQLite's own hook ignores what a checkpoint fails with. The log's content is durable by then, so
// that one which only finds no room is made up for later.
int Checkpoint(void*, sqlite3* database, const char* name, int pages) {
  if (pages < kCheckpointPages) return SQLITE_OK;
  const int code =
      sqlite3_wal_checkpoint_v2(database, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  return IsFailureOfTheMedium(code) ? code : SQLITE_OK;
}

// One statement, from preparation to its rows. `failure` is the journal's.
class Statement {
 public:
  Statement(sqlite3* database, std::optional<Error>& failure, const char* sql)
      : database_(database), failure_(failure) {
    prepared_ = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Bind(std::int64_t number) {
    sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  Statement& BindBlob(const std::string& bytes) {
    sqlite3_bind_blob(statement_, ++bound_, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }

  // True: there is a row.
  Result<bool> Step() {
    if (failure_) return std::unexpected(*failure_);
    const int code = prepared_ == SQLITE_OK ? sqlite3_step(statement_) : prepared_;
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    Error error = SqliteError(database_, code, prepared_ == SQLITE_OK ? "step" : "prepare");
    if (IsFailureOfTheMedium(code)) failure_ = error;
    return std::unexpected(std::move(error));
  }
  Result<void> Run() {
    Result<bool> stepped = Step();
    if (!stepped) return std::unexpected(stepped.error());
    return {};
  }

  std::int64_t Number(int column) { return sqlite3_column_int64(statement_, column); }
  std::string Text(int column) {
    const void* bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    if (bytes == nullptr) return {};
    return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
  }

 private:
  sqlite3* database_;
  std::optional<Error>& failure_;
  sqlite3_stmt* statement_ = nullptr;
  int prepared_ = SQLITE_OK;
  int bound_ = 0;
};

}  // namespace

void Journal::Closer::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Journal::Journal(sqlite3* database) : database_(database) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

Result<Journal> Journal::Open(const std::filesystem::path& file) {
  sqlite3* database = nullptr;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(file.c_str(), &database, kFlags, nullptr);
  Journal journal(database);
  if (code != SQLITE_OK) {
    return std::unexpected(SqliteError(database, code, "open " + file.string()));
  }
  sqlite3_extended_result_codes(database, 1);
  // Exclusive before anything is read: then the index of the log is kept in memory, and not in a
  // file that would need room on a full disk.
  for (const char* pragma : {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL",
                             "PRAGMA synchronous=FULL", "PRAGMA busy_timeout=5000"}) {
    if (Result<void> set = journal.Run(pragma); !set) return std::unexpected(set.error());
  }
  if (Result<void> migrated = journal.Migrate(); !migrated) {
    return std::unexpected(migrated.error());
  }
  sqlite3_wal_hook(database, Checkpoint, nullptr);
  return journal;
}

Result<void> Journal::Run(const char* sql) {
  if (failure_) return std::unexpected(*failure_);
  const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  Error error = SqliteError(database_.get(), code, sql);
  if (IsFailureOfTheMedium(code)) failure_ = error;
  // A transaction that is left open would swallow whatever comes next.
  if (sqlite3_get_autocommit(database_.get()) == 0) {
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return std::unexpected(std::move(error));
}

Result<void> Journal::Migrate() {
  Statement version(database_.get(), failure_, "PRAGMA user_version");
  Result<bool> row = version.Step();
  if (!row) return std::unexpected(row.error());
  const std::int64_t found = version.Number(0);
  if (found == kSchemaVersion) return {};
  if (found > kSchemaVersion) {
    return Fail(Errc::kUnsupported, "journal",
                fmt::format("version {} was written by a newer agent; this one knows {}", found,
                            kSchemaVersion));
  }
  return Run(fmt::format("BEGIN IMMEDIATE; {} COMMIT", kSchema).c_str());
}

Result<std::string> Journal::Value(const char* name) {
  Statement select(database_.get(), failure_, "SELECT value FROM settings WHERE name = ?");
  Result<bool> row = select.Bind(name).Step();
  if (!row) return std::unexpected(row.error());
  return *row ? select.Text(0) : std::string();
}

Result<std::uint64_t> Journal::Number(const char* name) {
  Result<std::string> value = Value(name);
  if (!value) return std::unexpected(value.error());
  return value->empty() ? 0 : std::strtoull(value->c_str(), nullptr, 10);
}

Result<void> Journal::SetValue(const char* name, const std::string& value) {
  Statement insert(database_.get(), failure_,
                   "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)");
  return insert.Bind(name).Bind(value).Run();
}

Result<std::uint64_t> Journal::NextIncarnation() {
  Result<std::uint64_t> before = Number("incarnation");
  if (!before) return before;
  const std::uint64_t next = *before + 1;
  if (Result<void> set = SetValue("incarnation", std::to_string(next)); !set) {
    return std::unexpected(set.error());
  }
  return next;
}

Result<std::string> Journal::AgentId() { return Value("agent_id"); }
Result<void> Journal::SetAgentId(const std::string& agent_id) {
  return SetValue("agent_id", agent_id);
}

Result<std::uint64_t> Journal::ControllerEpoch() { return Number("controller_epoch"); }
Result<void> Journal::SetControllerEpoch(std::uint64_t epoch) {
  return SetValue("controller_epoch", std::to_string(epoch));
}

Result<std::uint64_t> Journal::EpochFloor() { return Number("epoch_floor"); }

Result<std::vector<JournalRow>> Journal::Held() {
  Statement select(database_.get(), failure_,
                   "SELECT spec, state, boot_id, clock_offset_ns, clock_uncertainty_ns "
                   "FROM assignments WHERE state < ? ORDER BY epoch");
  select.Bind(static_cast<std::int64_t>(HeldState::kClosed));
  std::vector<JournalRow> rows;
  for (;;) {
    Result<bool> row = select.Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return rows;
    JournalRow held;
    if (!held.spec.ParseFromString(select.Text(0))) {
      return Fail(Errc::kCorrupt, "journal", "a specification does not read back");
    }
    held.state = static_cast<HeldState>(select.Number(1));
    held.boot_id = select.Text(2);
    held.clock_offset_ns = select.Number(3);
    held.clock_uncertainty_ns = select.Number(4);
    rows.push_back(std::move(held));
  }
}

Result<std::optional<Journal::Known>> Journal::Find(const std::string& assignment_id) {
  Statement select(database_.get(), failure_,
                   "SELECT epoch, state FROM assignments WHERE assignment_id = ? "
                   "ORDER BY epoch DESC LIMIT 1");
  Result<bool> row = select.Bind(assignment_id).Step();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::nullopt;
  return Known{.epoch = static_cast<std::uint64_t>(select.Number(0)),
               .state = static_cast<HeldState>(select.Number(1))};
}

Result<void> Journal::Accept(const v1::AssignmentSpec& spec) {
  Result<std::optional<Known>> known = Find(spec.assignment_id());
  if (!known) return std::unexpected(known.error());
  if (*known && (*known)->epoch >= spec.epoch()) {
    return Fail(Errc::kAlreadyExists, spec.assignment_id(),
                fmt::format("epoch {} was accepted before", (*known)->epoch));
  }
  Statement insert(database_.get(), failure_,
                   "INSERT INTO assignments (assignment_id, epoch, state, spec) "
                   "VALUES (?, ?, ?, ?)");
  return insert.Bind(spec.assignment_id())
      .Bind(static_cast<std::int64_t>(spec.epoch()))
      .Bind(static_cast<std::int64_t>(HeldState::kAccepted))
      .BindBlob(spec.SerializeAsString())
      .Run();
}

Result<void> Journal::Start(const v1::AssignmentSpec& spec, const std::string& boot_id) {
  Statement update(database_.get(), failure_,
                   "UPDATE assignments SET state = ?, boot_id = ? "
                   "WHERE assignment_id = ? AND epoch = ?");
  return update.Bind(static_cast<std::int64_t>(HeldState::kStarted))
      .Bind(boot_id)
      .Bind(spec.assignment_id())
      .Bind(static_cast<std::int64_t>(spec.epoch()))
      .Run();
}

Result<void> Journal::Seal(const v1::AssignmentSpec& spec, std::int64_t clock_offset_ns,
                           std::int64_t clock_uncertainty_ns) {
  Statement update(database_.get(), failure_,
                   "UPDATE assignments SET state = ?, clock_offset_ns = ?, "
                   "clock_uncertainty_ns = ? WHERE assignment_id = ? AND epoch = ?");
  return update.Bind(static_cast<std::int64_t>(HeldState::kSealed))
      .Bind(clock_offset_ns)
      .Bind(clock_uncertainty_ns)
      .Bind(spec.assignment_id())
      .Bind(static_cast<std::int64_t>(spec.epoch()))
      .Run();
}

Result<void> Journal::Close(const std::string& assignment_id, std::uint64_t epoch) {
  Statement update(database_.get(), failure_,
                   "UPDATE assignments SET state = ?, spec = x'' "
                   "WHERE assignment_id = ? AND epoch = ?");
  Result<void> closed = update.Bind(static_cast<std::int64_t>(HeldState::kClosed))
                            .Bind(assignment_id)
                            .Bind(static_cast<std::int64_t>(epoch))
                            .Run();
  return closed ? Prune() : closed;
}

Result<void> Journal::Prune() {
  Statement count(database_.get(), failure_, "SELECT count(*) FROM assignments WHERE state = ?");
  Result<bool> row = count.Bind(static_cast<std::int64_t>(HeldState::kClosed)).Step();
  if (!row) return std::unexpected(row.error());
  // A tenth at a time, so that it is rarely done.
  if (count.Number(0) <= kClosedKeptMax + kClosedKeptMax / 10) return {};
  return Run(
      fmt::format("BEGIN IMMEDIATE;"
                  "CREATE TEMP TABLE old AS SELECT assignment_id, epoch FROM assignments "
                  "WHERE state = {} ORDER BY epoch LIMIT {};"
                  "INSERT OR REPLACE INTO settings SELECT 'epoch_floor', max(epoch) FROM old;"
                  "DELETE FROM assignments WHERE (assignment_id, epoch) IN old;"
                  "DROP TABLE old;"
                  "COMMIT",
                  static_cast<int>(HeldState::kClosed), kClosedKeptMax / 10)
          .c_str());
}

}  // namespace labrack::session
