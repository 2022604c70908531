// The comparison of a run as data: rows, gates, what was left out, the closing verdict and exit
// code. Pure: the same records give the same report, byte for byte (the bootstrap is seeded from
// the plan). Everything printed is made from it by controller/report.
#pragma once

#include <memory>

#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// `test` == nullptr: the stacks of one run against its base stack, and the gates of its playbook.
// Otherwise: each cell of `test` against the same cell of `base` (same stack, workload and
// parameters), and no gates, which belong to one run's own report. There a WORSE row over all hosts
// is a failure; within one run BETTER and WORSE are findings.
//
// A run that has not ended gives a report of what there is, with exit code 8 (the run goes on).
v1::Report MakeReport(const v1::RunRecord& base, const v1::RunRecord* test);

// For a report of the same trials when the runs' states are others (a run has ended meanwhile,
// say): all that it takes from the summaries is set anew. `test`: of the second run, if any.
void SetRuns(const v1::RunSummary& base, const v1::RunSummary* test, v1::Report& report);

// MakeReport trial by trial: each is reduced to what the report needs of it (some numbers a metric
// and host), so that memory does not grow with the size of results.
class ReportMaker {
 public:
  // Of the records only summary and plan are used. They outlive this.
  ReportMaker(const v1::RunRecord& base, const v1::RunRecord* test);
  ~ReportMaker();
  ReportMaker(const ReportMaker&) = delete;
  ReportMaker& operator=(const ReportMaker&) = delete;

  // The trials of each run in their order.
  void AddBase(const v1::TrialRecord& trial);
  void AddTest(const v1::TrialRecord& trial);
  v1::Report Make() const;  // after the last trial

 private:
  struct Digest;
  std::unique_ptr<Digest> base_;
  std::unique_ptr<Digest> test_;  // nullptr: one run
};

}  // namespace labrack::compare
