// labrack export: the raw results of a run, for other tools.
#include "controller/cli/output.h"
#include "controller/cli/records.h"
#include "controller/report/export.h"
#include "controller/report/json.h"

namespace labrack::cli {
namespace {

std::string Form(const std::string& as, const v1::RunRecord& run) {
  if (as == "csv") return report::FormatCsv(run);
  if (as == "openmetrics") return report::FormatOpenMetrics(run);
  if (as == "fio") return report::FormatFioJson(run);
  return report::FormatRunJson(run);
}

ExitCode Export(const Call& call) {
  Result<Records> records = Records::Open(call);
  if (!records) return FailWith(call, records.error(), ExitCode::kLabFailed);
  const Result<v1::RunRecord> run = records->FetchRun(call.arguments.Operand(0));
  if (!run) return FailWith(call, run.error());
  const std::string text = Form(call.arguments.Text("as").value_or("json"), *run);
  const std::optional<std::string> path = call.arguments.Text("output");
  if (!path) {
    WriteOut(text);
    return ExitCode::kPassed;
  }
  if (Result<void> written = WriteFileAtomically(*path, text); !written) {
    return FailWith(call, written.error(), ExitCode::kLabFailed);
  }
  return ExitCode::kPassed;
}

}  // namespace

const Verb& ExportVerb() {
  static const Verb verb = {
      .name = "export",
      .group = "judge",
      .summary = "the raw results of a run for other tools",
      .details = "openmetrics is for promtool tsdb create-blocks-from; fio has fio's names.",
      .operands = {{"RUN"}},
      .options = WithLabOptions({{.name = "as",
                                  .kind = ValueKind::kChoice,
                                  .value = "FORM",
                                  .help = "json (left out), csv, openmetrics or fio",
                                  .choices = {"json", "csv", "openmetrics", "fio"}},
                                 {.name = "output",
                                  .kind = ValueKind::kText,
                                  .value = "FILE",
                                  .help = "write to a file instead of standard output"}}),
      .run = Export};
  return verb;
}

}  // namespace labrack::cli
