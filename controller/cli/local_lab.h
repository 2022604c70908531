// What run, plan, cancel, host and disk share: a playbook read and checked before anything is
// started, and the lab on this machine, to run it in or to ask.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "controller/cli/interrupts.h"
#include "controller/cli/lab.h"
#include "controller/cli/verb.h"
#include "labrack/v1/control.pb.h"
#include "labrack/v1/playbook.pb.h"

namespace labrack::cli {

struct CheckedPlaybook {
  v1::PlaybookSource source;
  v1::Playbook playbook;
};

// Reads the playbook that the first operand names, with --set and --trials. When it has problems
// they are printed, and the exit code is returned: nothing has been started then.
std::optional<ExitCode> CheckPlaybook(const Call& call, CheckedPlaybook& checked);

// Says the problems of a refused plan; the exit code says whose fault it is.
std::optional<ExitCode> CheckPlan(const Call& call, const v1::PlanReply& reply,
                                  const CheckedPlaybook& checked);

// What to do where another labrack has an open lab.
enum class WhenOpen { kRefuse, kConnect };

// --agents, or as many as the playbook needs at least. `playbook` may be null: one.
AgentsOptions AgentsFor(const Call& call, const v1::Playbook* playbook);

// The controller that --controller names; else a lab on this machine, once those of others that
// start or are private have ended. Errors: kBusy when another lab stays; kCancelled when a signal
// came meanwhile. A lab that was opened has been closed then.
//
// To run a playbook: with its agents online, announced. Unfinished runs of a lab that was killed
// are cancelled, saying so.
Result<std::unique_ptr<Lab>> OpenLabToRun(const Call& call, const v1::Playbook* playbook,
                                          const Interrupts& interrupts);
// To ask the agents: with them online, private, and unfinished runs are left alone. `playbook` may
// be null.
Result<std::unique_ptr<Lab>> OpenLabToAsk(const Call& call, const v1::Playbook* playbook,
                                          WhenOpen when_open, const Interrupts& interrupts);
// To cancel a run: another labrack's open lab, else private and without agents.
Result<std::unique_ptr<Lab>> OpenLabToCancel(const Call& call, const Interrupts& interrupts);

// Works in the lab, if it could be opened, and closes it; says what may be left.
ExitCode WorkIn(const Call& call, Result<std::unique_ptr<Lab>> lab, const Interrupts& interrupts,
                const std::function<ExitCode(Lab&)>& work);

}  // namespace labrack::cli
