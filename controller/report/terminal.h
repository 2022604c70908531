// The final table: at most 100 columns, one row a stack and metric, a bar that shows the interval
// (right of the middle is better), numbered footnotes that rows share, what was left out, the gates
// and the closing verdict with its exit code.
#pragma once

#include <string>

#include "controller/report/row_text.h"
#include "controller/report/style.h"
#include "labrack/v1/control.pb.h"

namespace labrack::report {

// `strict`: the closing line shows the exit code of --strict.
std::string FormatReport(const v1::Report& report, const Style& style, bool strict = false,
                         const NextWords& next = {});

}  // namespace labrack::report
