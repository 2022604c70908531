// labrack cancel: asks a run to stop and clean up.
#include <fmt/format.h>

#include "controller/cli/local_lab.h"
#include "controller/cli/verb.h"
#include "controller/report/lists.h"

namespace labrack::cli {
namespace {

ExitCode Cancel(const Call& call) {
  Interrupts interrupts;
  return WorkIn(call, OpenLabToCancel(call, interrupts), interrupts, [&](Lab& lab) {
    const std::string& run = call.arguments.Operand(0);
    const Result<v1::CancelReply> reply = lab.client().Cancel(
        run, call.arguments.Text("reason").value_or("cancelled by `labrack cancel`"));
    if (!reply) return FailWith(call, reply.error());
    call.voice.Say(fmt::format("{}: {}", run, report::FormatRunState(reply->state())));
    return ExitCode::kPassed;
  });
}

}  // namespace

const Verb& CancelVerb() {
  static const Verb verb = {.name = "cancel",
                            .group = "do",
                            .summary = "stop a run; its trials are torn down, results are kept",
                            .details = "Returns at once; `labrack wait RUN` waits for the end.",
                            .operands = {{"RUN"}},
                            .options = WithLabOptions({{.name = "reason",
                                                        .kind = ValueKind::kText,
                                                        .value = "TEXT",
                                                        .help = "kept with the run"}}),
                            .run = Cancel};
  return verb;
}

}  // namespace labrack::cli
