// The messages that the machines send, and what their answers say. A command's id names what it
// was, so that an answer can be understood without remembering the question:
//   "a-EPOCH" Assign   "w-EPOCH" Want STOP   "c-EPOCH" Want CLOSED   "m-EPOCH-ARMING" Arm
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "controller/catalog/rows.h"
#include "controller/run/effects.h"
#include "controller/run/gate.h"
#include "labrack/v1/fleet.pb.h"

namespace labrack::run {

Command AssignCommand(const std::string& agent_id, const v1::AssignmentSpec& spec);
Command WantCommand(const std::string& agent_id, const std::string& assignment_id,
                    std::uint64_t epoch, v1::WantKind want, const std::string& reason);
Command EventAckCommand(const std::string& agent_id, const std::string& assignment_id,
                        std::uint64_t epoch, std::uint64_t through_seq);
Command ArmCommand(const std::string& agent_id, const catalog::AssignmentRow& row,
                   const Gate::Decision& decision, Nanoseconds uncertainty_max);
Command GoCommand(const std::string& agent_id, const catalog::AssignmentRow& row,
                  const Gate::Decision& decision);

enum class CommandKind { kAssign, kStop, kClose, kArm, kUnknown };
struct CommandId {
  CommandKind kind = CommandKind::kUnknown;
  std::uint64_t arming = 0;  // of kArm
};
CommandId ParseCommandId(std::string_view id);

// "DISK_LOW: 1 GiB is free, 4 GiB are needed".
std::string RefusalText(const v1::CommandAck& ack);
// Why a result is not a good measurement; empty when it is one.
std::string ResultText(const v1::AssignmentResult& result);
std::string SecondsText(Nanoseconds time);  // "20 s", "0.3 s"

}  // namespace labrack::run
