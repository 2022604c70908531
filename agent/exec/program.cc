#include "agent/exec/program.h"

#include <string>
#include <unistd.h>

namespace labrack::exec {
namespace {

bool IsProgram(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::filesystem::path> FindProgram(std::string_view name) {
  if (name.empty()) return Fail(Errc::kInvalidArgument, "the name of a program is empty");
  if (name.find('\0') != std::string_view::npos) {
    return Fail(Errc::kInvalidArgument, "the name of a program holds a zero byte");
  }
  if (name.find('/') != std::string_view::npos) {
    const std::filesystem::path path(name);
    if (!path.is_absolute()) {
      return Fail(Errc::kInvalidArgument, std::string(name),
                  "a program is given by its name or by an absolute path");
    }
    if (!IsProgram(path)) {
      return Fail(Errc::kNotFound, path.string(), "there is no executable file of this name");
    }
    return path;
  }
  std::string_view rest = kPath;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    std::filesystem::path path = std::filesystem::path(rest.substr(0, end)) / name;
    if (IsProgram(path)) return path;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Fail(Errc::kNotFound, std::string(name),
              "not installed (looked in " + std::string(kPath) + ")");
}

}  // namespace labrack::exec
