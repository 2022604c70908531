// What a playbook says of volumes and modelled disks, held against itself (LR344 to LR348).
#pragma once

#include "controller/plan/loaded_playbook.h"
#include "controller/plan/reporter.h"

namespace labrack::plan {

// `host` or `volume`, and what may stand beside each. False when it is not clear what the stack is:
// no other check makes sense then.
bool CheckStackChoice(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter);

// Of a stack with `volume`: its disks, its interlace, and a workload that needs no file system.
// False after a problem.
bool CheckVolume(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter);

}  // namespace labrack::plan
