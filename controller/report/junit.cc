#include "controller/report/junit.h"

#include <ctime>
#include <map>
#include <ranges>

#include <fmt/format.h>

#include "controller/report/row_text.h"
#include "controller/report/style.h"
#include "storage/base/exit_codes.h"

namespace labrack::report {
namespace {

enum class CaseEnd { kPassed, kFailure, kError, kSkipped };

struct Case {
  std::string name;
  CaseEnd end = CaseEnd::kPassed;
  std::string type;     // of failures and errors
  std::string message;  // one line
  std::string text;     // all of it, where the message is the first line of several
  std::vector<std::pair<std::string, std::string>> properties;
};

// Ant's schema wants no zone and no fraction.
std::string TimeStamp(std::int64_t wall_ns) {
  const std::time_t seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// As outcome.h: what --strict does not let pass.
bool IsOpen(const v1::ComparisonRow& row) {
  return row.verdict() == v1::COMPARISON_VERDICT_INCONCLUSIVE ||
         (row.primary() && row.verdict() == v1::COMPARISON_VERDICT_NOT_JUDGED);
}

Case RowCase(const v1::Report& report, const v1::ComparisonRow& row, bool strict) {
  Case result;
  // Names are the same in every build: the base of two runs is a run's id, which is not.
  result.name = fmt::format("{} {} {}", CellTitle(row), row.metric(), row.stack());
  if (!report.has_test_run()) result.name += " vs " + row.base();
  const std::string word = VerdictWord(row.verdict());
  const std::string figures =
      fmt::format("{} against {}, change {}, 95 % interval {}, {} trials",
                  FormatValue(row.median(), row.unit()), FormatValue(row.base_median(), row.unit()),
                  FormatChange(row.ratio()), FormatInterval(row), row.trials());
  result.properties = {{"verdict", word}, {"figures", figures}};
  if (!row.reason().empty()) result.properties.push_back({"reason", row.reason()});
  result.message = figures;
  if (row.verdict() == v1::COMPARISON_VERDICT_WORSE && report.has_test_run()) {
    result.end = CaseEnd::kFailure;
    result.type = "PerfRegression";
  } else if (IsOpen(row) && strict && report.gates().empty()) {
    result.end = CaseEnd::kFailure;
    result.type = "Inconclusive";
    result.message = row.reason();
  }
  return result;
}

Case GateCase(const v1::GateResult& gate, bool strict) {
  Case result;
  result.name = fmt::format("gate {}: {}", gate.index() + 1, gate.text());
  result.properties = {{"verdict", gate.outcome()}, {"figures", gate.detail()}};
  result.message = gate.detail();
  if (gate.outcome() == "FAILED") {
    result.end = CaseEnd::kFailure;
    result.type = "GateFailed";
  } else if (gate.outcome() == "INVALID") {
    result.end = CaseEnd::kError;
    result.type = "Infra";
  } else if (gate.outcome() == "INCONCLUSIVE" && strict) {
    result.end = CaseEnd::kFailure;
    result.type = "Inconclusive";
  }
  return result;
}

// What kind of error it is that something did not end as it should.
std::string ErrorType(const v1::Report& report) {
  switch (static_cast<ExitCode>(report.exit_code())) {
    case ExitCode::kPlaybookInvalid:
      return "PlaybookInvalid";
    case ExitCode::kRefusedBySafety:
      return "RefusedBySafety";
    default:
      return "Infra";
  }
}

Case SkippedCase(const v1::Report& report, const v1::SkippedItem& item) {
  Case result;
  result.name = item.what();
  const std::size_t line_end = item.reason().find('\n');
  result.message = item.reason().empty() ? item.kind() : item.reason().substr(0, line_end);
  if (line_end != std::string::npos) result.text = item.reason();
  result.properties = {{"kind", item.kind()}};
  if (item.kind() == "unsupported" || item.kind() == "pending" || item.kind() == "different") {
    result.end = CaseEnd::kSkipped;
  } else if (item.kind() == "mismatch") {
    result.end = CaseEnd::kFailure;
    result.type = "DataMismatch";
  } else {
    result.end = CaseEnd::kError;
    result.type = ErrorType(report);
  }
  return result;
}

// A run of which nothing else can be said still is one case, so that no CI takes it for a success.
Case RunCase(const v1::Report& report) {
  Case result;
  result.name = "run";
  result.message = ExitCodeMeaning(static_cast<ExitCode>(report.exit_code()));
  if (report.exit_code() != ToInt(ExitCode::kPassed)) {
    result.end = CaseEnd::kError;
    result.type = "Infra";
  }
  return result;
}

std::vector<Case> CasesOf(const v1::Report& report, bool strict) {
  std::vector<Case> cases;
  bool bad = false;
  for (const v1::ComparisonRow& row : report.rows()) {
    if (row.host().empty() && row.verdict() != v1::COMPARISON_VERDICT_BASE) {
      cases.push_back(RowCase(report, row, strict));
    }
  }
  for (const v1::GateResult& gate : report.gates()) cases.push_back(GateCase(gate, strict));
  for (const v1::SkippedItem& item : report.skipped()) cases.push_back(SkippedCase(report, item));
  for (const Case& one : cases) {
    bad = bad || one.end == CaseEnd::kFailure || one.end == CaseEnd::kError;
  }
  if (cases.empty() || (!bad && report.exit_code() != ToInt(ExitCode::kPassed))) {
    cases.push_back(RunCase(report));
  }
  return cases;
}

// One host's name, or how many there were: the host group of classname.
std::string HostGroup(const v1::Report& report) {
  if (report.hosts_count() == 1) {
    for (const v1::EnvironmentLine& line : report.environment()) {
      if (!line.host_name().empty()) return line.host_name();
    }
  }
  return fmt::format("{}-hosts", report.hosts_count());
}

std::string Properties(const std::vector<std::pair<std::string, std::string>>& properties,
                       const std::string& indent) {
  if (properties.empty()) return "";
  std::string text = indent + "<properties>\n";
  for (const auto& [name, value] : properties) {
    text += fmt::format("{}  <property name=\"{}\" value=\"{}\"/>\n", indent, XmlEscaped(name),
                        XmlEscaped(value));
  }
  return text + indent + "</properties>\n";
}

std::string EscapedLines(std::string_view text) {
  std::string escaped;
  for (const auto line : std::views::split(text, '\n')) {
    if (!escaped.empty()) escaped += '\n';
    escaped += XmlEscaped(std::string_view(line));
  }
  return escaped;
}

std::string CaseXml(const Case& one, const std::string& class_name) {
  std::string text = fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"0\">\n",
                                 XmlEscaped(one.name), XmlEscaped(class_name));
  text += Properties(one.properties, "      ");
  const std::string message = XmlEscaped(one.message);
  switch (one.end) {
    case CaseEnd::kPassed:
      break;
    case CaseEnd::kFailure:
    case CaseEnd::kError: {
      const char* tag = one.end == CaseEnd::kFailure ? "failure" : "error";
      text +=
          fmt::format("      <{0} message=\"{1}\" type=\"{2}\">{3}</{0}>\n", tag, message,
                      XmlEscaped(one.type), one.text.empty() ? message : EscapedLines(one.text));
      break;
    }
    case CaseEnd::kSkipped:
      text += fmt::format("      <skipped message=\"{}\"/>\n", message);
      break;
  }
  return text + "    </testcase>\n";
}

std::vector<std::pair<std::string, std::string>> SuiteProperties(const v1::Report& report,
                                                                 bool strict) {
  std::vector<std::pair<std::string, std::string>> properties = {
      {"run_id", report.run().run_id()},
      {"verdict", ClosingVerdict(report, strict)},
      {"exit_code", std::to_string(strict ? report.exit_code_strict() : report.exit_code())},
      {"trials_valid", std::to_string(report.trials_valid())},
      {"trials_planned", std::to_string(report.trials_planned())}};
  if (report.has_test_run()) properties.push_back({"test_run_id", report.test_run().run_id()});
  if (report.overlap_min() >= 0) {
    properties.push_back({"start_skew_max_ns", std::to_string(report.start_skew_max_ns())});
    properties.push_back({"overlap_min", fmt::format("{:.4f}", report.overlap_min())});
  }
  for (const v1::EnvironmentLine& line : report.environment()) {
    properties.push_back(
        {line.host_name().empty() ? "environment" : "environment." + line.host_name(),
         line.text()});
  }
  for (const v1::Warning& warning : report.warnings()) {
    properties.push_back({"warning." + warning.code(), warning.message()});
  }
  return properties;
}

}  // namespace

std::string XmlEscaped(std::string_view text) {
  std::string escaped;
  for (char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':  // so that "]]>" never appears either
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&apos;";
        break;
      default:
        escaped += c;
    }
  }
  // U+FFFE and U+FFFF are UTF-8 but no XML characters.
  for (const char* bad : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (std::size_t at = escaped.find(bad); at != std::string::npos; at = escaped.find(bad, at)) {
      escaped.replace(at, 3, "?");
    }
  }
  return escaped;
}

