// labrack show: the report of a run, made again from what the catalog keeps.
#include "controller/cli/output.h"
#include "controller/cli/records.h"
#include "controller/cli/report_output.h"

namespace labrack::cli {
namespace {

ExitCode Show(const Call& call) {
  if (Result<void> right = CheckReportFiles(call); !right) {
    return FailWith(call, right.error(), ExitCode::kUsage);
  }
  Result<Records> records = Records::Open(call);
  if (!records) return FailWith(call, records.error(), ExitCode::kLabFailed);
  const Result<v1::Report> report = records->Compare(call.arguments.Operand(0), "");
  if (!report) return FailWith(call, report.error());
  return PutOutReport(call, *report);
}

}  // namespace

const Verb& ShowVerb() {
  static const Verb verb = {.name = "show",
                            .group = "judge",
                            .summary = "the report of a run",
                            .details = "The exit code is the run's verdict.",
                            .operands = {{"RUN"}},
                            .options = WithLabOptions(WithReportOptions({})),
                            .run = Show};
  return verb;
}

}  // namespace labrack::cli
