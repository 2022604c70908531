// labrack compare: the same cells of two runs.
#include "controller/cli/output.h"
#include "controller/cli/records.h"
#include "controller/cli/report_output.h"

namespace labrack::cli {
namespace {

ExitCode Compare(const Call& call) {
  if (Result<void> right = CheckReportFiles(call); !right) {
    return FailWith(call, right.error(), ExitCode::kUsage);
  }
  Result<Records> records = Records::Open(call);
  if (!records) return FailWith(call, records.error(), ExitCode::kLabFailed);
  const Result<v1::Report> report =
      records->Compare(call.arguments.Operand(0), call.arguments.Operand(1));
  if (!report) return FailWith(call, report.error());
  return PutOutReport(call, *report);
}

}  // namespace

const Verb& CompareVerb() {
  static const Verb verb = {.name = "compare",
                            .group = "judge",
                            .summary = "is run TEST faster or slower than run BASE",
                            .details = "Exits 1 when a cell is worse.",
                            .operands = {{"BASE"}, {"TEST"}},
                            .options = WithLabOptions(WithReportOptions({})),
                            .run = Compare};
  return verb;
}

}  // namespace labrack::cli
