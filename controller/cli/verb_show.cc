// labrack show: the report of a run, made again from what the catalog keeps.
#include "controller/cli/output.h"
#include "controller/cli/report_output.h"
#include "controller/cli/verb.h"

namespace labrack::cli {
namespace {

ExitCode Show(const Call& call) {
  Result<std::unique_ptr<Lab>> lab = OpenLabToLook(call);
  if (!lab) return FailWith(call, lab.error(), ExitCode::kLabFailed);
  const Result<v1::Report> report = (*lab)->client().Compare(call.arguments.Operand(0), "");
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
