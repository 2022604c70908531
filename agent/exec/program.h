// Where the programs of this host are.
#pragma once

#include <filesystem>
#include <string_view>

#include "storage/base/result.h"

namespace labrack::exec {

// What every process gets as PATH, and where FindProgram looks.
inline constexpr std::string_view kPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// The absolute path of an executable file. A name with a slash must be absolute and is only
// checked. kNotFound says where it was looked for.
Result<std::filesystem::path> FindProgram(std::string_view name);

}  // namespace labrack::exec
