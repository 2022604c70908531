// Who this agent is: its state directory, which it holds alone, and the names of machine and boot.
#pragma once

#include <filesystem>
#include <string>

#include "agent/session/journal.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::session {

// Makes the directory and locks `agent.lock` in it. kBusy: another agent has it.
Result<Descriptor> LockStateDirectory(const std::filesystem::path& state);
// A new random id, as a UUID of version 4.
Result<std::string> MakeAgentId();
// Who this agent is: the configured name, or else the id that the journal keeps, made once. What it
// is gets kept. kBusy: it holds trials as somebody else, whose results nobody but him may report.
Result<std::string> DecideAgentId(Journal& journal, const std::string& configured_name);
std::string BootId();     // empty where the host does not say
std::string MachineId();  // likewise

}  // namespace labrack::session
