// labrack why: what an operation cost on each stack of a run, and what differs.
#include "controller/cli/output.h"
#include "controller/cli/records.h"
#include "controller/report/json.h"
#include "controller/report/why.h"

namespace labrack::cli {
namespace {

ExitCode Why(const Call& call) {
  Result<Records> records = Records::Open(call);
  if (!records) return FailWith(call, records.error(), ExitCode::kLabFailed);
  const Result<v1::Report> report = records->Compare(call.arguments.Operand(0), "");
  if (!report) return FailWith(call, report.error());
  if (!call.arguments.Flag("json")) {
    WriteOut(report::FormatReasons(
        *report, {.colour = call.terminal.output_colour, .unicode = call.terminal.utf8}));
    return ExitCode::kPassed;
  }
  v1::Report reasons;
  *reasons.mutable_run() = report->run();
  reasons.set_clock(report->clock());
  *reasons.mutable_reasons() = report->reasons();
  WriteOut(report::FormatMessageJson("labrack.why", reasons));
  return ExitCode::kPassed;
}

}  // namespace

const Verb& WhyVerb() {
  static const Verb verb = {
      .name = "why",
      .group = "judge",
      .summary = "what an operation cost on each stack, and what differs",
      .details =
          "I/Os by purpose and by how many had to wait for each other, before and behind "
          "the acknowledgement; bytes at the disks; flushes; waits; processor time. I/Os by "
          "purpose are known of `volume` stacks only.",
      .operands = {{"RUN"}},
      .options = WithLabOptions({JsonFlag()}),
      .run = Why};
  return verb;
}

}  // namespace labrack::cli
