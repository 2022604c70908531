#include "controller/report/terminal.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "controller/report/row_text.h"
#include "storage/base/units.h"

namespace labrack::report {
namespace {

constexpr int kSkippedShownMax = 8;
constexpr int kWarningsShownMax = 8;
constexpr int kHostRowsShownMax = 12;
constexpr std::size_t kBarMin = 11;
constexpr std::size_t kBarMax = 25;

struct Widths {
  std::size_t metric = 6;
  std::size_t stack = 5;
  std::size_t base = 4;
  std::size_t value = 6;
  std::size_t change = 6;
  std::size_t interval = 7;
  std::size_t verdict = 9;
  std::size_t bar = kBarMax;
};

struct Line {
  const v1::ComparisonRow* row;
  std::string metric;
  std::string verdict;  // with its footnote
};

std::string Left(const std::string& text, std::size_t columns) {
  const std::string clipped = Clipped(text, columns);
  return clipped + std::string(columns - ColumnsOf(clipped), ' ');
}

std::string Right(const std::string& text, std::size_t columns) {
  const std::string clipped = Clipped(text, columns);
  return std::string(columns - ColumnsOf(clipped), ' ') + clipped;
}

Ink InkOf(v1::ComparisonVerdict verdict) {
  switch (verdict) {
    case v1::COMPARISON_VERDICT_BETTER:
      return Ink::kGood;
    case v1::COMPARISON_VERDICT_WORSE:
      return Ink::kBad;
    case v1::COMPARISON_VERDICT_INCONCLUSIVE:
    case v1::COMPARISON_VERDICT_NOT_JUDGED:
      return Ink::kUnsure;
    default:
      return Ink::kPlain;
  }
}

Ink InkOf(const std::string& outcome) {
  if (outcome == "PASSED") return Ink::kGood;
  return outcome == "INCONCLUSIVE" ? Ink::kUnsure : Ink::kBad;
}

bool IsBase(const v1::ComparisonRow& row) { return row.verdict() == v1::COMPARISON_VERDICT_BASE; }

std::string BaseText(const v1::ComparisonRow& row) {
  return IsBase(row) ? "" : FormatValue(row.base_median(), row.unit());
}

// Logarithm of the ratio, turned so that more is better.
double Better(double ratio, const v1::ComparisonRow& row) {
  return row.lower_is_better() ? -std::log(ratio) : std::log(ratio);
}

// Both ends of all bars: the largest change of the table, between 5 % and twofold. What lies beyond
// ends in an arrow.
double BarScale(const std::vector<Line>& lines) {
  double scale = std::log(1.05);
  for (const Line& line : lines) {
    if (!std::isfinite(line.row->ratio()) || IsBase(*line.row)) continue;
    scale = std::max(scale, 1.2 * std::abs(std::log(line.row->ratio())));
  }
  return std::min(scale, std::log(2.0));
}

//   ..........|......-#-.    '#' the ratio, '-' the interval, '|' no change
std::string Bar(const v1::ComparisonRow& row, std::size_t columns, double scale,
                const Style& style) {
  if (IsBase(row) || !std::isfinite(row.ratio())) return std::string(columns, ' ');
  const std::size_t middle = columns / 2;
  const auto half = static_cast<double>(middle);
  const auto place = [&](double ratio) {
    return static_cast<std::ptrdiff_t>(std::lround(half + half * Better(ratio, row) / scale));
  };
  const auto last = static_cast<std::ptrdiff_t>(columns) - 1;
  std::string cells(columns, '.');
  cells[middle] = '|';
  if (std::isfinite(row.ratio_low()) && std::isfinite(row.ratio_high())) {
    const auto [from, to] = std::minmax(place(row.ratio_low()), place(row.ratio_high()));
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(from, 0); i <= std::min(to, last); ++i) {
      cells[static_cast<std::size_t>(i)] = '-';
    }
  }
  const std::ptrdiff_t at = place(row.ratio());
  const char mark = at < 0 ? '<' : at > last ? '>' : '#';
  cells[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))] = mark;
  if (!style.unicode) return cells;
  std::string text;
  for (char c : cells) {
    text += c == '.'   ? "\xc2\xb7"      // middle dot
            : c == '-' ? "\xe2\x94\x80"  // light horizontal
            : c == '|' ? "\xe2\x94\x82"  // light vertical
            : c == '#' ? "\xe2\x96\xa0"  // black square
                       : std::string(1, c);
  }
  return text;
}

std::string BarTitle(std::size_t columns) {
  std::string title(columns, ' ');
  title[columns / 2] = '|';
  title.replace(0, 5, "worse");
  if (columns >= 13) title.replace(columns - 6, 6, "better");
  return title;
}

