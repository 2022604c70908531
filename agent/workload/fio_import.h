// Reads what fio says (--output-format=json+) into our own counts, exactly: operations and bytes as
// fio counted them, latencies from its bins, so that histograms of hosts merge. fio's own rates and
// percentiles are not used.
//
//   "note: both iodepth >= 1 and ..."       text before, between or after documents is skipped
//   { "fio version": ..., "jobs": [...] }   any number of documents
//
// fio's bins are 64 to each power of two; ours 128. A bin goes to ours by its middle value, within
// 1/128 of what fio measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "labrack/v1/result.pb.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::workload {

struct FioReport {
  std::string version;                          // "fio-3.33"
  std::vector<v1::OperationResult> operations;  // read, write, trim, sync: all jobs together
  std::vector<std::string> counted;             // those of them that make the primary metric
  // Of each job by its name ("rand.read.iops", "rand.usr_cpu"): jobs stay visible in the one step.
  std::vector<v1::Figure> figures;
  // For how long jobs ran: the longest of each group, summed over groups, which run one after the
  // other (stonewall).
  Nanoseconds window{0};
};

// Errors: kCorrupt for no or an incomplete document, for counts that contradict each other; kIo
// when a job failed; kTimedOut when no I/O was done at all.
Result<FioReport> ImportFioJson(std::string_view text);

}  // namespace labrack::workload
