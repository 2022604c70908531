// labrack status: where a run stands now.
#include "controller/cli/output.h"
#include "controller/cli/records.h"
#include "controller/report/json.h"
#include "controller/report/lists.h"

namespace labrack::cli {
namespace {

ExitCode Status(const Call& call) {
  Result<Records> records = Records::Open(call);
  if (!records) return FailWith(call, records.error(), ExitCode::kLabFailed);
  const bool json = call.arguments.Flag("json");
  const Result<v1::RunRecord> run = records->ShowRun(
      call.arguments.Operand(0), json ? v1::RECORD_LEVEL_ASSIGNMENTS : v1::RECORD_LEVEL_SUMMARY);
  if (!run) return FailWith(call, run.error());
  WriteOut(json ? report::FormatRunJson(*run) : report::FormatStatus(*run, records->unfinished()));
  return ExitCode::kPassed;
}

}  // namespace

const Verb& StatusVerb() {
  static const Verb verb = {.name = "status",
                            .group = "look",
                            .summary = "where a run and its trials stand",
                            .details =
                                "Exits 0 whatever the run's verdict; `wait` and `show` give "
                                "the verdict as exit code.",
                            .operands = {{"RUN"}},
                            .options = WithLabOptions({JsonFlag()}),
                            .run = Status};
  return verb;
}

}  // namespace labrack::cli
