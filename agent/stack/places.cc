#include "agent/stack/places.h"

#include <errno.h>
#include <sys/stat.h>

#include "agent/stack/backing.h"
#include "storage/base/clock.h"

namespace labrack::stack {

Result<std::filesystem::path> MakeTrialDirectory(const std::filesystem::path& path, UndoLog& undo) {
  std::error_code code;
  std::filesystem::create_directories(path.parent_path(), code);
  if (code)
    return std::unexpected(Error::FromErrno(code.value(), "mkdir", path.parent_path().string()));
  if (Result<void> added = undo.Add({UndoKind::kRemoveEmptyDirectory, path.string(), ""}); !added) {
    return std::unexpected(added.error());
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FailErrno("mkdir", path.string());
  if (!std::filesystem::is_empty(path, code) || code) {
    return Fail(Errc::kAlreadyExists, path.string(), "should be an empty directory of this trial");
  }
  std::filesystem::path real = std::filesystem::canonical(path, code);
  if (code) return std::unexpected(Error::FromErrno(code.value(), "resolve", path.string()));
  return real;
}

Result<std::string> DescribeBacking(const BuildRequest& request) {
  if (!request.disks.model().empty()) return "model " + request.disks.model();
  if (request.disks.kind() == v1::DISK_KIND_RAM) {
    return std::string(request.stack.has_volume() ? "memory" : "memory (tmpfs)");
  }
  const Result<Backing> backing = FindBacking(request.disks_dir);
  if (!backing) return std::unexpected(backing.error());
  return backing->Describe();
}

BuildLimit LimitOf(const BuildRequest& request) {
  return {.until = MonotonicClock().Now() + request.timeout,
          .length = request.timeout,
          .cancel = request.cancel};
}

}  // namespace labrack::stack
