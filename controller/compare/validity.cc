#include "controller/compare/validity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

namespace labrack::compare {
namespace {

struct Finding {
  Exclusion exclusion = Exclusion::kNone;
  std::string reason;
  bool fine() const { return exclusion == Exclusion::kNone; }
};

Finding Found(Exclusion exclusion, std::string reason) { return {exclusion, std::move(reason)}; }

std::string WithReason(const std::string& what, const std::string& reason) {
  return reason.empty() ? what : what + ": " + reason;
}

Finding JudgeOutcome(const std::string& part, const v1::Verdict3& verdict) {
  switch (verdict.outcome()) {
    case v1::OUTCOME_OK:
      return {};
    case v1::OUTCOME_CANCELLED:
      return Found(Exclusion::kCancelled, WithReason(part + " was cancelled", verdict.reason()));
    case v1::OUTCOME_LOST:
      return Found(Exclusion::kLost, WithReason(part + " was lost", verdict.reason()));
    case v1::OUTCOME_REFUSED:
      return Found(Exclusion::kFailed, WithReason(part + " was refused", verdict.reason()));
    case v1::OUTCOME_CRASHED:
      return Found(Exclusion::kFailed, WithReason("the worker crashed", verdict.reason()));
    case v1::OUTCOME_TIMED_OUT:
      return Found(Exclusion::kFailed, WithReason(part + " timed out", verdict.reason()));
    case v1::OUTCOME_NOT_STARTED:
      return Found(Exclusion::kFailed, WithReason(part + " was not started", verdict.reason()));
    default:
      return Found(Exclusion::kFailed, WithReason(part + " failed", verdict.reason()));
  }
}

bool Measured(const v1::AssignmentResult& result, const std::string& step) {
  return std::ranges::any_of(result.phases(), [&](const v1::PhaseRecord& phase) {
    return phase.phase() == v1::PHASE_MEASURE && phase.step() == step &&
           phase.end() == v1::PHASE_END_DONE;
  });
}

// A step that did nothing is an error, never a zero (warp#358).
Finding JudgePrimary(const v1::StepResult& step) {
  switch (step.primary()) {
    case v1::PRIMARY_METRIC_BYTES_PER_SECOND:
      if (TotalWork(step, Work::kBytes) > 0) return {};
      return Found(Exclusion::kInvalid, "step " + step.step() + " moved no bytes");
    case v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND:
      if (TotalWork(step, Work::kOperations) > 0) return {};
      return Found(Exclusion::kInvalid, "step " + step.step() + " did no operation");
    case v1::PRIMARY_METRIC_SECONDS:
      return {};
    case v1::PRIMARY_METRIC_FIGURE:
      if (step.figures().empty()) {
        return Found(Exclusion::kInvalid, "step " + step.step() + " gave no figure");
      }
      return {};
    default:
      return Found(Exclusion::kInvalid, "step " + step.step() + " names no primary metric");
  }
}

Finding JudgeStep(const v1::AssignmentResult& result, const v1::StepResult& step) {
  for (const v1::OperationResult& operation : step.operations()) {
    if (operation.error_count() == 0) continue;
    return Found(
        Exclusion::kFailed,
        WithReason(fmt::format("{} of {} `{}` operations of step {} failed",
                               operation.error_count(), operation.count() + operation.error_count(),
                               operation.operation(), step.step()),
                   operation.first_error()));
  }
  if (step.exit_code() != 0) {
    return Found(Exclusion::kFailed,
                 fmt::format("step {} ended with exit code {}", step.step(), step.exit_code()));
  }
  if (!Measured(result, step.step())) {
    return Found(Exclusion::kInvalid, "step " + step.step() + " has no finished measure phase");
  }
  if (step.measure_end_mono_ns() <= step.measure_begin_mono_ns()) {
    return Found(Exclusion::kInvalid, "step " + step.step() + " has an empty measured window");
  }
  for (const v1::Figure& figure : step.figures()) {
    if (std::isfinite(figure.value())) continue;
    return Found(Exclusion::kInvalid,
                 "figure " + figure.name() + " of step " + step.step() + " is not a number");
  }
  if (Result<void> sums = SelfCheck(step); !sums) {
    return Found(Exclusion::kInvalid, sums.error().subject() + ": " + sums.error().note());
  }
  return JudgePrimary(step);
}

Finding JudgeResult(const v1::AssignmentResult& result) {
  // A mismatch is told before anything else: it is the gravest thing that a storage test can find.
  if (result.verified() == v1::VERIFY_OUTCOME_MISMATCHED) {
    return Found(Exclusion::kMismatch,
                 WithReason("data read back is not the data written", result.verify_detail()));
  }
  if (Finding found = JudgeOutcome("the measurement", result.measurement()); !found.fine()) {
    return found;
  }
  if (result.environment_verdict().outcome() != v1::OUTCOME_UNSPECIFIED) {
    Finding found = JudgeOutcome("the environment check", result.environment_verdict());
    if (!found.fine()) return found;
  }
  if (result.verified() == v1::VERIFY_OUTCOME_UNSPECIFIED) {
    return Found(Exclusion::kInvalid, "the verify phase was not reached");
  }
  if (result.steps().empty()) return Found(Exclusion::kInvalid, "no step was measured");
  for (const v1::StepResult& step : result.steps()) {
    if (Finding found = JudgeStep(result, step); !found.fine()) return found;
  }
  return {};
}

Finding JudgeAssignment(const v1::AssignmentRecord& assignment) {
  if (assignment.late()) {
    return Found(Exclusion::kLost, "the result came after the trial had been given up");
  }
  if (assignment.has_result()) return JudgeResult(assignment.result());
  if (assignment.state() == "cancelled") {
    return Found(Exclusion::kCancelled, WithReason("cancelled", assignment.reason()));
  }
  if (assignment.state() == "refused") {
    return Found(Exclusion::kFailed, WithReason("the agent refused", assignment.reason()));
  }
  return Found(Exclusion::kLost, WithReason("there is no result", assignment.reason()));
}

using ByAgent = std::map<std::string, const v1::AssignmentRecord*>;

// An assignment may have been handed out again under a newer token; that one counts.
ByAgent NewestByAgent(const v1::TrialRecord& trial) {
  ByAgent newest;
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    const v1::AssignmentRecord*& known = newest[assignment.agent_id()];
    if (known == nullptr || assignment.epoch() > known->epoch()) known = &assignment;
  }
  return newest;
}

const v1::AssignmentRecord* Find(const ByAgent& assignments, const std::string& agent) {
  const auto found = assignments.find(agent);
  return found == assignments.end() ? nullptr : found->second;
}

std::vector<std::string> AgentsOf(const v1::PlannedCell& cell, const v1::TrialRecord& trial) {
  if (!cell.agent_ids().empty()) return {cell.agent_ids().begin(), cell.agent_ids().end()};
  std::set<std::string> agents;
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    agents.insert(assignment.agent_id());
  }
  return {agents.begin(), agents.end()};
}

