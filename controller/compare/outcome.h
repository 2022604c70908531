// The closing verdict and exit code of a report, from what stands in it already.
#pragma once

#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// Reads run, test_run, rows, gates, skipped and the trial counts of `report`; fills in verdict,
// exit_code and exit_code_strict. In order of weight: cancelled (7), not ended (8), data mismatch
// or a failed gate or, between two runs, a WORSE row over all hosts (1), nothing ran (9), a trial
// lost or failed or a gate without data (5), inconclusive (0, strict 4), passed (0).
void CloseReport(v1::Report& report);

}  // namespace labrack::compare
