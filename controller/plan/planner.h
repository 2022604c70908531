// The planner: a pure function of a playbook, what the hosts said about themselves, and a seed. It
// touches nothing, asks no clock and draws no number but from the seed, so that `labrack plan`
// shows exactly what `labrack run` will do.
//
//   repeat 0   pages: A B C   copy:  A B C    as written
//   repeat 1   copy:  C B A   pages: C B A    the whole order backwards
//   repeat 2   copy:  B C A   pages: B C A    stacks turned by one, workloads by a seeded number
//   repeat 3   pages: A C B   copy:  A C B    that backwards, and so on in pairs
//
// Over each pair of repeats every cell has the same mean position, so that drift hits all alike.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "controller/plan/loaded_playbook.h"
#include "labrack/v1/host.pb.h"
#include "labrack/v1/plan.pb.h"
#include "storage/base/config/source.h"
#include "storage/base/random.h"

namespace labrack::plan {

struct FleetHost {
  std::string agent_id;
  bool online = false;
  v1::Inventory inventory;
  std::string dirty = {};  // what an earlier trial has left there: it takes no other until then
};
// In any order; plans are in the order of agent ids.
using FleetView = std::vector<FleetHost>;

// Why there is no plan, as problems at their places in the playbook.
struct PlanRefusal {
  config::Problems problems;
  bool safety = false;  // at least one is a refusal by disk safety
};

// Seed{0} stands for a seed made from the playbook's text: the same plan each time.
std::expected<v1::Plan, PlanRefusal> MakePlan(const LoadedPlaybook& playbook,
                                              const FleetView& fleet, Seed seed);

// One assignment for each host of the trial's cell, without epochs. `trial` must be one of the
// plan's.
std::vector<v1::AssignmentSpec> MakeAssignments(const v1::Plan& plan, const v1::PlannedTrial& trial,
                                                const std::string& run_id);
// "<run>/<trial index>/<agent id>".
std::string AssignmentId(const std::string& run_id, std::uint32_t trial_index,
                         const std::string& agent_id);

}  // namespace labrack::plan