Finding JudgeSummary(const v1::TrialSummary& summary) {
  if (summary.state() == "planned" || summary.state() == "running") {
    return Found(Exclusion::kPending, "not ended");
  }
  if (summary.state() == "lost") return Found(Exclusion::kLost, summary.reason());
  if (summary.state() == "cancelled") return Found(Exclusion::kCancelled, summary.reason());
  return {};
}

// How much an exclusion tells: when one host is lost, the others are cancelled for its sake.
int Weight(Exclusion exclusion) {
  switch (exclusion) {
    case Exclusion::kNone:
      return 0;
    case Exclusion::kPending:
      return 1;
    case Exclusion::kCancelled:
      return 2;
    case Exclusion::kInvalid:
      return 3;
    case Exclusion::kFailed:
      return 4;
    case Exclusion::kLost:
      return 5;
    case Exclusion::kMismatch:
      return 6;
  }
  return 0;
}

// The gravest finding of any host.
Finding JudgeHosts(const v1::TrialRecord& trial, const std::vector<std::string>& agents) {
  const ByAgent assignments = NewestByAgent(trial);
  Finding gravest;
  for (const std::string& agent : agents) {
    const v1::AssignmentRecord* assignment = Find(assignments, agent);
    Finding found = assignment == nullptr ? Found(Exclusion::kLost, "there is no result")
                                          : JudgeAssignment(*assignment);
    if (Weight(found.exclusion) <= Weight(gravest.exclusion)) continue;
    const bool named = assignment != nullptr && !assignment->host_name().empty();
    found.reason = (named ? assignment->host_name() : agent) + ": " + found.reason;
    gravest = std::move(found);
  }
  return gravest;
}

// All hosts did the same steps, together; fills in timing.
Finding JudgeTogether(const v1::TrialRecord& trial, const std::vector<std::string>& agents,
                      TrialAssessment& assessment) {
  const std::set<std::string> wanted(agents.begin(), agents.end());
  for (const auto& [step, all] : StepsOfTrial(trial)) {
    std::vector<HostStep> hosts;
    for (const HostStep& host : all) {
      if (wanted.contains(host.agent_id)) hosts.push_back(host);
    }
    if (hosts.empty()) continue;  // only of agents that the cell does not know
    if (hosts.size() != agents.size()) {
      return Found(Exclusion::kInvalid, fmt::format("step {} was measured by {} of {} hosts", step,
                                                    hosts.size(), agents.size()));
    }
    Result<FleetTiming> timing = TimeFleet(hosts);
    if (!timing) {
      const Error& error = timing.error();
      return Found(Exclusion::kInvalid,
                   fmt::format("step {}: {}{}{}", step, error.subject(),
                               error.subject().empty() ? "" : ": ", error.note()));
    }
    assessment.start_skew_max_ns =
        std::max(assessment.start_skew_max_ns, timing->start_skew_max_ns);
    assessment.start_spread_ns = std::max(assessment.start_spread_ns, timing->start_spread_ns);
    if (timing->overlap < 0) continue;
    assessment.overlap =
        assessment.overlap < 0 ? timing->overlap : std::min(assessment.overlap, timing->overlap);
  }
  return {};
}

