#include "controller/report/markdown.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "controller/report/row_text.h"
#include "controller/report/style.h"
#include "storage/base/units.h"

namespace labrack::report {
namespace {

// Text that Markdown and HTML must not read as their own.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (char c : Printable(text)) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      if (std::string_view("\\`*_[]|#~").find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string Head(const v1::Report& report, bool strict) {
  std::string text = fmt::format("### {}: {}\n\n", Escaped(report.run().playbook_name()),
                                 ClosingVerdict(report, strict));
  if (report.has_test_run()) {
    text += fmt::format("base run {}, test run {}", Escaped(report.run().run_id()),
                        Escaped(report.test_run().run_id()));
  } else {
    text += report.run().run_id().empty() ? "no run" : "run " + Escaped(report.run().run_id());
    if (!report.rows().empty()) text += ", base " + Escaped(report.rows(0).base());
  }
  text += fmt::format(", {} {}, {} of {} trials valid", report.hosts_count(),
                      report.hosts_count() == 1 ? "host" : "hosts", report.trials_valid(),
                      report.trials_planned());
  if (report.overlap_min() >= 0) {
    text += fmt::format(", start skew {} at most, overlap {:.1f} % at least",
                        FormatDuration(Nanoseconds(report.start_skew_max_ns())),
                        std::floor(report.overlap_min() * 1000) / 10);
  }
  if (!report.clock().empty() && report.clock() != "monotonic") {
    text += ", clock: " + Escaped(report.clock());
  }
  return text + "\n\n";
}

std::string Table(const v1::Report& report, Footnotes& footnotes) {
  const std::vector<const v1::ComparisonRow*> rows = ShownRows(report);
  if (rows.empty()) return "No result: " + NoRowsText(report) + ".\n\n";
  std::string text =
      "| cell | metric | stack | base | median | change | 95 % CI | verdict |\n"
      "|---|---|---|---:|---:|---:|---|---|\n";
  for (const v1::ComparisonRow* row : rows) {
    const bool base = row->verdict() == v1::COMPARISON_VERDICT_BASE;
    std::string verdict = VerdictWord(row->verdict());
    if (!row->reason().empty()) {
      verdict += fmt::format(" <sup>{}</sup>", footnotes.Number(row->reason()));
    }
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", Escaped(CellTitle(*row)),
                        Escaped(row->metric()), Escaped(row->stack()),
                        base ? "" : Escaped(FormatValue(row->base_median(), row->unit())),
                        Escaped(FormatValue(row->median(), row->unit())),
                        base ? "" : FormatChange(row->ratio()),
                        base ? "" : Escaped(FormatInterval(*row)), verdict);
  }
  return text + "\n";
}

std::string Details(const std::string& title, const std::string& items) {
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", title, items);
}

std::string Gates(const v1::Report& report) {
  if (report.gates().empty()) return "";
  std::string text = "| gate | outcome | figures |\n|---|---|---|\n";
  for (const v1::GateResult& gate : report.gates()) {
    text += fmt::format("| {} | {} | {} |\n", Escaped(gate.text()), gate.outcome(),
                        Escaped(gate.detail()));
  }
  return text + "\n";
}

std::string Lists(const v1::Report& report) {
  std::string text;
  std::string items;
  for (const v1::SkippedItem& item : report.skipped()) {
    std::string reason = item.reason();
    std::ranges::replace(reason, '\n', ' ');
    items +=
        fmt::format("- {}: {}: {}\n", Escaped(item.what()), Escaped(item.kind()), Escaped(reason));
  }
  if (!items.empty()) text += Details(fmt::format("{} left out", report.skipped_size()), items);
  items.clear();
  for (const v1::Warning& warning : report.warnings()) {
    items += fmt::format("- {}: {}", Escaped(warning.code()), Escaped(warning.message()));
    items += warning.cure().empty() ? "\n" : "; cure: " + Escaped(warning.cure()) + "\n";
  }
  if (!items.empty()) text += Details(fmt::format("{} warnings", report.warnings_size()), items);
  items.clear();
  for (const v1::EnvironmentLine& line : report.environment()) {
    items += "- " + (line.host_name().empty() ? "" : Escaped(line.host_name()) + ": ") +
             Escaped(line.text()) + "\n";
  }
  if (!items.empty()) text += Details("environment", items);
  return text;
}

}  // namespace

std::string FormatMarkdown(const v1::Report& report, bool strict) {
  Footnotes footnotes;
  std::string text = Head(report, strict) + Table(report, footnotes);
  for (std::size_t i = 0; i < footnotes.texts().size(); ++i) {
    text += fmt::format("<sup>{}</sup> {}  \n", i + 1, Escaped(footnotes.texts()[i]));
  }
  if (!footnotes.texts().empty()) text += "\n";
  const std::string geomean = GeomeanText(report);
  if (!geomean.empty()) text += Escaped(geomean) + "\n\n";
  const std::string detectable = DetectableText(report);
  if (!detectable.empty()) {
    text += fmt::format("Smallest effect that these trials find: {} (80 % power){}.\n\n",
                        detectable, HolmText(report));
  }
  const std::string done = DoneRatesText(report);
  if (!done.empty()) text += Escaped(done) + "\n\n";
  text += Gates(report) + Lists(report);
  return text + "**" + ClosingVerdict(report, strict) + "** " + ClosingText(report, strict) + "\n";
}

}  // namespace labrack::report
