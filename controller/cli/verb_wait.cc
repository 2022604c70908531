// labrack wait: waits for a run's verdict and says it by the exit code.
#include <fmt/format.h>

#include "controller/cli/following.h"
#include "controller/cli/verb.h"

namespace labrack::cli {
namespace {

ExitCode Wait(const Call& call) {
  const auto judge = [&](Records& records, const v1::RunSummary& run) {
    const Result<v1::Report> report = records.Compare(run.run_id(), "");
    if (!report) return JudgeWithoutTable(call, run, report.error());
    call.voice.Say(fmt::format("{}: {}", run.run_id(), report->verdict()));
    return static_cast<ExitCode>(call.arguments.Flag("strict") ? report->exit_code_strict()
                                                               : report->exit_code());
  };
  return LookOn(call, {.limit = call.arguments.Duration("timeout"),
                       .progress = "none",
                       .hint = "Ctrl-C ends the waiting; the run goes on",
                       .judge = judge});
}

}  // namespace

const Verb& WaitVerb() {
  static const Verb verb = {
      .name = "wait",
      .group = "look",
      .summary = "wait for a run's verdict; the exit code says it",
      .details = "",
      .operands = {{"RUN"}},
      .options = WithLabOptions({{.name = "timeout",
                                  .kind = ValueKind::kDuration,
                                  .value = "TIME",
                                  .help = "give up after this time (exit 8), as 90s or 2h",
                                  .sources = Sources::kAll},
                                 {.name = "strict",
                                  .help = "exit 4 when the trials do not decide",
                                  .sources = Sources::kAll},
                                 ProgressOption()}),
      .run = Wait};
  return verb;
}

}  // namespace labrack::cli
