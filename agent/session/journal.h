// Journal: what this agent has promised, in one SQLite file (WAL, synchronous=FULL, one
// connection). Every call that changes something is durable on return. It answers three questions
// after any crash: which trials are held, was this epoch ever accepted, and which controller is the
// newest.
//
// A write or a sync that the medium failed is never tried again: the next sync may report success
// for what the first one has lost. From then on every call fails (failure()), and the agent ends;
// the next one goes on from what is durable. A full disk is no such failure: nothing was written.
//
// Ended trials leave their row without its body, so that an Assign that is repeated late is never
// run again; beyond kClosedKeptMax such rows the oldest go, and everything up to their epoch is
// refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "labrack/v1/plan.pb.h"
#include "storage/base/result.h"

struct sqlite3;

namespace labrack::session {

enum class HeldState : int {
  kAccepted = 1,  // promised
  kStarted = 2,   // its worker may have been started
  kSealed = 3,    // the result is in the spool
  kClosed = 4,    // the controller has everything; the spool may be gone
};

struct JournalRow {
  v1::AssignmentSpec spec;
  HeldState state = HeldState::kAccepted;
  std::string boot_id;  // at the start of the worker
  // How the clocks stood when the result was sealed: a result that is sent again must be the same.
  std::int64_t clock_offset_ns = 0;
  std::int64_t clock_uncertainty_ns = 0;
};

// Not thread-safe.
class Journal {
 public:
  static constexpr std::int64_t kClosedKeptMax = 100'000;

  static Result<Journal> Open(const std::filesystem::path& file);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  // What broke it: an error of the medium, or a file that does not read back. Nothing is read or
  // written any more.
  const std::optional<Error>& failure() const { return failure_; }

  // Adds one to the number of starts and gives it.
  Result<std::uint64_t> NextIncarnation();
  Result<std::string> AgentId();  // empty: none kept yet
  Result<void> SetAgentId(const std::string& agent_id);
  Result<std::uint64_t> ControllerEpoch();
  Result<void> SetControllerEpoch(std::uint64_t epoch);

  // Held trials (not closed), by epoch.
  Result<std::vector<JournalRow>> Held();
  // The highest epoch ever accepted for an assignment, and whether exactly that one is closed.
  struct Known {
    std::uint64_t epoch = 0;
    HeldState state = HeldState::kAccepted;
  };
  Result<std::optional<Known>> Find(const std::string& assignment_id);
  // Everything up to it is refused, whatever its assignment.
  Result<std::uint64_t> EpochFloor();

  // kAlreadyExists when the same or a later epoch of the assignment was accepted before.
  Result<void> Accept(const v1::AssignmentSpec& spec);
  Result<void> Start(const v1::AssignmentSpec& spec, const std::string& boot_id);
  Result<void> Seal(const v1::AssignmentSpec& spec, std::int64_t clock_offset_ns,
                    std::int64_t clock_uncertainty_ns);
  Result<void> Close(const std::string& assignment_id, std::uint64_t epoch);

 private:
  explicit Journal(sqlite3* database);
  Result<void> Run(const char* sql);
  Result<void> Migrate();
  Result<std::string> Value(const char* name);
  Result<std::uint64_t> Number(const char* name);  // 0 where there is none
  Result<void> SetValue(const char* name, const std::string& value);
  Result<void> SetState(const v1::AssignmentSpec& spec, HeldState state);
  Result<void> Prune();

  struct Closer {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Closer> database_;
  std::optional<Error> failure_;
};

}  // namespace labrack::session
