// The catalog's tables, as a list of steps. PRAGMA user_version counts the steps that a file has
// seen; each step runs in a transaction of its own, after a copy of the file was made. A file with
// more steps than this build knows is refused.
#pragma once

#include <filesystem>

#include "controller/catalog/sqlite.h"
#include "storage/base/result.h"

namespace labrack::catalog {

int SchemaVersion();  // of this build

// How many steps `database` (opened from `file`) has seen. Errors: kUnsupported for a file from a
// newer build.
Result<int> ReadVersion(Database& database, const std::filesystem::path& file);

// Brings `database` to the newest version, or to `target` for tests. Errors: as ReadVersion.
Result<void> Migrate(Database& database, const std::filesystem::path& file, int target);

}  // namespace labrack::catalog
