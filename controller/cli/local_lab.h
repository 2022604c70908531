// What run, plan, host and disk share: a playbook read and checked before anything is started, and
// the lab that it is to run in.
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

// --agents, or as many as the playbook needs at least. `playbook` may be null: one.
AgentsOptions AgentsFor(const Call& call, const v1::Playbook* playbook);

// The controller that --controller names; else the lab on this machine with its agents online.
// Errors: kCancelled when a signal came meanwhile; the lab has been closed then.
Result<std::unique_ptr<Lab>> OpenLabToWork(const Call& call, const v1::Playbook* playbook,
                                           const Interrupts& interrupts);

// Works in the lab, if it could be opened, and closes it; says what may be left.
ExitCode WorkIn(const Call& call, Result<std::unique_ptr<Lab>> lab, const Interrupts& interrupts,
                const std::function<ExitCode(Lab&)>& work);

}  // namespace labrack::cli
