// Which cells of two runs may be compared. Names are not enough: `--set size=10GiB`, another fio
// job or a changed playbook give other cells of the same name. What is done (workload) and on what
// (disks) must be equal, or the cell is left out with the difference named. The stack may differ,
// since that may be what is tested, but it is said.
#pragma once

#include <string>

#include "controller/compare/series.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// "workload.copy.file: 32MiB, 10GiB" (base, test) for the first field that differs; empty when
// workload and disks are equal.
std::string DifferenceOfWork(const v1::PlannedCell& base, const v1::PlannedCell& test);
// The same for the stack, as built: "host.zfs.options: [], [recordsize=8K]".
std::string DifferenceOfStack(const v1::PlannedCell& base, const v1::PlannedCell& test);

// Says what stands between two runs whatever their figures: LW209 they were not interleaved, LW210
// a stack differs, LW211 nothing was the same in both; lines of environment for stacks, margins and
// the playbooks' digests.
void AddRunWarnings(const RunView& base, const RunView& test, v1::Report& report);

}  // namespace labrack::compare
