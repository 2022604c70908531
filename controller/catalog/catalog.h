// The controller's memory on disk: one SQLite file, written by one connection.
//
//   state machines --Changes--> Apply (one transaction, WAL + FULL) --> commands and acks are sent
//
// What Apply() has returned for survives a power cut. Events are stored at most once by
// (assignment, epoch, seq); the same key with another body is counted, never stored. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/catalog/reader.h"
#include "controller/catalog/rows.h"
#include "controller/catalog/sqlite.h"
#include "storage/base/result.h"

namespace labrack::catalog {

inline constexpr const char* kCatalogFile = "catalog.db";
inline constexpr const char* kLockFile = "catalog.lock";

// What a batch did, beside the rows that were asked for.
struct Applied {
  std::uint64_t events_stored = 0;
  std::uint64_t events_duplicate = 0;
  // Alarms: events with a stored key but another body, and changes of assignments that had ended.
  std::uint64_t events_conflicting = 0;
  std::uint64_t final_changes_refused = 0;
};

class Catalog {
 public:
  // Opens the catalog in `directory`, which is made when missing; takes the lock, migrates, and
  // raises the controller's epoch by one, durably. Errors: kBusy when another process holds it,
  // kUnsupported when a newer build wrote it.
  static Result<std::unique_ptr<Catalog>> Open(const std::filesystem::path& directory);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  std::uint64_t controller_epoch() const { return controller_epoch_; }

  // All of `changes` or none. After an error nothing more may be acknowledged: the caller stops
  // (a second fsync after a failed one may lie).
  Result<Applied> Apply(std::span<const Change> changes);

  Result<std::vector<StoredRun>> OpenRuns();  // oldest first, with assignments of open trials
  Result<std::optional<std::string>> RunByKey(const std::string& idempotency_key);
  Result<bool> HasRun(const std::string& id);
  Database& database() { return *database_; }  // for the questions of reader.h

 private:
  Catalog(int lock_fd, std::unique_ptr<Database> database)
      : lock_fd_(lock_fd), database_(std::move(database)) {}
  Result<void> RaiseEpochAtStart();

  Result<void> One(const InsertRun& change, Applied& applied);
  Result<void> One(const UpdateRun& change, Applied& applied);
  Result<void> One(const UpdateTrial& change, Applied& applied);
  Result<void> One(const PutAssignment& change, Applied& applied);
  Result<void> One(const StoreEvents& change, Applied& applied);
  Result<void> One(const PutAgent& change, Applied& applied);
  Result<void> One(const Audit& change, Applied& applied);
  Result<void> One(const RaiseEpoch& change, Applied& applied);
  Result<void> InsertTrial(const TrialRow& trial);
  Result<void> StoreEvent(const StoreEvents& batch, const v1::EventRecord& record,
                          Applied& applied);

  int lock_fd_;
  std::unique_ptr<Database> database_;
  std::uint64_t controller_epoch_ = 0;
};

}  // namespace labrack::catalog