Widths WidthsOf(const std::vector<Line>& lines) {
  Widths widths;
  for (const Line& line : lines) {
    const v1::ComparisonRow& row = *line.row;
    widths.metric = std::max(widths.metric, ColumnsOf(line.metric));
    widths.stack = std::max(widths.stack, ColumnsOf(row.stack()));
    widths.base = std::max(widths.base, ColumnsOf(BaseText(row)));
    widths.value = std::max(widths.value, ColumnsOf(FormatValue(row.median(), row.unit())));
    widths.change = std::max(widths.change, ColumnsOf(FormatChange(row.ratio())));
    widths.interval = std::max(widths.interval, ColumnsOf(FormatInterval(row)));
    widths.verdict = std::max(widths.verdict, ColumnsOf(line.verdict));
  }
  // Two blanks before the metric, one between columns, two around the bar.
  const auto used = [&] {
    return 2 + widths.metric + 1 + widths.stack + 1 + widths.base + 1 + widths.value + 1 +
           widths.change + 2 + widths.bar + 2 + widths.interval + 1 + widths.verdict;
  };
  while (used() > kColumnsMax && widths.bar > kBarMin) widths.bar -= 2;
  while (used() > kColumnsMax && std::max(widths.metric, widths.stack) > 8) {
    --(widths.metric >= widths.stack ? widths.metric : widths.stack);
  }
  while (used() > kColumnsMax && std::max(widths.base, widths.value) > 8) {
    --(widths.base >= widths.value ? widths.base : widths.value);
  }
  return widths;
}

std::string TrimmedLine(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string TitleLine(const Widths& widths, const v1::Report& report) {
  const bool two_runs = report.has_test_run();
  return TrimmedLine("  " + Left("METRIC", widths.metric) + " " + Left("STACK", widths.stack) +
                     " " + Right("BASE", widths.base) + " " +
                     Right(two_runs ? "TEST" : "MEDIAN", widths.value) + " " +
                     Right("CHANGE", widths.change) + "  " + BarTitle(widths.bar) + "  " +
                     Left("95 % CI", widths.interval) + " VERDICT");
}

std::string RowLine(const Line& line, const Widths& widths, double scale, const Style& style) {
  const v1::ComparisonRow& row = *line.row;
  std::string text = "  " + Left(Printable(line.metric), widths.metric) + " " +
                     Left(Printable(row.stack()), widths.stack) + " " +
                     Right(BaseText(row), widths.base) + " " +
                     Right(Printable(FormatValue(row.median(), row.unit())), widths.value) + " " +
                     Right(IsBase(row) ? "" : FormatChange(row.ratio()), widths.change) + "  " +
                     Bar(row, widths.bar, scale, style) + "  " +
                     Left(IsBase(row) ? "" : FormatInterval(row), widths.interval) + " ";
  return TrimmedLine(text + Inked(line.verdict, InkOf(row.verdict()), style));
}

std::string WithFootnote(const v1::ComparisonRow& row, Footnotes& footnotes) {
  std::string word = VerdictWord(row.verdict());
  if (row.reason().empty()) return word;
  return word + fmt::format(" {}", footnotes.Number(row.reason()));
}

std::string Rows(const std::vector<Line>& lines, const v1::Report& report, const Style& style) {
  if (lines.empty()) return "";
  const Widths widths = WidthsOf(lines);
  const double scale = BarScale(lines);
  std::string text = TitleLine(widths, report);
  std::string title;
  for (const Line& line : lines) {
    if (CellTitle(*line.row) != title) {
      title = CellTitle(*line.row);
      text += Inked(Clipped(Printable(title), kColumnsMax), Ink::kBold, style) + "\n";
    }
    text += RowLine(line, widths, scale, style);
  }
  return text;
}

std::string Head(const v1::Report& report) {
  const auto hosts = report.hosts_count();
  std::string text = Printable(report.run().playbook_name()) + "  ";
  if (report.has_test_run()) {
    text +=
        fmt::format("base run {}   test run {}", report.run().run_id(), report.test_run().run_id());
  } else {
    text += "run " + report.run().run_id();
    if (!report.rows().empty()) text += "   base " + Printable(report.rows(0).base());
  }
  text += fmt::format("   {} {}   {} of {} trials valid", hosts, hosts == 1 ? "host" : "hosts",
                      report.trials_valid(), report.trials_planned());
  if (report.overlap_min() >= 0) {
    text += fmt::format("   start skew {} at most, overlap {:.1f} % at least",
                        FormatDuration(Nanoseconds(report.start_skew_max_ns())),
                        std::floor(report.overlap_min() * 1000) / 10);
  }
  if (!report.clock().empty() && report.clock() != "monotonic") {
    text += "   clock: " + Printable(report.clock());
  }
  return Wrapped("", text, kColumnsMax);
}

// Hosts that say something else than all hosts together; the others are only counted.
std::string HostRows(const v1::Report& report, const Style& style) {
  std::map<std::pair<std::string, std::string>, v1::ComparisonVerdict> over_all;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (row.host().empty() && row.primary()) {
      over_all.try_emplace({row.stack(), CellTitle(row)}, row.verdict());
    }
  }
  std::vector<Line> lines;
  int agree = 0;
  int hidden = 0;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (row.host().empty() || !row.primary() || IsBase(row)) continue;
    const auto together = over_all.find({row.stack(), CellTitle(row)});
    if (together != over_all.end() && together->second == row.verdict()) {
      ++agree;
    } else if (static_cast<int>(lines.size()) == kHostRowsShownMax) {
      ++hidden;
    } else {
      lines.push_back({.row = &row, .metric = row.host(), .verdict = VerdictWord(row.verdict())});
    }
  }
  if (lines.empty() && agree == 0) return "";
  std::string text = "single hosts (primary metric): ";
  if (lines.empty()) return text + "each as all together\n";
  text += fmt::format("these differ from all together, {} agree{}\n", agree,
                      hidden > 0 ? fmt::format(", {} more differ (--json)", hidden) : "");
  return text + Rows(lines, report, style);
}