const v1::PhaseRecord* PhaseOf(const v1::AssignmentResult& result, v1::PhaseKind kind,
                               const std::string& step) {
  for (const v1::PhaseRecord& phase : result.phases()) {
    if (phase.phase() == kind && phase.step() == step) return &phase;
  }
  return nullptr;
}

// When the clients really started. Phases begin at their planned instants, and the measured window
// when the first client woke, so a client that woke late shows as the distance between the two. A
// step without intervals is an external command, which started with its phase and may have measured
// only later (fio lays out its files first).
std::int64_t StartOf(const v1::AssignmentResult& result, const v1::StepResult& step) {
  const std::int64_t measured = step.measure_begin_mono_ns();
  const v1::PhaseRecord* measure = PhaseOf(result, v1::PHASE_MEASURE, step.step());
  if (measure == nullptr) return measured;
  if (step.intervals().empty()) return measure->begin_mono_ns();
  const v1::PhaseRecord* warm_up = PhaseOf(result, v1::PHASE_WARM_UP, step.step());
  if (warm_up == nullptr) return measured;
  return warm_up->begin_mono_ns() + (measured - measure->begin_mono_ns());
}

// Virtual time is the same on all hosts, and begins with the trial: no clock maps it.
HostStep HostStepOf(const v1::AssignmentRecord& assignment, const v1::StepResult& step) {
  const v1::AssignmentResult& result = assignment.result();
  HostStep host{.agent_id = assignment.agent_id(),
                .host_name = assignment.host_name(),
                .result = &step,
                .started_mono_ns = step.measure_begin_mono_ns()};
  if (result.clock() == "virtual") return host;
  host.started_mono_ns = StartOf(result, step);
  host.clock_offset_ns = result.clock_offset_ns();
  host.clock_uncertainty_ns = result.clock_uncertainty_ns();
  return host;
}

}  // namespace

std::string ExclusionName(Exclusion exclusion) {
  switch (exclusion) {
    case Exclusion::kNone:
      return "";
    case Exclusion::kPending:
      return "pending";
    case Exclusion::kFailed:
      return "failed";
    case Exclusion::kLost:
      return "lost";
    case Exclusion::kCancelled:
      return "cancelled";
    case Exclusion::kMismatch:
      return "mismatch";
    case Exclusion::kInvalid:
      return "invalid";
  }
  return "";
}

TrialAssessment AssessTrial(const v1::PlannedCell& cell, const v1::TrialRecord& trial) {
  TrialAssessment assessment;
  const std::vector<std::string> agents = AgentsOf(cell, trial);
  assessment.host_count = static_cast<std::uint32_t>(agents.size());
  Finding found = JudgeSummary(trial.summary());
  if (found.fine() && agents.empty()) found = Found(Exclusion::kLost, "no host took part");
  if (found.fine()) found = JudgeHosts(trial, agents);
  // The controller gave the trial up (a broken barrier, say) and knows why better than the hosts.
  const bool given_up = trial.summary().state() == "invalid" && !trial.summary().reason().empty();
  if (given_up && (found.fine() || found.exclusion == Exclusion::kCancelled)) {
    found = Found(Exclusion::kInvalid, trial.summary().reason());
  }
  if (found.fine()) found = JudgeTogether(trial, agents, assessment);
  assessment.exclusion = found.exclusion;
  assessment.reason = std::move(found.reason);
  return assessment;
}

std::vector<StepHosts> StepsOfTrial(const v1::TrialRecord& trial) {
  const ByAgent newest = NewestByAgent(trial);
  std::vector<StepHosts> steps;
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    if (Find(newest, assignment.agent_id()) != &assignment) continue;
    std::set<std::string> seen;
    for (const v1::StepResult& result : assignment.result().steps()) {
      if (!seen.insert(result.step()).second) continue;
      auto found = std::ranges::find(steps, result.step(), &StepHosts::step);
      if (found == steps.end()) found = steps.insert(steps.end(), {result.step(), {}});
      found->hosts.push_back(HostStepOf(assignment, result));
    }
  }
  return steps;
}

}  // namespace labrack::compare
