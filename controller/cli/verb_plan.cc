// labrack plan: what a run would do, to which disks, for how long. Agents of the lab on this
// machine are started to ask them what they have; they write nothing but their own state.
#include "controller/cli/local_lab.h"
#include "controller/cli/output.h"
#include "controller/cli/verb.h"
#include "controller/report/json.h"
#include "controller/report/lists.h"

namespace labrack::cli {
namespace {

ExitCode AskForPlan(const Call& call, Lab& lab, const CheckedPlaybook& checked) {
  v1::PlanRequest request;
  *request.mutable_source() = checked.source;
  request.set_seed(static_cast<std::uint64_t>(call.arguments.Integer("seed").value_or(0)));
  const Result<v1::PlanReply> reply = lab.client().Plan(request);
  if (!reply) return FailWith(call, reply.error());
  if (const std::optional<ExitCode> refused = CheckPlan(call, *reply, checked)) return *refused;
  WriteOut(call.arguments.Flag("json") ? report::FormatMessageJson("labrack.plan", reply->plan())
                                       : report::FormatPlan(reply->plan()));
  return ExitCode::kPassed;
}

ExitCode Plan(const Call& call) {
  CheckedPlaybook checked;
  if (const std::optional<ExitCode> invalid = CheckPlaybook(call, checked)) return *invalid;
  Interrupts interrupts;
  return WorkIn(call, OpenLabToAsk(call, &checked.playbook, WhenOpen::kRefuse, interrupts),
                interrupts, [&](Lab& lab) { return AskForPlan(call, lab, checked); });
}

}  // namespace

const Verb& PlanVerb() {
  static const Verb verb = {
      .name = "plan",
      .group = "do",
      .summary = "what a run would do, to which disks; touches nothing",
      .details = "",
      .operands = {{"PLAYBOOK"}},
      .options = WithLabOptions(WithAgentOptions({JsonFlag(),
                                                  {.name = "set",
                                                   .kind = ValueKind::kText,
                                                   .value = "KEY=VALUE",
                                                   .help = "as with run (repeatable)",
                                                   .repeated = true},
                                                  {.name = "trials",
                                                   .kind = ValueKind::kInteger,
                                                   .value = "N",
                                                   .help = "as with run",
                                                   .sources = Sources::kAll,
                                                   .min = 1,
                                                   .max = 1000},
                                                  {.name = "seed",
                                                   .kind = ValueKind::kInteger,
                                                   .value = "N",
                                                   .help = "as with run",
                                                   .min = 1}})),
      .run = Plan};
  return verb;
}

}  // namespace labrack::cli
