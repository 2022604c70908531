// labrack watch: the progress of a run that somebody else started.
#include <unistd.h>

#include <fmt/format.h>

#include "controller/cli/follow.h"
#include "controller/cli/progress.h"
#include "controller/cli/report_output.h"
#include "controller/cli/verb.h"

namespace labrack::cli {
namespace {

ExitCode Watch(const Call& call) {
  const std::string& run = call.arguments.Operand(0);
  Interrupts interrupts;
  Result<std::unique_ptr<Lab>> lab = OpenLabToLook(call);
  if (!lab) return FailWith(call, lab.error(), ExitCode::kLabFailed);
  const bool json = call.arguments.Flag("json");
  // Here the events are the data.
  const ProgressKind kind =
      json ? ProgressKind::kJson
           : ChooseProgress(call.arguments.Text("progress").value_or("auto"), call.terminal);
  const std::unique_ptr<ProgressView> view =
      MakeProgressView(kind, json ? STDOUT_FILENO : STDERR_FILENO, call.terminal,
                       "Ctrl-C ends the watching; the run goes on");
  const FollowResult followed = Follow((*lab)->client(), {.run_id = run}, *view, interrupts);
  if (followed.error) FailWith(call, *followed.error);
  switch (followed.end) {
    case FollowEnd::kRunEnded:
      return ExitCodeOfRun(followed.summary);
    case FollowEnd::kInterrupted:
    case FollowEnd::kNotCleanedUp:
      return static_cast<ExitCode>(interrupts.exit_code());
    case FollowEnd::kTimedOut:
    case FollowEnd::kConnectionLost:
      return ExitCode::kWaitTimedOut;
    case FollowEnd::kFailed:
      break;
  }
  return ExitCodeOf(*followed.error);
}

}  // namespace

const Verb& WatchVerb() {
  static const Verb verb = {
      .name = "watch",
      .group = "look",
      .summary = "the progress of a run until it ends",
      .details = "The exit code is the run's. Ctrl-C ends the watching only.",
      .operands = {{"RUN"}},
      .options = WithLabOptions(
          {ProgressOption(), {.name = "json", .help = "NDJSON of all events on standard output"}}),
      .run = Watch};
  return verb;
}

}  // namespace labrack::cli
