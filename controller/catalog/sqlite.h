// SQLite as values: a connection, statements kept prepared, errors as Result. Only this folder
// knows SQLite. A Database belongs to one thread at a time and is never used across fork().
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "storage/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace labrack::catalog {

// A text is bound as TEXT; wrap bytes to bind them as BLOB.
struct Blob {
  std::string_view bytes;
};

// One execution of a prepared statement. Values are bound in order by With(); the statement is
// reset when this goes away, so it must not outlive the Database nor overlap with another use of
// the same SQL text.
class Query {
 public:
  explicit Query(sqlite3_stmt* statement) : statement_(statement) {}
  ~Query();
  Query(Query&& other) noexcept;
  Query& operator=(Query&&) = delete;

  template <typename... Values>
  Query& With(const Values&... values) {
    (Bind(values), ...);
    return *this;
  }

  Result<bool> Step();  // true: a row is there
  Result<void> Run();   // steps to the end

  // Columns of the row, from 0. Texts and blobs alike.
  std::int64_t Integer(int column) const;
  std::uint64_t Unsigned(int column) const { return static_cast<std::uint64_t>(Integer(column)); }
  double Real(int column) const;
  std::string Text(int column) const;
  std::string_view View(int column) const;  // valid until the next Step()

 private:
  template <typename Value>
  void Bind(const Value& value) {
    if constexpr (std::is_same_v<Value, Blob>) {
      BindBlob(value.bytes);
    } else if constexpr (std::is_floating_point_v<Value>) {
      BindReal(static_cast<double>(value));
    } else if constexpr (std::is_integral_v<Value>) {
      BindInteger(static_cast<std::int64_t>(value));
    } else {
      BindText(std::string_view(value));
    }
  }
  void BindInteger(std::int64_t value);
  void BindReal(double value);
  void BindText(std::string_view value);
  void BindBlob(std::string_view value);
  void Keep(int code);

  sqlite3_stmt* statement_;
  int next_ = 1;
  int bind_error_ = 0;  // first failure of a bind; reported by Step()
};

enum class Access { kWriter, kReader };

class Database {
 public:
  // Opens `file`. The writer makes it when it is missing, and turns WAL, synchronous=FULL and
  // foreign keys on; a reader opens read-only, never checkpoints, and expects the file to be there.
  // A reader needs no write access to the directory.
  static Result<std::unique_ptr<Database>> Open(const std::filesystem::path& file, Access access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Result<Query> Prepare(std::string_view sql);
  Result<void> Execute(const std::string& sql);  // several statements, without values
  void Interrupt();                              // any thread; what runs fails
  int changed_rows() const;                      // by the last statement that changed something

 private:
  Database(sqlite3* handle, std::filesystem::path file);
  static Result<std::unique_ptr<Database>> OpenAs(const std::string& name, int flags,
                                                  const std::filesystem::path& file);
  static Result<std::unique_ptr<Database>> OpenReader(const std::filesystem::path& file);
  Result<void> BeReader();
  Error Failure(std::string_view what) const;

  sqlite3* handle_;
  std::filesystem::path file_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

// BEGIN IMMEDIATE now, ROLLBACK when it goes away without Commit().
class Transaction {
 public:
  static Result<Transaction> Begin(Database& database);
  ~Transaction();
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  Result<void> Commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace labrack::catalog