std::string FormatJunit(const v1::Report& report, bool strict) {
  const v1::RunSummary& run = report.has_test_run() ? report.test_run() : report.run();
  const std::vector<Case> cases = CasesOf(report, strict);
  std::map<CaseEnd, int> ends;
  for (const Case& one : cases) ++ends[one.end];
  const double seconds =
      run.ended_wall_ns() > run.created_wall_ns()
          ? static_cast<double>(run.ended_wall_ns() - run.created_wall_ns()) * 1e-9
          : 0;
  const std::string counts = fmt::format(
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\" timestamp=\"{}\"",
      cases.size(), ends[CaseEnd::kFailure], ends[CaseEnd::kError], ends[CaseEnd::kSkipped],
      seconds, TimeStamp(run.created_wall_ns()));
  const std::string playbook = XmlEscaped(run.playbook_name());
  const std::string group = HostGroup(report);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += fmt::format("<testsuites name=\"labrack {}\" {}>\n", playbook, counts);
  text += fmt::format(
      "  <testsuite name=\"{0}\" package=\"labrack.{0}\" id=\"0\" hostname=\"{1}\" {2}>\n",
      playbook, XmlEscaped(group), counts);
  text += Properties(SuiteProperties(report, strict), "    ");
  const std::string class_name = "labrack." + run.playbook_name() + "." + group;
  for (const Case& one : cases) text += CaseXml(one, class_name);
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace labrack::report
