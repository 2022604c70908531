// Where the parts of a stack are put, whatever its kind, and until when it may be built.
#pragma once

#include <filesystem>
#include <string>

#include "agent/stack/disks.h"
#include "agent/stack/stack.h"
#include "agent/stack/undo_log.h"

namespace labrack::stack {

// Makes the directory, or takes an empty one that is there, and gives its real path. Its parents
// stay. kAlreadyExists when it is not empty.
Result<std::filesystem::path> MakeTrialDirectory(const std::filesystem::path& path, UndoLog& undo);

// What is behind the disks: "ext4 on /dev/vda1 (QEMU HARDDISK, serial X)", "memory".
Result<std::string> DescribeBacking(const BuildRequest& request);

// From now on.
BuildLimit LimitOf(const BuildRequest& request);

}  // namespace labrack::stack
