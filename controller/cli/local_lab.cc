#include "controller/cli/local_lab.h"

#include <algorithm>

#include <fmt/format.h>

#include "controller/cli/playbook_file.h"
#include "controller/cli/run_state.h"
#include "controller/plan/playbook_loader.h"

namespace labrack::cli {
namespace {

// Runs of a lab that was killed would be carried on by the agents that are about to start, in the
// way of the run that is wanted now.
Result<void> CancelLeftovers(const Call& call, Lab& lab) {
  const Result<v1::ListRunsReply> runs = lab.client().ListRuns(0);
  if (!runs) return std::unexpected(runs.error());
  for (const v1::RunSummary& run : runs->runs()) {
    if (HasEnded(run.state())) continue;
    call.voice.Warn(
        fmt::format("{}: left unfinished by a lab that was killed; cancelling it", run.run_id()));
    const Result<v1::CancelReply> cancelled =
        lab.client().Cancel(run.run_id(), "the lab on this machine was killed");
    if (!cancelled) return std::unexpected(cancelled.error());
  }
  return {};
}

// The lab on this machine, once it is our turn.
Result<std::unique_ptr<Lab>> OpenHere(const std::filesystem::path& state, api::OpenRuns open_runs,
                                      WhenOpen when_open, const Interrupts& interrupts) {
  const TimePoint until = MonotonicClock().Now() + kLabTurnLimit;
  for (;;) {
    Result<std::unique_ptr<Lab>> lab = Lab::OpenAlone(state, open_runs);
    if (!lab || *lab) return lab;
    const Result<LabHolder> holder = LookAtLab(state);
    if (!holder) return std::unexpected(holder.error());
    const bool is_open = holder->state == LabState::kOpen;
    if (is_open && when_open == WhenOpen::kConnect) return Lab::Connect(holder->control_address);
    if (is_open || MonotonicClock().Now() >= until) {
      return std::unexpected(LabIsTaken(state, *holder));
    }
    if (interrupts.WaitFor(kLabTurnPoll)) return Fail(Errc::kCancelled, "interrupted");
  }
}

// Closes the lab and says what may be left. False when something may be.
bool CloseLab(const Call& call, Lab& lab) {
  const Result<void> closed = lab.Close();
  if (closed) return true;
  FailWith(call, closed.error(), ExitCode::kLabFailed);
  call.voice.Warn("something of it may be left; the next `labrack run` cleans it up");
  return false;
}

Result<std::unique_ptr<Lab>> WithAgents(const Call& call, std::unique_ptr<Lab> lab,
                                        const v1::Playbook* playbook,
                                        const Interrupts& interrupts) {
  const AgentsOptions options = AgentsFor(call, playbook);
  if (Result<void> started = lab->StartAgents(options, interrupts); !started) {
    CloseLab(call, *lab);
    return std::unexpected(started.error());
  }
  return lab;
}

}  // namespace

std::optional<ExitCode> CheckPlaybook(const Call& call, CheckedPlaybook& checked) {
  const auto trials = static_cast<std::uint32_t>(call.arguments.Integer("trials").value_or(0));
  plan::RefusedFiles refused;
  config::Problems problems;
  if (ReadPlaybook(call.arguments.Operand(0), call.arguments.All("set"), trials, checked.source,
                   refused, problems)) {
    std::expected<plan::LoadedPlaybook, config::Problems> loaded =
        plan::LoadPlaybook(checked.source, refused);
    if (loaded) {
      checked.playbook = std::move(loaded->playbook);
      return std::nullopt;
    }
    problems = loaded.error();
  }
  call.voice.Refuse(problems, checked.source.text());
  return ExitCode::kPlaybookInvalid;
}

std::optional<ExitCode> CheckPlan(const Call& call, const v1::PlanReply& reply,
                                  const CheckedPlaybook& checked) {
  if (reply.problem_count() == 0 && reply.problems_size() == 0) return std::nullopt;
  call.voice.Refuse(ProblemsOf(reply), checked.source.text());
  if (reply.safety_refusal()) return ExitCode::kRefusedBySafety;
  // The playbook is right; another fleet, or this one later, can run it.
  if (reply.fleet_refusal()) return ExitCode::kLabFailed;
  return ExitCode::kPlaybookInvalid;
}

AgentsOptions AgentsFor(const Call& call, const v1::Playbook* playbook) {
  AgentsOptions options;
  std::int64_t needed = 1;
  if (playbook != nullptr) {
    needed = std::max<std::int64_t>(1, playbook->hosts().min());
    options.labels.insert(playbook->hosts().match().begin(), playbook->hosts().match().end());
  }
  needed = std::min(needed, static_cast<std::int64_t>(kAgentsMax));
  options.count = static_cast<std::size_t>(call.arguments.Integer("agents").value_or(needed));
  options.allow_exec = call.arguments.Flag("allow-exec");
  options.directories = call.arguments.All("allow-dir");
  return options;
}

Result<std::unique_ptr<Lab>> OpenLabToRun(const Call& call, const v1::Playbook* playbook,
                                          const Interrupts& interrupts) {
  if (const std::optional<std::string> address = call.arguments.Text("controller")) {
    return Lab::Connect(*address);
  }
  const Result<std::filesystem::path> state = StateDirectory(call);
  if (!state) return std::unexpected(state.error());
  Result<std::unique_ptr<Lab>> lab =
      OpenHere(*state, api::OpenRuns::kGoOn, WhenOpen::kRefuse, interrupts);
  if (!lab) return lab;
  if (Result<void> cancelled = CancelLeftovers(call, **lab); !cancelled) {
    return std::unexpected(cancelled.error());
  }
  if (Result<void> announced = (*lab)->Announce(); !announced) {
    return std::unexpected(announced.error());
  }
  return WithAgents(call, *std::move(lab), playbook, interrupts);
}

Result<std::unique_ptr<Lab>> OpenLabToAsk(const Call& call, const v1::Playbook* playbook,
                                          WhenOpen when_open, const Interrupts& interrupts) {
  if (const std::optional<std::string> address = call.arguments.Text("controller")) {
    return Lab::Connect(*address);
  }
  const Result<std::filesystem::path> state = StateDirectory(call);
  if (!state) return std::unexpected(state.error());
  Result<std::unique_ptr<Lab>> lab =
      OpenHere(*state, api::OpenRuns::kLeaveAlone, when_open, interrupts);
  if (!lab || !(*lab)->embedded()) return lab;
  return WithAgents(call, *std::move(lab), playbook, interrupts);
}

Result<std::unique_ptr<Lab>> OpenLabToCancel(const Call& call, const Interrupts& interrupts) {
  if (const std::optional<std::string> address = call.arguments.Text("controller")) {
    return Lab::Connect(*address);
  }
  const Result<std::filesystem::path> state = StateDirectory(call);
  if (!state) return std::unexpected(state.error());
  return OpenHere(*state, api::OpenRuns::kGoOn, WhenOpen::kConnect, interrupts);
}

ExitCode WorkIn(const Call& call, Result<std::unique_ptr<Lab>> lab, const Interrupts& interrupts,
                const std::function<ExitCode(Lab&)>& work) {
  if (!lab) {
    if (interrupts.signal()) return interrupts.exit_code();
    return FailWith(call, lab.error(), ExitCode::kLabFailed);
  }
  const ExitCode code = work(**lab);
  const bool clean = CloseLab(call, **lab);
  // A verdict is worth more than what was left behind; a success that left something is none.
  return code == ExitCode::kPassed && !clean ? ExitCode::kLabFailed : code;
}

}  // namespace labrack::cli
