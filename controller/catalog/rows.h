// What the catalog keeps, as plain values, and the changes that can be made to it. The state
// machines (controller/run, controller/fleet) answer with Changes; the catalog applies a batch of
// them in one transaction. This header knows nothing of SQLite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "labrack/v1/control.pb.h"
#include "labrack/v1/fleet.pb.h"
#include "labrack/v1/plan.pb.h"

namespace labrack::catalog {

// Of an assignment, as the controller sees it. The last four are final: only a further attempt
// at the trial, with a newer token, changes them.
enum class AssignmentState {
  kPlanned,    // written down, not sent yet: the agent is away
  kOffered,    // sent; the agent may or may not hold it
  kAccepted,   // the agent has journalled it
  kRunning,    // its first event is here
  kClosed,     // its result is here; the agent may delete its spool
  kRefused,    // the agent will not do it, and said why
  kAbandoned,  // its agent was silent for too long; the epoch has moved on
  kCancelled,  // ended before the agent had it
};
std::string_view StateName(AssignmentState state);  // "offered"
std::optional<AssignmentState> AssignmentStateFrom(std::string_view name);
constexpr bool IsFinal(AssignmentState state) { return state >= AssignmentState::kClosed; }

enum class TrialState { kPlanned, kRunning, kValid, kInvalid, kLost, kCancelled };
std::string_view StateName(TrialState state);  // "valid"
std::optional<TrialState> TrialStateFrom(std::string_view name);
constexpr bool IsFinal(TrialState state) { return state >= TrialState::kValid; }

std::string_view StateName(v1::RunState state);  // "running"
std::optional<v1::RunState> RunStateFrom(std::string_view name);
constexpr bool IsFinal(v1::RunState state) {
  return state == v1::RUN_STATE_DONE || state == v1::RUN_STATE_CANCELLED ||
         state == v1::RUN_STATE_FAILED;
}

// The plan never changes once it is written.
struct RunRow {
  std::string id;
  v1::RunState state = v1::RUN_STATE_PENDING;
  std::string reason;
  std::string playbook_file;
  std::string playbook_text;
  v1::Plan plan;
  std::string owner;
  std::string idempotency_key;  // empty: none
  std::int64_t lease_ns = 0;
  std::int64_t created_wall_ns = 0;
  std::int64_t ended_wall_ns = 0;
  std::int32_t exit_code = -1;
  std::string verdict;
};

struct TrialRow {
  std::string run_id;
  std::uint32_t index = 0;
  std::uint32_t cell = 0;
  std::string cell_name;
  std::uint32_t repeat = 0;
  TrialState state = TrialState::kPlanned;
  std::string reason;
  std::int64_t start_skew_ns = 0;
  double overlap = -1;  // negative: one host, or not known
  std::uint32_t host_count = 0;
  std::uint32_t attempt = 1;  // above 1: its common start had broken, and it was begun anew
};

struct AssignmentRow {
  std::string id;
  std::string run_id;
  std::uint32_t trial_index = 0;
  std::string agent_id;
  std::string host_name;
  std::uint64_t epoch = 0;          // the newest; above offered_epoch once it is abandoned
  std::uint64_t offered_epoch = 0;  // what the agent may hold
  AssignmentState state = AssignmentState::kPlanned;
  bool stop_wanted = false;
  std::string stop_reason;  // why it is to stop
  std::string reason;       // why it ended as it did
};

struct AgentRow {
  std::string id;
  std::string machine_id;
  std::uint64_t incarnation = 0;
  std::string boot_id;
  std::string version;
  v1::Inventory inventory;
};

// Changes. Each is one row or a few; a batch is atomic.
struct InsertRun {
  RunRow run;
  std::vector<TrialRow> trials;
};
struct UpdateRun {
  std::string id;
  v1::RunState state = v1::RUN_STATE_PENDING;
  std::string reason;
  std::int64_t ended_wall_ns = 0;
  std::int32_t exit_code = -1;
  std::string verdict;
};
struct UpdateTrial {
  TrialRow trial;
};
struct PutAssignment {  // inserts, or replaces all but the identity
  AssignmentRow assignment;
};
struct StoreEvents {
  std::string assignment_id;
  std::uint64_t epoch = 0;
  std::int64_t received_wall_ns = 0;
  std::vector<v1::EventRecord> records;
};
struct PutAgent {
  AgentRow agent;
};
struct Audit {  // who asked for what, and what the controller did on its own
  std::int64_t wall_ns = 0;
  std::string who;
  std::string verb;
  std::string target;
  std::string detail;
};
struct RaiseEpoch {  // controller_epoch becomes at least this
  std::uint64_t controller_epoch = 0;
};
using Change = std::variant<InsertRun, UpdateRun, UpdateTrial, PutAssignment, StoreEvents, PutAgent,
                            Audit, RaiseEpoch>;

}  // namespace labrack::catalog
