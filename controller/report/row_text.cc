#include "controller/report/row_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "storage/base/exit_codes.h"
#include "storage/base/units.h"

namespace labrack::report {
namespace {

constexpr double kFactorFrom = 3;         // "3.2x" reads better than "+220 %"
constexpr double kDecimalBelow = 0.0995;  // "+1.4 %", but "+31 %"
// From here on the common window is the whole, and the other rates say nothing else.
constexpr double kOverlapPlain = 0.95;
constexpr std::uint32_t kTrialsSuggestedMax = 100;

std::string SignedPercent(double share, bool decimal) {
  const std::string text =
      decimal ? fmt::format("{:+.1f}", share * 100) : fmt::format("{:+.0f}", share * 100);
  // A change of nothing has no sign.
  if (text == "-0.0" || text == "+0.0") return "0.0";
  return text == "-0" || text == "+0" ? "0" : text;
}

bool Decimal(double share) { return std::abs(share) < kDecimalBelow; }

Nanoseconds ToNanoseconds(double ns) {
  constexpr double kLongest = 9e18;
  return Nanoseconds(static_cast<std::int64_t>(std::llround(std::min(ns, kLongest))));
}

bool Compared(const v1::ComparisonRow& row) { return row.verdict() != v1::COMPARISON_VERDICT_BASE; }

// Rows of one cell and metric stand under each other, one a stack.
using LineKey = std::pair<std::string, std::string>;
LineKey LineOf(const v1::ComparisonRow& row) { return {CellTitle(row), row.metric()}; }

// Cells and, within them, metrics in the order of their first rows; so that the stacks stand one
// under the other.
std::vector<const v1::ComparisonRow*> ByCellAndMetric(
    const std::vector<const v1::ComparisonRow*>& rows) {
  std::map<std::string, std::size_t> cell_places;
  std::map<LineKey, std::size_t> line_places;
  using Place = std::tuple<std::size_t, std::size_t, std::size_t>;  // cell, line, row
  std::vector<std::pair<Place, const v1::ComparisonRow*>> placed;
  for (const v1::ComparisonRow* row : rows) {
    const std::size_t cell =
        cell_places.try_emplace(CellTitle(*row), cell_places.size()).first->second;
    const std::size_t line =
        line_places.try_emplace(LineOf(*row), line_places.size()).first->second;
    placed.push_back({{cell, line, placed.size()}, row});
  }
  std::ranges::sort(placed);
  std::vector<const v1::ComparisonRow*> ordered;
  for (const auto& [place, row] : placed) ordered.push_back(row);
  return ordered;
}

const std::string& TargetRun(const v1::Report& report) {
  return report.has_test_run() ? report.test_run().run_id() : report.run().run_id();
}

}  // namespace

std::string FormatValue(double value, const std::string& unit) {
  if (!std::isfinite(value)) return "-";
  if (unit == "B/s") {
    return FormatBytes(Bytes(static_cast<std::uint64_t>(std::llround(std::max(0.0, value))))) +
           "/s";
  }
  if (unit == "op/s") return FormatCount(value) + "/s";
  if (unit == "ns") return FormatDuration(ToNanoseconds(value));
  if (unit == "s") return FormatDuration(ToNanoseconds(value * 1e9));
  return unit.empty() ? FormatCount(value) : FormatCount(value) + " " + unit;
}

std::string FormatChange(double ratio) {
  if (!std::isfinite(ratio)) return "-";
  if (ratio >= kFactorFrom) return FormatCount(ratio) + "x";
  return SignedPercent(ratio - 1, Decimal(ratio - 1)) + " %";
}

std::string FormatInterval(const v1::ComparisonRow& row) {
  if (!std::isfinite(row.ratio_low()) || !std::isfinite(row.ratio_high())) return "-";
  if (row.verdict() == v1::COMPARISON_VERDICT_BASE) return "-";
  if (row.ratio() >= kFactorFrom) {
    return fmt::format("[{}x, {}x]", FormatCount(row.ratio_low()), FormatCount(row.ratio_high()));
  }
  const bool decimal = Decimal(row.ratio_low() - 1) && Decimal(row.ratio_high() - 1);
  return fmt::format("[{}, {}]", SignedPercent(row.ratio_low() - 1, decimal),
                     SignedPercent(row.ratio_high() - 1, decimal));
}

std::string VerdictWord(v1::ComparisonVerdict verdict) {
  switch (verdict) {
    case v1::COMPARISON_VERDICT_BETTER:
      return "BETTER";
    case v1::COMPARISON_VERDICT_WORSE:
      return "WORSE";
    case v1::COMPARISON_VERDICT_SAME:
      return "SAME";
    case v1::COMPARISON_VERDICT_INCONCLUSIVE:
      return "UNSURE";
    case v1::COMPARISON_VERDICT_BASE:
      return "base";
    case v1::COMPARISON_VERDICT_NOT_JUDGED:
      return "NOT JUDGED";
    default:
      return "-";
  }
}

std::string CellTitle(const v1::ComparisonRow& row) {
  return row.parameters().empty() ? row.workload() : row.workload() + " " + row.parameters();
}

std::vector<const v1::ComparisonRow*> ShownRows(const v1::Report& report) {
  std::set<LineKey> compared;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (row.host().empty() && Compared(row)) compared.insert(LineOf(row));
  }
  std::vector<const v1::ComparisonRow*> shown;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (!row.host().empty()) continue;
    if (!Compared(row) && compared.contains(LineOf(row))) continue;
    shown.push_back(&row);
  }
  return ByCellAndMetric(shown);
}

std::string NoRowsText(const v1::Report& report) {
  const bool none_same = report.has_test_run() && report.trials_valid() > 0;
  return none_same ? "no cell is the same in both runs" : "no trial is valid";
}

