#include "controller/api/planning.h"

#include <expected>
#include <utility>

#include "controller/plan/playbook_loader.h"

namespace labrack::api {
namespace {

void AddProblems(const config::Problems& problems, v1::PlanReply& reply) {
  reply.set_problem_count(static_cast<std::uint32_t>(problems.total()));
  for (const config::Problem& problem : problems.list()) {
    v1::SourceProblem* message = reply.add_problems();
    message->set_code(problem.code);
    message->set_message(problem.message);
    message->set_file(problem.file);
    message->set_line(static_cast<std::uint32_t>(problem.span.begin.line));
    message->set_column(static_cast<std::uint32_t>(problem.span.begin.column));
    message->set_end_line(static_cast<std::uint32_t>(problem.span.end.line));
    message->set_end_column(static_cast<std::uint32_t>(problem.span.end.column));
    message->set_label(problem.label);
    for (const std::string& note : problem.notes) message->add_notes(note);
    for (const std::string& help : problem.helps) message->add_helps(help);
  }
}

}  // namespace

v1::PlanReply PlanFor(const v1::PlaybookSource& source, std::uint64_t seed,
                      const plan::FleetView& fleet) {
  v1::PlanReply reply;
  std::expected<plan::LoadedPlaybook, config::Problems> playbook = plan::LoadPlaybook(source);
  if (!playbook) {
    AddProblems(playbook.error(), reply);
    return reply;
  }
  std::expected<v1::Plan, plan::PlanRefusal> plan = plan::MakePlan(*playbook, fleet, Seed{seed});
  if (!plan) {
    AddProblems(plan.error().problems, reply);
    reply.set_safety_refusal(plan.error().safety);
    reply.set_fleet_refusal(!plan.error().safety);
    return reply;
  }
  *reply.mutable_plan() = *std::move(plan);
  return reply;
}

}  // namespace labrack::api
