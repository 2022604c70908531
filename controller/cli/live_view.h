// The live view of a run, as lines: a pure function of what is known, so that golden files in
// tests/unit/golden fix it. It never has more than report::kColumnsMax columns, nor more lines than
// the terminal, whether 8 or 500 hosts take part: the worst come first, the healthy are folded.
//
//   r-7f3a pool-vs-xfs  trial 3/6 (pool/pages)  measure 00:38/01:00 [######....] 63 %  ETA 21 min
//   fleet 8: 6 measure, 1 settle, 1 offline   skew 1.8 ms   overlap 99.6 %   604 k op/s
//   HOST    PHASE        OP/S   MiB/s   p50 us   p99 us  p99 60 s    NOTE
//   st-04   measure    71 204     278      392    4 812  __.--=##=-  3.1x fleet median
//           5 more within 4 % of the median
//   TRIALS  xfs ###   pool ##>   left 7 of 12   last: trial 2 pool/pages valid
//
// There is no running comparison of the stacks on purpose: looking early is how one is misled.
#pragma once

#include <string>
#include <vector>

#include "controller/cli/run_state.h"
#include "controller/cli/terminal.h"
#include "controller/report/style.h"

namespace labrack::cli {

struct ViewLine {
  std::string text;
  report::Ink ink = report::Ink::kPlain;
};

struct LiveOptions {
  TerminalSize size = {};
  bool utf8 = false;
  std::string hint = {};  // the last line: what Ctrl-C does
};

std::vector<ViewLine> LiveLines(const RunState& state, TimePoint now, const LiveOptions& options);

// Bytes that draw the lines in colour, one under the other, each clipped and ended by "\n".
std::string Paint(const std::vector<ViewLine>& lines, bool colour);

// "00:38", "1:02:03".
std::string FormatElapsed(Nanoseconds elapsed);
// "71 204"; "-" for nothing.
std::string FormatGrouped(double value);

}  // namespace labrack::cli
