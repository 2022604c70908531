// labrack wait: waits for a run's verdict and says it by the exit code.
#include <unistd.h>

#include <fmt/format.h>

#include "controller/cli/follow.h"
#include "controller/cli/progress.h"
#include "controller/cli/verb.h"

namespace labrack::cli {
namespace {

ExitCode Verdict(const Call& call, Lab& lab, const std::string& run) {
  const Result<v1::Report> report = lab.client().Compare(run, "");
  if (!report) return FailWith(call, report.error());
  const int code = call.arguments.Flag("strict") ? report->exit_code_strict() : report->exit_code();
  Say(fmt::format("{}: {}", run, report->verdict()));
  return static_cast<ExitCode>(code);
}

ExitCode Wait(const Call& call) {
  const std::string& run = call.arguments.Operand(0);
  Interrupts interrupts;
  Result<std::unique_ptr<Lab>> lab = OpenLabToLook(call);
  if (!lab) return FailWith(call, lab.error(), ExitCode::kLabFailed);
  const std::string progress = call.arguments.Text("progress").value_or("none");
  const std::unique_ptr<ProgressView> view =
      MakeProgressView(ChooseProgress(progress, call.terminal), STDERR_FILENO, call.terminal,
                       "Ctrl-C ends the waiting; the run goes on");
  const FollowResult followed =
      Follow((*lab)->client(), {.run_id = run, .limit = call.arguments.Duration("timeout")}, *view,
             interrupts);
  if (followed.error) FailWith(call, *followed.error);
  switch (followed.end) {
    case FollowEnd::kRunEnded:
      return Verdict(call, **lab, run);
    case FollowEnd::kInterrupted:
    case FollowEnd::kNotCleanedUp:
      return static_cast<ExitCode>(interrupts.exit_code());
    case FollowEnd::kTimedOut:
      Say(fmt::format("{}: still going on", run));
      return ExitCode::kWaitTimedOut;
    case FollowEnd::kConnectionLost:
      return ExitCode::kWaitTimedOut;
    case FollowEnd::kFailed:
      break;
  }
  return ExitCodeOf(*followed.error);
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
