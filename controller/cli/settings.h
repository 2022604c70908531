// The client's configuration files: flat mappings of option names to values, such as
//
//   controller: lab.example:7480
//   progress: plain
//
// The project's file beats the user's, the user's beats the system's; a key counts from the first
// file that has it. Only options declared with Sources::kAll may stand there.
#pragma once

#include <string>
#include <vector>

#include "controller/cli/options.h"
#include "storage/base/config/tree.h"

namespace labrack::cli {

// The files in order of precedence: ./.labrack.yaml, $XDG_CONFIG_HOME/labrack/config.yaml (or
// ~/.config/...), /etc/labrack/client.yaml. Files that do not exist are left out.
std::vector<std::string> SettingFiles(const Environment& environment);

// Reads one file into `settings`, not replacing what is there. Unknown keys, values that do not fit
// and all that YAML could misread are problems; `document` keeps the text for the excerpts.
bool ReadSettings(const std::string& file, const std::vector<Option>& declared,
                  config::Document& document, SettingMap& settings, config::Problems& problems);

}  // namespace labrack::cli
