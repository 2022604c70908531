// Gates: claims of a playbook, judged on the trials of its run.
//
//   faster A than B on W by F     speed of A / speed of B surely >= F     (left out: 1 + margin)
//   not_slower A than B within M  speed of A / speed of B surely >= 1 - M (left out: the margin)
//   same A as B within M          surely inside 1 -+ M
//   latency A on W pP below T     percentile P of all counted operations surely below T
//   verified all                  every trial's data was read back right
//
// "Surely" is the 95 % interval and the check against chance of verdict.h, the rule that rows are
// judged by: all of it on the right side PASSED, all of it on the wrong side FAILED, else
// INCONCLUSIVE; so is a gate whose trials lack values, or of which there are too few (4, for
// latencies 6). Speed is the primary metric, turned over where lower is better. A gate over a
// workload of several steps or parameters holds when it holds for each. INVALID: there is nothing
// to judge it on.
#pragma once

#include "controller/compare/series.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

void AddGates(const RunView& run, v1::Report& report);

// The claim as one would say it: "ufs is faster than ext4 on pages by 1.5x".
std::string GateText(const v1::Gate& gate, const v1::Playbook& playbook);

}  // namespace labrack::compare
