// The rows of a report: every metric of every cell against its base.
#pragma once

#include <string>
#include <vector>

#include "controller/compare/series.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// Hosts up to which each host gets rows of its own. With more, rows over all hosts stay, and the
// exports still have every host.
constexpr std::size_t kHostRowHostsMax = 64;

// The stack that the others are compared with: the playbook's `base`, or its first that has a cell
// (others may be skipped or excluded).
std::string BaseStack(const v1::RunRecord& run);

// Has the series made that AddRows will ask for; before the first trial.
void WantRows(RunView& run);
void WantRows(RunView& base, RunView& test);

// Within one run: a row of the base for each metric, then one for each other stack. Appends rows
// over all hosts first, then those of single hosts (only with several), and sets tests_count.
void AddRows(const RunView& run, v1::Report& report);
// Cells of `test` against the same cells of `base`: those of one name, workload and disks.
void AddRows(const RunView& base, const RunView& test, v1::Report& report);

}  // namespace labrack::compare
