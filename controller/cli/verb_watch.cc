// labrack watch: the progress of a run that somebody else started.
#include <unistd.h>

#include "controller/cli/following.h"

namespace labrack::cli {
namespace {

ExitCode Watch(const Call& call) {
  // Here the events are the data.
  if (call.arguments.Flag("json")) call.voice.Become({.json = true, .descriptor = STDOUT_FILENO});
  return LookOn(call,
                {.hint = "Ctrl-C ends the watching; the run goes on",
                 .judge = [](Records&, const v1::RunSummary& run) { return ExitCodeOfRun(run); }});
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
          {ProgressOption(),
           {.name = "json", .help = "the NDJSON of --progress=json on standard output"}}),
      .run = Watch};
  return verb;
}

}  // namespace labrack::cli