Counts CountVerdicts(const v1::Report& report) {
  Counts counts;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (!row.host().empty()) continue;
    counts.better += row.verdict() == v1::COMPARISON_VERDICT_BETTER ? 1 : 0;
    counts.worse += row.verdict() == v1::COMPARISON_VERDICT_WORSE ? 1 : 0;
    counts.same += row.verdict() == v1::COMPARISON_VERDICT_SAME ? 1 : 0;
    counts.unsure += row.verdict() == v1::COMPARISON_VERDICT_INCONCLUSIVE ? 1 : 0;
    counts.not_judged += row.verdict() == v1::COMPARISON_VERDICT_NOT_JUDGED ? 1 : 0;
  }
  return counts;
}

std::string GeomeanText(const v1::Report& report) {
  struct Sum {
    double logs = 0;
    int cells = 0;
    std::string dropped;
  };
  std::vector<std::pair<std::string, Sum>> sums;  // by stack, in the order of the rows
  for (const v1::ComparisonRow& row : report.rows()) {
    if (!row.host().empty() || !row.primary() || !Compared(row)) continue;
    auto found = std::ranges::find(sums, row.stack(), &std::pair<std::string, Sum>::first);
    if (found == sums.end()) found = sums.insert(sums.end(), {row.stack(), Sum()});
    Sum& sum = found->second;
    if (std::isfinite(row.ratio()) && row.ratio() > 0) {
      sum.logs += row.lower_is_better() ? -std::log(row.ratio()) : std::log(row.ratio());
      ++sum.cells;
    } else {
      sum.dropped += (sum.dropped.empty() ? "" : ", ") + CellTitle(row);
    }
  }
  std::string text;
  for (const auto& [stack, sum] : sums) {
    if (sum.cells < 2) continue;
    const double mean = std::exp(sum.logs / sum.cells);
    const std::string change = FormatChange(mean);
    text +=
        fmt::format("{}{} {} over {} cells{}", text.empty() ? "geomean of speed: " : "; ", stack,
                    change, sum.cells, sum.dropped.empty() ? "" : " (without " + sum.dropped + ")");
  }
  return text;
}

std::string DetectableText(const v1::Report& report) {
  double least = INFINITY;
  double most = 0;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (!row.host().empty() || !Compared(row) || !std::isfinite(row.detectable())) continue;
    least = std::min(least, row.detectable());
    most = std::max(most, row.detectable());
  }
  if (!std::isfinite(least)) return "";
  const std::string low = fmt::format("{:.1f} %", least * 100);
  const std::string high = fmt::format("{:.1f} %", most * 100);
  return low == high ? low : low + " to " + high;
}

std::string DoneRatesText(const v1::Report& report) {
  if (report.overlap_min() < 0 || report.overlap_min() >= kOverlapPlain) return "";
  std::string text;
  for (const v1::ComparisonRow* row : ShownRows(report)) {
    if (!row->primary() || !std::isfinite(row->first_done_median())) continue;
    text += fmt::format("{}{} {} {}, {}", text.empty() ? "" : "; ", CellTitle(*row), row->stack(),
                        FormatValue(row->first_done_median(), row->unit()),
                        FormatValue(row->last_done_median(), row->unit()));
  }
  return text.empty() ? "" : "rates until the first and until the last host was done: " + text;
}

std::size_t Footnotes::Number(const std::string& text) {
  const auto [place, is_new] = numbers_.try_emplace(text, texts_.size() + 1);
  if (is_new) texts_.push_back(text);
  return place->second;
}

std::string HolmText(const v1::Report& report) {
  if (report.tests_count() == 0) return {};
  return fmt::format("; Holm over {} {}", report.tests_count(),
                     report.tests_count() == 1 ? "test" : "tests");
}

std::string ClosingVerdict(const v1::Report& report, bool strict) {
  const bool inconclusive = strict && report.exit_code_strict() == ToInt(ExitCode::kInconclusive);
  return inconclusive ? "INCONCLUSIVE" : report.verdict();
}

std::string ClosingText(const v1::Report& report, bool strict) {
  const Counts counts = CountVerdicts(report);
  const int code = strict ? report.exit_code_strict() : report.exit_code();
  const std::string not_judged =
      counts.not_judged == 0 ? "" : fmt::format("  {} not judged", counts.not_judged);
  return fmt::format("{} worse  {} better  {} same  {} unsure{}   exit {} ({})", counts.worse,
                     counts.better, counts.same, counts.unsure, not_judged, code,
                     ExitCodeMeaning(static_cast<ExitCode>(code)));
}

std::vector<std::string> NextCommands(const v1::Report& report, const NextWords& words) {
  const std::string& run = TargetRun(report);
  std::vector<std::string> commands;
  if (run.empty()) return commands;
  std::uint32_t needed = 0;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (row.host().empty() && row.verdict() == v1::COMPARISON_VERDICT_INCONCLUSIVE) {
      needed = std::max(needed, row.trials_needed());
    }
  }
  // A run that was broken off wants its own trials first.
  const bool whole = report.run().state() == v1::RUN_STATE_DONE;
  if (whole && needed > 0 && needed <= kTrialsSuggestedMax) {
    commands.push_back(
        fmt::format("labrack run {} --trials {}{}", words.playbook, needed, words.lab));
  }
  commands.push_back(fmt::format("labrack status {}{}", run, words.lab));
  commands.push_back(fmt::format("labrack show {} --json -{}", run, words.lab));
  commands.push_back(fmt::format("labrack export {} --as csv{}", run, words.lab));
  return commands;
}

}  // namespace labrack::report
