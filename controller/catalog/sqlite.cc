#include "controller/catalog/sqlite.h"

#include <utility>

#include <sqlite3.h>

namespace labrack::catalog {
namespace {

constexpr int kBusyMilliseconds = 5000;

Errc ErrcOf(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Errc::kNoSpace;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Errc::kBusy;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Errc::kCorrupt;
    case SQLITE_CANTOPEN:
      return Errc::kNotFound;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Errc::kPermissionDenied;
    case SQLITE_CONSTRAINT:
      return Errc::kAlreadyExists;
    case SQLITE_IOERR:
      return Errc::kIo;
    case SQLITE_INTERRUPT:
      return Errc::kUnavailable;
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return Errc::kExhausted;
    default:
      return Errc::kInternal;
  }
}

// The file that a statement's connection has open, for messages.
std::string FileOf(sqlite3_stmt* statement) {
  const char* name = sqlite3_db_filename(sqlite3_db_handle(statement), "main");
  return name == nullptr ? "catalog" : name;
}

// The name of a file as a URI, where '?', '#' and '%' mean something.
std::string UriOf(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '?' || c == '#' || c == '%') {
      uri += {'%', kHex[byte >> 4], kHex[byte & 0xf]};
    } else {
      uri += c;
    }
  }
  return uri;
}

}  // namespace

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query::Query(Query&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)),
      next_(other.next_),
      bind_error_(other.bind_error_) {}

void Query::Keep(int code) {
  if (code != SQLITE_OK && bind_error_ == SQLITE_OK) bind_error_ = code;
}
void Query::BindInteger(std::int64_t value) {
  Keep(sqlite3_bind_int64(statement_, next_++, value));
}
void Query::BindReal(double value) { Keep(sqlite3_bind_double(statement_, next_++, value)); }
void Query::BindText(std::string_view value) {
  Keep(sqlite3_bind_text64(statement_, next_++, value.data() == nullptr ? "" : value.data(),
                           value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}
void Query::BindBlob(std::string_view value) {
  Keep(sqlite3_bind_blob64(statement_, next_++, value.data() == nullptr ? "" : value.data(),
                           value.size(), SQLITE_TRANSIENT));
}
Result<bool> Query::Step() {
  const int code = bind_error_ != SQLITE_OK ? bind_error_ : sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return Fail(ErrcOf(code), FileOf(statement_),
              std::string("SQLite: ") + sqlite3_errmsg(sqlite3_db_handle(statement_)));
}

Result<void> Query::Run() {
  for (;;) {
    Result<bool> row = Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
  }
}

std::int64_t Query::Integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Query::Real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Query::Text(int column) const { return std::string(View(column)); }
std::string_view Query::View(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Database::Database(sqlite3* handle, std::filesystem::path file)
    : handle_(handle), file_(std::move(file)) {}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

Error Database::Failure(std::string_view what) const {
  return Error(ErrcOf(sqlite3_errcode(handle_)), file_.string(),
               std::string(what) + ": SQLite: " + sqlite3_errmsg(handle_));
}

Result<std::unique_ptr<Database>> Database::OpenAs(const std::string& name, int flags,
                                                   const std::filesystem::path& file) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, /*zVfs=*/nullptr);
  std::unique_ptr<Database> database(new Database(handle, file));
  if (code != SQLITE_OK) return std::unexpected(database->Failure("open"));
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  return database;
}

Result<std::unique_ptr<Database>> Database::Open(const std::filesystem::path& file, Access access) {
  if (access == Access::kReader) return OpenReader(file);
  Result<std::unique_ptr<Database>> database =
      OpenAs(file.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, file);
  if (!database) return database;
  const Result<void> set = (*database)->Execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
      "PRAGMA wal_autocheckpoint=1000;");
  if (!set) return std::unexpected(set.error());
  return database;
}

// Two connections that write or checkpoint at once can lose a WAL (SQLite before 3.51.3), so a
// reader does neither, not even on close. The schema's version is asked for to read the file.
Result<void> Database::BeReader() {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return Execute("PRAGMA wal_autocheckpoint=0; PRAGMA query_only=ON; PRAGMA schema_version;");
}

Result<std::unique_ptr<Database>> Database::OpenReader(const std::filesystem::path& file) {
  Result<std::unique_ptr<Database>> database = OpenAs(file.string(), SQLITE_OPEN_READONLY, file);
  if (!database) return database;
  const Result<void> read = (*database)->BeReader();
  if (read) return database;
  // A database with a WAL is read by way of -wal and -shm, which a reader makes where no writer has
  // them open. Where it may not, and no -wal is there, the file alone holds all that was committed.
  std::error_code error;
  const bool alone = !std::filesystem::exists(file.string() + "-wal", error) && !error;
  const Errc why = ErrcOf(sqlite3_errcode((*database)->handle_));
  if ((why != Errc::kNotFound && why != Errc::kPermissionDenied) || !alone) {
    return std::unexpected(read.error());
  }
  database = OpenAs(UriOf(file) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, file);
  if (!database) return database;
  if (Result<void> set = (*database)->BeReader(); !set) return std::unexpected(set.error());
  return database;
}

Result<Query> Database::Prepare(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return std::unexpected(Failure("prepare"));
    found = statements_.emplace(std::string(sql), statement).first;
  }
  return Query(found->second);
}

Result<void> Database::Execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return std::unexpected(Failure("execute"));
  }
  return {};
}

void Database::Interrupt() { sqlite3_interrupt(handle_); }
int Database::changed_rows() const { return sqlite3_changes(handle_); }

Result<Transaction> Transaction::Begin(Database& database) {
  if (Result<void> begun = database.Execute("BEGIN IMMEDIATE"); !begun) {
    return std::unexpected(begun.error());
  }
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // A failed ROLLBACK means that SQLite has rolled back by itself already.
  if (database_ != nullptr) static_cast<void>(database_->Execute("ROLLBACK"));
}

Result<void> Transaction::Commit() {
  Result<void> committed = database_->Execute("COMMIT");
  if (committed) database_ = nullptr;
  return committed;
}

}  // namespace labrack::catalog
