// Which labrack this is.
#pragma once

namespace labrack::cli {

inline constexpr const char kVersion[] = LABRACK_VERSION;

}  // namespace labrack::cli
