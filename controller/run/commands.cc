#include "controller/run/commands.h"

#include <charconv>
#include <cstdio>

namespace labrack::run {
namespace {

std::string Id(const char* kind, std::uint64_t epoch) {
  return std::string(kind) + "-" + std::to_string(epoch);
}

std::string OutcomeText(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_FAILED:
      return "failed";
    case v1::OUTCOME_CANCELLED:
      return "was cancelled";
    case v1::OUTCOME_CRASHED:
      return "crashed";
    case v1::OUTCOME_LOST:
      return "was lost";
    case v1::OUTCOME_NOT_STARTED:
      return "was not started";
    case v1::OUTCOME_TIMED_OUT:
      return "timed out";
    case v1::OUTCOME_REFUSED:
      return "was refused";
    default:
      return "has no outcome";
  }
}

}  // namespace

Command AssignCommand(const std::string& agent_id, const v1::AssignmentSpec& spec) {
  Command command{.agent_id = agent_id, .message = {}};
  v1::Assign* assign = command.message.mutable_assign();
  assign->set_command_id(Id("a", spec.epoch()));
  *assign->mutable_spec() = spec;
  return command;
}

Command WantCommand(const std::string& agent_id, const std::string& assignment_id,
                    std::uint64_t epoch, v1::WantKind want, const std::string& reason) {
  Command command{.agent_id = agent_id, .message = {}};
  v1::Want* message = command.message.mutable_want();
  message->set_command_id(Id(want == v1::WANT_CLOSED ? "c" : "w", epoch));
  message->set_assignment_id(assignment_id);
  message->set_epoch(epoch);
  message->set_want(want);
  message->set_reason(reason);
  return command;
}

Command EventAckCommand(const std::string& agent_id, const std::string& assignment_id,
                        std::uint64_t epoch, std::uint64_t through_seq) {
  Command command{.agent_id = agent_id, .message = {}};
  v1::EventAck* ack = command.message.mutable_event_ack();
  ack->set_assignment_id(assignment_id);
  ack->set_epoch(epoch);
  ack->set_through_seq(through_seq);
  return command;
}

Command ArmCommand(const std::string& agent_id, const catalog::AssignmentRow& row,
                   const Gate::Decision& decision, Nanoseconds uncertainty_max) {
  Command command{.agent_id = agent_id, .message = {}};
  v1::Arm* arm = command.message.mutable_arm();
  arm->set_command_id(Id("m", row.offered_epoch) + "-" + std::to_string(decision.arming));
  arm->set_assignment_id(row.id);
  arm->set_epoch(row.offered_epoch);
  arm->set_gate_index(decision.gate_index);
  arm->set_arming(decision.arming);
  arm->set_start_controller_mono_ns(decision.start.time_since_epoch().count());
  arm->set_uncertainty_max_ns(uncertainty_max.count());
  return command;
}

Command GoCommand(const std::string& agent_id, const catalog::AssignmentRow& row,
                  const Gate::Decision& decision) {
  Command command{.agent_id = agent_id, .message = {}};
  v1::Go* go = command.message.mutable_go();
  go->set_assignment_id(row.id);
  go->set_epoch(row.offered_epoch);
  go->set_gate_index(decision.gate_index);
  go->set_arming(decision.arming);
  return command;
}

CommandId ParseCommandId(std::string_view id) {
  if (id.starts_with("a-")) return {.kind = CommandKind::kAssign};
  if (id.starts_with("w-")) return {.kind = CommandKind::kStop};
  if (id.starts_with("c-")) return {.kind = CommandKind::kClose};
  if (!id.starts_with("m-")) return {};
  const std::string_view number = id.substr(id.rfind('-') + 1);
  CommandId parsed{.kind = CommandKind::kArm};
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), parsed.arming);
  return error == std::errc{} && end == number.data() + number.size() ? parsed : CommandId{};
}

std::string RefusalText(const v1::CommandAck& ack) {
  if (ack.result() == v1::COMMAND_RESULT_OK) return "";
  std::string text = ack.code();
  if (text.empty() && ack.result() == v1::COMMAND_RESULT_STALE_EPOCH) text = "STALE_EPOCH";
  if (text.empty() && ack.result() == v1::COMMAND_RESULT_UNSUPPORTED) text = "UNSUPPORTED";
  if (!ack.detail().empty()) text += (text.empty() ? "" : ": ") + ack.detail();
  return text.empty() ? "without a reason" : text;
}

std::string ResultText(const v1::AssignmentResult& result) {
  if (result.measurement().outcome() != v1::OUTCOME_OK) {
    std::string text = "the measurement " + OutcomeText(result.measurement().outcome());
    if (!result.measurement().reason().empty()) text += ": " + result.measurement().reason();
    return text;
  }
  if (result.verified() == v1::VERIFY_OUTCOME_MISMATCHED) {
    return "data read back is not the data written: " + result.verify_detail();
  }
  return "";
}

std::string SecondsText(Nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  return buffer;
}

}  // namespace labrack::run
