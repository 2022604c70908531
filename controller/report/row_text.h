// What rows of a report look like in words: shared by the terminal's table, Markdown and JUnit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "labrack/v1/control.pb.h"

namespace labrack::report {

// "1.21 GiB/s", "512 k/s", "1.55 ms", "33.0 s", "12.3 MB/s" (a figure's own unit); "-" for NaN.
std::string FormatValue(double value, const std::string& unit);
// "+31 %", "-0.4 %", "3.2x" from threefold on; "-" for NaN. Of the figure itself: a latency that
// falls has a minus.
std::string FormatChange(double ratio);
// "[+27, +35]" in per cent, or "[3.1x, 3.4x]"; "-" for NaN.
std::string FormatInterval(const v1::ComparisonRow& row);
// BETTER, WORSE, SAME, UNSURE, NOT JUDGED, "base".
std::string VerdictWord(v1::ComparisonVerdict verdict);
// "pages block=4KiB".
std::string CellTitle(const v1::ComparisonRow& row);

// Rows over all hosts that a table shows: the base's own rows only where nothing is compared with
// it, since each compared row has the base's median.
std::vector<const v1::ComparisonRow*> ShownRows(const v1::Report& report);

// Why there is no row: "no trial is valid", or that no cell was the same in both runs.
std::string NoRowsText(const v1::Report& report);

struct Counts {
  int better = 0;
  int worse = 0;
  int same = 0;
  int unsure = 0;
  int not_judged = 0;
};
Counts CountVerdicts(const v1::Report& report);

// "geomean of 4 cells: xfs +9.4 % better; ..." for primary metrics, one sentence a stack; a cell
// that has no ratio for a stack is named, never averaged away. Empty below two cells.
std::string GeomeanText(const v1::Report& report);
// The effects that the trials could have seen: "1.2 % to 5.3 %". Empty when nothing was compared.
std::string DetectableText(const v1::Report& report);
// Beside rates over a common window that was short: "rates until the first and until the last host
// was done: copy xfs 1.2 GiB/s, 0.9 GiB/s". Empty when the hosts worked together.
std::string DoneRatesText(const v1::Report& report);

// Numbers for texts that several rows share.
class Footnotes {
 public:
  // 1, 2, ...: the same text has the same number.
  std::size_t Number(const std::string& text);
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::map<std::string, std::size_t> numbers_;
};

// "2 worse  1 better  3 same  1 unsure   exit 1".
std::string ClosingText(const v1::Report& report, bool strict);
// "; Holm over 3 tests", or nothing where nothing was tested.
std::string HolmText(const v1::Report& report);
// The verdict as --strict sees it.
std::string ClosingVerdict(const v1::Report& report, bool strict);
// Commands that lead on from here. `playbook`: its file, where it is known; `lab`: the words by
// which the verbs find this lab (" --controller ADDR"), or nothing.
struct NextWords {
  std::string playbook = "PLAYBOOK";  // with the options that made the run what it was
  std::string lab = {};
};
std::vector<std::string> NextCommands(const v1::Report& report, const NextWords& words);

}  // namespace labrack::report
