// The agent's configuration file, and what it must not say.
#pragma once

#include <string>

#include "labrack/v1/config.pb.h"
#include "storage/base/config/source.h"

namespace labrack::session {

// Reads the YAML file with its defaults. On failure `problems` holds what is wrong, and `text` the
// file's content for excerpts.
bool LoadConfig(const std::string& file, v1::AgentConfig& config, std::string& text,
                config::Problems& problems);

}  // namespace labrack::session
