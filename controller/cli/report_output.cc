#include "controller/cli/report_output.h"

#include <fmt/format.h>

#include "controller/cli/output.h"
#include "controller/report/json.h"
#include "controller/report/junit.h"
#include "controller/report/markdown.h"
#include "controller/report/terminal.h"

namespace labrack::cli {
namespace {

std::string Form(const std::string& name, const v1::Report& report, bool strict) {
  if (name == "json") return report::FormatJson(report);
  if (name == "junit") return report::FormatJunit(report, strict);
  return report::FormatMarkdown(report, strict);
}

}  // namespace

std::vector<Option> WithReportOptions(std::vector<Option> options) {
  options.push_back({.name = "json",
                     .kind = ValueKind::kText,
                     .value = "FILE",
                     .help = "write the report as JSON; - is standard output"});
  options.push_back({.name = "junit",
                     .kind = ValueKind::kText,
                     .value = "FILE",
                     .help = "write it as JUnit XML"});
  options.push_back({.name = "markdown",
                     .kind = ValueKind::kText,
                     .value = "FILE",
                     .help = "write it as Markdown"});
  options.push_back(
      {.name = "strict", .help = "exit 4 when the trials do not decide", .sources = Sources::kAll});
  return options;
}

bool WantsReportFiles(const Call& call) {
  return call.arguments.Text("json") || call.arguments.Text("junit") ||
         call.arguments.Text("markdown");
}

ExitCode PutOutReport(const Call& call, const v1::Report& report) {
  const bool strict = call.arguments.Flag("strict");
  bool table = true;
  bool written = true;
  for (const char* name : {"json", "junit", "markdown"}) {
    const std::optional<std::string> path = call.arguments.Text(name);
    if (!path) continue;
    const std::string text = Form(name, report, strict);
    if (*path == "-") {
      WriteOut(text);
      table = false;
      continue;
    }
    if (Result<void> done = WriteFileAtomically(*path, text); !done) {
      FailWith(call, done.error(), ExitCode::kLabFailed);
      written = false;
    }
  }
  if (table) {
    WriteOut(report::FormatReport(
        report, {.colour = call.terminal.output_colour, .unicode = call.terminal.utf8}, strict));
  }
  const auto code = static_cast<ExitCode>(strict ? report.exit_code_strict() : report.exit_code());
  // A verdict without its file would be missed by whoever reads the file.
  return written || code != ExitCode::kPassed ? code : ExitCode::kLabFailed;
}

}  // namespace labrack::cli
