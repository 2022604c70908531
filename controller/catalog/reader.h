// Questions to the catalog. They work on any connection: Catalog asks them on its writer when a
// controller starts, Reader on a read-only connection of its own for list, show and compare.
//
// Results are large (up to 900 KiB each), the rest of a run is not. So a run is read as far as is
// asked for (Level), and what needs all results takes them trial by trial: then one trial of all
// its hosts is in memory, however many there are.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
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

// A run with everything that is needed to go on with it: assignments of trials that have not ended.
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

Result<std::optional<StoredRun>> ReadOpenRun(Database& database, const std::string& id);
Result<std::optional<RunRow>> ReadRunRow(Database& database, const std::string& id);
// The plan has its name only, and the playbook is missing.
Result<std::optional<RunRow>> ReadRunWithoutPlan(Database& database, const std::string& id);
Result<std::vector<TrialRow>> ReadTrials(Database& database, const std::string& run_id);
Result<std::vector<AssignmentRow>> ReadAssignments(Database& database, const std::string& run_id,
                                                   std::uint32_t trial);
// False when none is stored; `result` is as it was then.
Result<bool> ReadResult(Database& database, const std::string& assignment_id, std::uint64_t epoch,
                        v1::AssignmentResult& result);
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

// How much of a run is read. Each level has what those before it have.
enum class Level {
  kSummary,      // the state of the run and of each trial
  kPlan,         // the plan and the playbook
  kAssignments,  // what each host was handed, and how that ended
  kResults,      // what each host measured
};

// A read-only connection. One thread at a time, but for Interrupt().
class Reader {
 public:
  // `directory`: the state directory of a catalog that is up to date (catalog.h).
  static Result<std::unique_ptr<Reader>> Open(const std::filesystem::path& directory);

  // kNotFound when there is no such run; the note says what would be right. With results all of
  // them are in memory: for a run of any size use EachTrial.
  Result<v1::RunRecord> Run(const std::string& id, Level level = Level::kResults);
  // The trials of a run from number `from` on, in order, one at a time. `use` says whether it wants
  // the next one. Nothing happens for a run that is not there.
  using UseTrial = std::function<bool(v1::TrialRecord trial)>;
  Result<void> EachTrial(const std::string& id, std::uint32_t from, Level level,
                         const UseTrial& use);
  Result<std::vector<v1::RunSummary>> Runs(std::uint32_t limit) {
    return ReadSummaries(*database_, limit);
  }

  // What `answer` asks sees the catalog as it was at one instant: a run that changes meanwhile is
  // not seen half old and half new.
  template <typename Answer>
  std::invoke_result_t<Answer> AtOneInstant(Answer answer) {
    if (frozen_) return answer();
    if (Result<void> begun = Freeze(); !begun) return std::unexpected(begun.error());
    std::invoke_result_t<Answer> answered = answer();
    if (Result<void> ended = Thaw(); !ended) return std::unexpected(ended.error());
    return answered;
  }

  // Any thread, once nothing is to be answered any more: the question in hand and all later ones
  // about trials fail (kUnavailable).
  void Interrupt();

 private:
  explicit Reader(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  Result<void> Freeze();
  Result<void> Thaw();
  Result<v1::RunRecord> Head(const std::string& id, Level level);  // up to kPlan

  std::unique_ptr<Database> database_;
  bool frozen_ = false;
  std::atomic<bool> interrupted_{false};
};

}  // namespace labrack::catalog
