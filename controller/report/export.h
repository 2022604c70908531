// Raw results of a run for other tools. Figures of trials that stay out of the statistics are there
// too, marked by the column or label `valid`.
#pragma once

#include <string>

#include "labrack/v1/control.pb.h"

namespace labrack::report {

// One row a trial, host, step and operation (RFC 4180, "\n" line ends, header first). A cell
// without a value is empty.
std::string FormatCsv(const v1::RunRecord& run);

// OpenMetrics text for `promtool tsdb create-blocks-from openmetrics`; ends with "# EOF". Time
// stamps are those of the controller's wall clock at the end of each step.
std::string FormatOpenMetrics(const v1::RunRecord& run);

// JSON with fio's names (conventions 3.3): client_stats[], a row a trial, host and step, so that
// fio's own tools can read it. Values that fio has and we have not are absent.
std::string FormatFioJson(const v1::RunRecord& run);

}  // namespace labrack::report
