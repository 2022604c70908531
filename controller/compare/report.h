// The comparison of a run as data: rows, gates, what was left out, the closing verdict and exit
// code. Pure: the same records give the same report, byte for byte (the bootstrap is seeded from
// the plan). Everything printed is made from it by controller/report.
#pragma once

#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// `test` == nullptr: the stacks of one run against its base stack, and the gates of its playbook.
// Otherwise: each cell of `test` against the same cell of `base` (same stack, workload and
// parameters), and no gates, which belong to one run's own report. There a WORSE row over all hosts
// is a failure; within one run BETTER and WORSE are findings.
//
// A run that has not ended gives a report of what there is, with exit code 8 (the run goes on).
v1::Report MakeReport(const v1::RunRecord& base, const v1::RunRecord* test);

}  // namespace labrack::compare