std::string Explanations(const v1::Report& report, const Footnotes& footnotes) {
  std::string text;
  const std::string geomean = GeomeanText(report);
  if (!geomean.empty()) text += Wrapped("", Printable(geomean), kColumnsMax);
  const std::string detectable = DetectableText(report);
  if (!detectable.empty()) {
    text += Wrapped(
        "",
        fmt::format("right of the bar is better{}; smallest effect that these trials find: {} "
                    "(80 % power)",
                    HolmText(report), detectable),
        kColumnsMax);
  }
  const std::string done = DoneRatesText(report);
  if (!done.empty()) text += Wrapped("", Printable(done), kColumnsMax);
  for (std::size_t i = 0; i < footnotes.texts().size(); ++i) {
    text += Wrapped(fmt::format("{:<2} ", i + 1), Printable(footnotes.texts()[i]), kColumnsMax);
  }
  return text;
}

std::string Gates(const v1::Report& report, const Style& style) {
  if (report.gates().empty()) return "";
  std::string text = Inked("GATES", Ink::kBold, style) + "\n";
  for (const v1::GateResult& gate : report.gates()) {
    const std::string wrapped =
        Wrapped(std::string(15, ' '), Printable(gate.text() + ": " + gate.detail()), kColumnsMax);
    text += "  " + Inked(gate.outcome(), InkOf(gate.outcome()), style) +
            std::string(13 - std::min<std::size_t>(12, gate.outcome().size()), ' ') +
            wrapped.substr(15);
  }
  return text;
}

std::string LeftOut(const v1::Report& report) {
  std::string text;
  int shown = 0;
  for (const v1::SkippedItem& item : report.skipped()) {
    if (shown == kSkippedShownMax) break;
    text +=
        Wrapped("left out: ", Printable(item.what() + ": " + item.kind() + ": " + item.reason()),
                kColumnsMax);
    ++shown;
  }
  if (shown < report.skipped_size()) {
    text +=
        fmt::format("left out: and {} more (--json lists all)\n", report.skipped_size() - shown);
  }
  return text;
}

std::string Warnings(const v1::Report& report, const Style& style) {
  std::string text;
  int shown = 0;
  for (const v1::Warning& warning : report.warnings()) {
    if (shown == kWarningsShownMax) break;
    std::string sentence = warning.message();
    if (!warning.cure().empty()) sentence += "; cure: " + warning.cure();
    const std::string label = "warning " + Printable(warning.code()) + ": ";
    const std::string wrapped =
        Wrapped(std::string(label.size(), ' '), Printable(sentence), kColumnsMax);
    text += Inked(label, Ink::kUnsure, style) + wrapped.substr(label.size());
    ++shown;
  }
  if (shown < report.warnings_size()) {
    const int more = report.warnings_size() - shown;
    text += fmt::format("and {} more {} (--json lists all)\n", more,
                        more == 1 ? "warning" : "warnings");
  }
  for (const v1::EnvironmentLine& line : report.environment()) {
    if (line.host_name().empty())
      text += Wrapped("environment: ", Printable(line.text()), kColumnsMax);
  }
  return text;
}

std::string Closing(const v1::Report& report, const Style& style, bool strict,
                    const NextWords& words) {
  const std::string verdict = ClosingVerdict(report, strict);
  std::string text =
      Inked(verdict, InkOf(verdict), style) + "  " + ClosingText(report, strict) + "\n";
  // One a line and never wrapped, since they are there to be copied.
  std::string lead = "next: ";
  for (const std::string& command : NextCommands(report, words)) {
    text += lead + Printable(command) + "\n";
    lead.assign(lead.size(), ' ');
  }
  return text;
}

}  // namespace

std::string FormatReport(const v1::Report& report, const Style& style, bool strict,
                         const NextWords& next) {
  Footnotes footnotes;
  std::vector<Line> lines;
  for (const v1::ComparisonRow* row : ShownRows(report)) {
    lines.push_back(
        {.row = row, .metric = row->metric(), .verdict = WithFootnote(*row, footnotes)});
  }
  std::string text = Head(report);
  if (lines.empty()) text += "no result: " + NoRowsText(report) + "\n";
  text += Rows(lines, report, style);
  text += Explanations(report, footnotes);
  text += HostRows(report, style);
  text += LeftOut(report);
  text += Warnings(report, style);
  text += Gates(report, style);
  return text + Closing(report, style, strict, next);
}

}  // namespace labrack::report
