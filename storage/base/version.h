// Which labrack this is. A library of its own (labrack::version), since its object changes with
// every commit.
#pragma once

#include <string_view>

namespace labrack {

std::string_view Version();  // "0.1.0"
// The commit that was built, with "-dirty" when files had been changed; "unknown" outside of git.
std::string_view GitCommit();

}  // namespace labrack
