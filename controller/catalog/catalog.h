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
#include "storage/base/descriptor.h"
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
  explicit Catalog(Descriptor lock) : lock_(std::move(lock)) {}
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

  Descriptor lock_;  // outlives the database
  std::unique_ptr<Database> database_;
  std::uint64_t controller_epoch_ = 0;
};

// For whoever reads beside a controller, or where none is; nothing is locked, made or changed.
//
// Whether a controller works on the catalog in `directory`.
Result<bool> IsHeld(const std::filesystem::path& directory);
// Whether the catalog is there; false also when the directory is not.
Result<bool> Exists(const std::filesystem::path& directory);
// Whether a Reader understands the catalog. False when an older build wrote it: Catalog::Open
// brings it up to date. Errors: kUnsupported when a newer one did.
Result<bool> IsUpToDate(const std::filesystem::path& directory);

}  // namespace labrack::catalog
