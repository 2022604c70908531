#include "controller/cli/report_output.h"

#include <fmt/format.h>

#include "controller/cli/following.h"
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

constexpr const char* kForms[] = {"json", "junit", "markdown"};

struct FilesDone {
  bool written = true;              // all that were asked for
  bool on_standard_output = false;  // one of them is there, so that nothing else may be
};

FilesDone PutOutFiles(const Call& call, const v1::Report& report) {
  FilesDone done;
  for (const char* name : kForms) {
    const std::optional<std::string> path = call.arguments.Text(name);
    if (!path) continue;
    const std::string text = Form(name, report, call.arguments.Flag("strict"));
    if (*path == "-") {
      WriteOut(text);
      done.on_standard_output = true;
      continue;
    }
    if (Result<void> written = WriteFileAtomically(*path, text); !written) {
      FailWith(call, written.error(), ExitCode::kLabFailed);
      done.written = false;
    }
  }
  return done;
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

Result<void> CheckReportFiles(const Call& call) {
  std::string on_standard_output;
  for (const char* name : kForms) {
    const std::optional<std::string> path = call.arguments.Text(name);
    if (!path) continue;
    if (*path != "-") {
      if (Result<void> writable = CheckWritable(*path); !writable) return writable;
    } else if (on_standard_output.empty()) {
      on_standard_output = name;
    } else {
      return Fail(Errc::kInvalidArgument,
                  fmt::format("--{} - and --{} - cannot both have standard output; give one of "
                              "them a file",
                              on_standard_output, name));
    }
  }
  return {};
}

ExitCode PutOutReport(const Call& call, const v1::Report& report, const std::string& playbook) {
  const bool strict = call.arguments.Flag("strict");
  const FilesDone done = PutOutFiles(call, report);
  if (!done.on_standard_output) {
    report::NextWords next{.lab = AddressWords(call)};
    if (!playbook.empty()) next.playbook = playbook;
    WriteOut(report::FormatReport(
        report, {.colour = call.terminal.output_colour, .unicode = call.terminal.utf8}, strict,
        next));
  }
  const auto code = static_cast<ExitCode>(strict ? report.exit_code_strict() : report.exit_code());
  // A verdict without its file would be missed by whoever reads the file.
  return done.written || code != ExitCode::kPassed ? code : ExitCode::kLabFailed;
}

void PutOutFailure(const Call& call, const v1::RunSummary& run, ExitCode code) {
  v1::Report report;
  *report.mutable_run() = run;
  report.mutable_run()->set_state(v1::RUN_STATE_FAILED);
  report.mutable_run()->set_exit_code(ToInt(code));
  report.mutable_run()->set_verdict("INVALID");
  report.set_verdict("INVALID");
  report.set_exit_code(ToInt(code));
  report.set_exit_code_strict(ToInt(code));
  report.set_overlap_min(-1);
  const std::vector<std::string>& reasons = call.voice.reasons();
  v1::SkippedItem& item = *report.add_skipped();
  item.set_what("run");
  item.set_kind("failed");
  item.set_reason(reasons.empty() ? ExitCodeMeaning(code)
                                  : fmt::format("{}", fmt::join(reasons, "\n")));
  report.mutable_run()->set_reason(item.reason());
  PutOutFiles(call, report);
}

void PutOutSummary(const Call& call, const v1::RunSummary& run, ExitCode code, const Error& why) {
  v1::Report report;
  *report.mutable_run() = run;
  report.set_verdict(run.verdict());
  report.set_exit_code(run.exit_code());
  report.set_exit_code_strict(ToInt(code));
  report.set_trials_planned(run.trials_total());
  report.set_trials_valid(run.trials_valid());
  report.set_overlap_min(-1);
  v1::SkippedItem& item = *report.add_skipped();
  item.set_what("table");
  item.set_kind("unsupported");  // what the verdict does not hang on
  item.set_reason(fmt::format("the table could not be made: {}", why.ToString()));
  PutOutFiles(call, report);
}

}  // namespace labrack::cli
