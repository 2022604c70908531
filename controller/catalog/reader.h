// Questions to the catalog. They work on any connection: Catalog asks them on its writer when a
// controller starts, Reader on a read-only connection of its own for list, show and compare.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/catalog/rows.h"
#include "controller/catalog/sqlite.h"
#include "storage/base/result.h"

namespace labrack::catalog {

// An assignment with what is stored of its events.
struct StoredAssignment {
  AssignmentRow row;
  std::uint64_t through_seq = 0;               // of offered_epoch; 0: nothing
  std::optional<v1::AssignmentResult> result;  // of offered_epoch
};

// A run with everything that is needed to go on with it.
struct StoredRun {
  RunRow run;
  std::vector<TrialRow> trials;  // in order
  std::vector<StoredAssignment> assignments;
};

// How much is stored, for metrics that outlive a restart.
struct Totals {
  std::map<v1::RunState, std::uint64_t> runs;
  std::map<TrialState, std::uint64_t> trials;
  std::uint64_t events = 0;
};

enum class WithAssignments { kAll, kOpenTrials };  // kOpenTrials: of trials that have not ended

Result<std::optional<StoredRun>> ReadRun(Database& database, const std::string& id,
                                         WithAssignments which);
Result<std::vector<std::string>> ReadOpenRunIds(Database& database);  // oldest first
Result<std::vector<v1::RunSummary>> ReadSummaries(Database& database, std::uint32_t limit);
Result<std::vector<AgentRow>> ReadAgents(Database& database);
Result<std::uint64_t> ReadThroughSeq(Database& database, const std::string& assignment_id,
                                     std::uint64_t epoch);
Result<bool> IsResultStored(Database& database, const std::string& assignment_id,
                            std::uint64_t epoch);
Result<std::optional<AssignmentRow>> ReadAssignment(Database& database, const std::string& id);
Result<Totals> ReadTotals(Database& database);

// The forms that cross the wire.
v1::TrialSummary ToMessage(const TrialRow& trial);
v1::RunSummary SummaryOf(const RunRow& run, const std::vector<TrialRow>& trials);
v1::RunRecord ToMessage(const StoredRun& run);

// A read-only connection. One thread at a time, but for Interrupt().
class Reader {
 public:
  // `directory`: the state directory of a catalog that is up to date (catalog.h).
  static Result<std::unique_ptr<Reader>> Open(const std::filesystem::path& directory);

  // kNotFound when there is no such run; the note says what would be right.
  Result<v1::RunRecord> Run(const std::string& id);
  Result<std::vector<v1::RunSummary>> Runs(std::uint32_t limit) {
    return ReadSummaries(*database_, limit);
  }

  // Any thread: the question that is being answered fails.
  void Interrupt() { database_->Interrupt(); }

 private:
  explicit Reader(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  std::unique_ptr<Database> database_;
};

}  // namespace labrack::catalog
