// The closing verdict and exit code of a report, from what stands in it already.
#pragma once

#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// Reads run, test_run, rows, gates, skipped and the trial counts of `report`; fills in verdict,
// exit_code and exit_code_strict. In order of weight: not ended (8), data mismatch (1), cancelled
// (7), a failed gate or, between two runs, a WORSE row over all hosts (1), a trial lost or failed
// or a gate without data (5), nothing ran or, between two runs, was the same cell in both (9),
// inconclusive (0, strict 4), passed (0). Inconclusive are also primary rows that could not be
// judged, and cells of two runs that are different things.
void CloseReport(v1::Report& report);

}  // namespace labrack::compare
