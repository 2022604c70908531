// A lock between processes on a whole file: of the open file description (fcntl), so that it goes
// with the descriptor, however the process ends, and a second open in the same process is as
// foreign as another's. Unlike flock(2) it can be asked about without being taken: whoever only
// looks never stands in the way of whoever wants it.
#pragma once

#include <string>

#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack {

// True: the lock is ours now. False: somebody else has it. `file` is open for writing; `name` is
// for errors.
Result<bool> TryLockFile(const Descriptor& file, const std::string& name);
// Whether somebody else has it. Reading `file` is enough.
Result<bool> IsFileLocked(const Descriptor& file, const std::string& name);

}  // namespace labrack
