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

#include <map>
#include <string>

#include "controller/compare/series.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// What the trials read back, over all hosts or one.
struct ReadBack {
  std::uint32_t matched = 0;
  std::uint32_t not_asked = 0;
  std::uint32_t not_possible = 0;
  std::uint32_t unknown = 0;
  std::string mismatch;  // the last one

  // Of `host` only (a host or an agent), if it is not empty.
  void Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial, const std::string& host);
};

// The gates of one run.
class Gates {
 public:
  // Has the series made that they will ask for, so before the first trial. `run` outlives this.
  explicit Gates(RunView& run);

  void Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial,
           const TrialAssessment& assessment);
  void AddTo(v1::Report& report) const;  // after the last trial

 private:
  const RunView& run_;
  std::map<std::string, ReadBack> read_back_;  // by the host that gates are about
};

// The claim as one would say it: "ufs is faster than ext4 on pages by 1.5x".
std::string GateText(const v1::Gate& gate, const v1::Playbook& playbook);

}  // namespace labrack::compare
