// Who this agent is: its state directory, which it holds alone, and the names of machine and boot.
#pragma once

#include <filesystem>
#include <string>

#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::session {

// Makes the directory and locks `agent.lock` in it. kBusy: another agent has it.
Result<Descriptor> LockStateDirectory(const std::filesystem::path& state);
// A new random id, as a UUID of version 4.
Result<std::string> MakeAgentId();
std::string BootId();     // empty where the host does not say
std::string MachineId();  // likewise

}  // namespace labrack::session
