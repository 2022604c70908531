#include "storage/tool/commands.h"

#include <cstdio>

#include <fmt/format.h>

namespace labrack::tool {

ExitCode FailWith(const Error& error) {
  std::fputs(fmt::format("labrack-storage: {}\n", error.ToString()).c_str(), stderr);
  if (error.code() == Errc::kInvalidArgument) return ExitCode::kUsage;
  return error.code() == Errc::kRefusedBySafety ? ExitCode::kRefusedBySafety : ExitCode::kLabFailed;
}

std::string HexId(std::uint64_t id) { return fmt::format("{:016x}", id); }

std::string VolumeName(const volume::SetRecord& record, std::size_t index) {
  return fmt::format("volume {} ({})", index, volume::KindName(record.volumes[index].kind));
}

}  // namespace labrack::tool
