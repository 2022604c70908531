#include "controller/report/row_text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "storage/base/exit_codes.h"
#include "storage/base/units.h"

namespace labrack::report {
namespace {

constexpr double kFactorFrom = 3;         // "3.2x" reads better than "+220 %"
constexpr double kDecimalBelow = 0.0995;  // "+1.4 %", but "+31 %"
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

bool SameLine(const v1::ComparisonRow& a, const v1::ComparisonRow& b) {
  return a.workload() == b.workload() && a.parameters() == b.parameters() &&
         a.metric() == b.metric() && a.host() == b.host();
}

// Cells and, within them, metrics in the order of their first rows; so that the stacks stand one
// under the other.
std::vector<const v1::ComparisonRow*> ByCellAndMetric(
    const std::vector<const v1::ComparisonRow*>& rows) {
  std::vector<const v1::ComparisonRow*> ordered;
  std::vector<bool> taken(rows.size());
  for (std::size_t cell = 0; cell < rows.size(); ++cell) {
    for (std::size_t metric = cell; metric < rows.size(); ++metric) {
      if (CellTitle(*rows[metric]) != CellTitle(*rows[cell])) continue;
      for (std::size_t i = metric; i < rows.size(); ++i) {
        if (taken[i] || !SameLine(*rows[i], *rows[metric])) continue;
        taken[i] = true;
        ordered.push_back(rows[i]);
      }
    }
  }
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
    default:
      return "-";
  }
}

std::string CellTitle(const v1::ComparisonRow& row) {
  return row.parameters().empty() ? row.workload() : row.workload() + " " + row.parameters();
}

std::vector<const v1::ComparisonRow*> ShownRows(const v1::Report& report) {
  std::vector<const v1::ComparisonRow*> shown;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (!row.host().empty()) continue;
    const auto compared = [&](const v1::ComparisonRow& other) {
      return Compared(other) && SameLine(row, other);
    };
    if (!Compared(row) && std::ranges::any_of(report.rows(), compared)) continue;
    shown.push_back(&row);
  }
  return ByCellAndMetric(shown);
}

Counts CountVerdicts(const v1::Report& report) {
  Counts counts;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (!row.host().empty()) continue;
    counts.better += row.verdict() == v1::COMPARISON_VERDICT_BETTER ? 1 : 0;
    counts.worse += row.verdict() == v1::COMPARISON_VERDICT_WORSE ? 1 : 0;
    counts.same += row.verdict() == v1::COMPARISON_VERDICT_SAME ? 1 : 0;
    counts.unsure += row.verdict() == v1::COMPARISON_VERDICT_INCONCLUSIVE ? 1 : 0;
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

std::size_t Footnotes::Number(const std::string& text) {
  const auto found = std::ranges::find(texts_, text);
  if (found != texts_.end()) return static_cast<std::size_t>(found - texts_.begin()) + 1;
  texts_.push_back(text);
  return texts_.size();
}

std::string ClosingVerdict(const v1::Report& report, bool strict) {
  const bool inconclusive = strict && report.exit_code_strict() == ToInt(ExitCode::kInconclusive);
  return inconclusive ? "INCONCLUSIVE" : report.verdict();
}

std::string ClosingText(const v1::Report& report, bool strict) {
  const Counts counts = CountVerdicts(report);
  const int code = strict ? report.exit_code_strict() : report.exit_code();
  return fmt::format("{} worse  {} better  {} same  {} unsure   exit {} ({})", counts.worse,
                     counts.better, counts.same, counts.unsure, code,
                     ExitCodeMeaning(static_cast<ExitCode>(code)));
}

std::vector<std::string> NextCommands(const v1::Report& report) {
  const std::string& run = TargetRun(report);
  std::vector<std::string> commands;
  if (run.empty()) return commands;
  std::uint32_t needed = 0;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (row.host().empty() && row.verdict() == v1::COMPARISON_VERDICT_INCONCLUSIVE) {
      needed = std::max(needed, row.trials_needed());
    }
  }
  if (needed > 0 && needed <= kTrialsSuggestedMax) {
    commands.push_back(fmt::format("labrack run PLAYBOOK --trials {}", needed));
  }
  commands.push_back("labrack status " + run);
  commands.push_back("labrack show " + run + " --json -");
  commands.push_back("labrack export " + run + " --as csv");
  return commands;
}

}  // namespace labrack::report
