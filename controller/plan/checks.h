// Fields against each other (LR3xx), once each field is right in itself. Checks of a cell see its
// values with the matrix put in; the same mistake of many cells is reported once (Reporter).
#pragma once

#include "controller/plan/loaded_playbook.h"
#include "controller/plan/reporter.h"

namespace labrack::plan {

void CheckWorkload(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter);
// The stack on its disks, and whether the workload's data fits on them.
void CheckStack(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter);
void CheckHosts(const LoadedPlaybook& playbook, Reporter& reporter);

}  // namespace labrack::plan
