// What the hosts allow, held against what the playbook asks for. Every refusal is a problem (LR4xx)
// at its place in the playbook, with one note a host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/plan/loaded_playbook.h"
#include "controller/plan/planner.h"
#include "labrack/v1/host.pb.h"
#include "storage/base/bytes.h"

namespace labrack::plan {

// The hosts that take part, in the order of their agent ids; empty and a problem when there are too
// few.
std::vector<const FleetHost*> ChooseHosts(const LoadedPlaybook& playbook, const FleetView& fleet,
                                          config::Problems& problems);

// How one cell is run on one host.
struct CellOnHost {
  enum class How { kBuild, kStandIn, kSkip, kRefuse };
  How how = How::kBuild;
  std::string reason;  // of everything but kBuild
};
CellOnHost Decide(const ExpandedCell& cell, const v1::Inventory& host);

// The lent space that disks of this kind are made from; nullptr when the host lends none.
const v1::LentDisk* LentSpace(const v1::Inventory& host, v1::DiskKind kind);

// Collects refusals: `cells[i]` on `hosts[j]` is decisions[i][j].
class FleetCheck {
 public:
  FleetCheck(const LoadedPlaybook& playbook, std::vector<const FleetHost*> hosts,
             std::vector<std::vector<CellOnHost>> decisions)
      : playbook_(playbook), hosts_(std::move(hosts)), decisions_(std::move(decisions)) {}

  void Run(PlanRefusal& refusal);

 private:
  void CheckClean(PlanRefusal& refusal);
  void CheckStacks(PlanRefusal& refusal);
  void CheckCommands(PlanRefusal& refusal);
  void CheckSafety(PlanRefusal& refusal);
  void CheckSpace(PlanRefusal& refusal);
  void CheckGates(PlanRefusal& refusal);
  // Most bytes that one trial takes from the lent space of this kind on host `index`.
  Bytes SpaceNeeded(std::size_t index, v1::DiskKind kind) const;

  const LoadedPlaybook& playbook_;
  std::vector<const FleetHost*> hosts_;
  std::vector<std::vector<CellOnHost>> decisions_;
};

}  // namespace labrack::plan
