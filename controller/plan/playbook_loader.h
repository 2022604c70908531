// From a playbook's text to what the planner takes. In order:
//   read the YAML tree -> --set and --trials -> ${names} -> bind -> cross-field checks -> cells
// Syntax errors end it at once; of everything else all problems are collected, each at its place. A
// part that is wrong in itself mutes the checks that would build on it.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/plan/loaded_playbook.h"
#include "labrack/v1/control.pb.h"
#include "storage/base/config/source.h"

namespace labrack::plan {

inline constexpr std::size_t kCellsMax = 10'000;

// Job files that were not sent along though they may be there, by the path written in the playbook,
// and why.
using RefusedFiles = std::map<std::string, std::string>;

std::expected<LoadedPlaybook, config::Problems> LoadPlaybook(const v1::PlaybookSource& source,
                                                             const RefusedFiles& refused = {});

// Whether a path of a playbook leads out of the playbook's directory as it is written: absolute, or
// by `..`. Where a link leads, only the disk knows.
bool LeadsOut(const std::string& path);

// Files that the playbook names (job_file of fio), as written there and each once, so that the
// command line can send their texts along in `attachments`. Empty when the text is no playbook. The
// source's
// --set counts, since it may change names in a path.
std::vector<std::string> AttachmentPaths(const v1::PlaybookSource& source);
std::vector<std::string> AttachmentPaths(std::string_view text);

}  // namespace labrack::plan
