#include "agent/stack/undo_steps.h"

#include <errno.h>
#include <filesystem>
#include <string.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <ftw.h>

#include "agent/exec/program.h"
#include "agent/exec/run.h"
#include "agent/stack/loop_device.h"
#include "agent/stack/mounts.h"

namespace labrack::stack {
namespace {

constexpr Nanoseconds kPoolCommandTimeout = std::chrono::seconds(60);
constexpr Nanoseconds kPoolRetryInterval = std::chrono::milliseconds(500);
constexpr int kTreeDescriptorsMax = 32;

int RemoveEntry(const char* path, const struct stat*, int, struct FTW*) { return remove(path); }

Result<void> RemoveWith(int (*call)(const char*), const std::string& path) {
  if (call(path.c_str()) == 0 || errno == ENOENT) return {};
  return FailErrno("remove", path);
}

// Does not follow links and does not leave the file system: a mount that could not be undone must
// not be emptied.
Result<void> RemoveTree(const std::string& path) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return FailErrno("stat", path);
  }
  if (S_ISLNK(status.st_mode)) return RemoveWith(unlink, path);  // and never what it points to
  // A bind mount of the same file system is not told apart by its device: the table is asked.
  const Result<std::vector<MountEntry>> mounts = ReadMounts();
  if (!mounts) return std::unexpected(mounts.error());
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error) return std::unexpected(Error::FromErrno(error.value(), "find", path));
  for (const MountEntry& entry : *mounts) {
    if (entry.mount_point == real) return Fail(Errc::kBusy, path, "is still a mount point");
    if (entry.mount_point.starts_with(real + "/")) {
      return Fail(Errc::kBusy, path,
                  "something is mounted in it, at " + entry.mount_point + "; unmount it first");
    }
  }
  if (nftw(path.c_str(), RemoveEntry, kTreeDescriptorsMax, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0) {
    if (errno == ENOENT && lstat(path.c_str(), &status) != 0) return {};
    return FailErrno("remove", path);
  }
  return {};
}

Result<exec::Outcome> Zpool(std::vector<std::string> words) {
  exec::Command command;
  command.words = std::move(words);
  command.words.insert(command.words.begin(), "zpool");
  command.timeout = kPoolCommandTimeout;
  return exec::Run(command);
}

Result<bool> PoolExists(const std::string& name) {
  const Result<exec::Outcome> outcome = Zpool({"list", "-H", "-o", "name"});
  if (!outcome) return std::unexpected(outcome.error());
  // Without its daemon or module no pool is there: ours are not in the cache file.
  for (const char* dead : {"daemon is running", "modules are not loaded", "modules cannot be"}) {
    if (outcome->errors.find(dead) != std::string::npos) return false;
  }
  if (!outcome->ok()) return Fail(Errc::kIo, name, outcome->Describe());
  return ("\n" + outcome->output + "\n").find("\n" + name + "\n") != std::string::npos;
}

Result<void> DestroyPool(const std::string& name, Nanoseconds busy_wait) {
  if (!name.starts_with(kPoolPrefix)) {
    return Fail(Errc::kRefusedBySafety, name, "is not a pool that labrack made");
  }
  const TimePoint until = MonotonicClock().Now() + busy_wait;
  while (true) {
    const Result<bool> exists = PoolExists(name);
    if (!exists) return std::unexpected(exists.error());
    if (!*exists) return {};
    const Result<exec::Outcome> outcome = Zpool({"destroy", "-f", name});
    if (!outcome) return std::unexpected(outcome.error());
    if (!outcome->ok() && MonotonicClock().Now() >= until) {
      return Fail(Errc::kBusy, name, outcome->Describe());
    }
    if (!outcome->ok()) std::this_thread::sleep_for(kPoolRetryInterval);
  }
}

}  // namespace

Result<void> Undo(const UndoStep& step, Nanoseconds busy_wait) {
  switch (step.kind) {
    case UndoKind::kUnmount:
      return Unmount(step.path, busy_wait);
    case UndoKind::kDetachLoop:
      return DetachLoop(step.name, step.path, busy_wait);
    case UndoKind::kDestroyPool:
      return DestroyPool(step.name, busy_wait);
    case UndoKind::kRemoveFile:
      return RemoveWith(unlink, step.path);
    case UndoKind::kRemoveEmptyDirectory:
      return RemoveWith(rmdir, step.path);
    case UndoKind::kRemoveTree:
      return RemoveTree(step.path);
  }
  return {};
}

bool HoldsWhatIsBelow(UndoKind kind) {
  switch (kind) {
    case UndoKind::kUnmount:
    case UndoKind::kDetachLoop:
    case UndoKind::kDestroyPool:
      return true;
    case UndoKind::kRemoveFile:
    case UndoKind::kRemoveEmptyDirectory:
    case UndoKind::kRemoveTree:
      return false;
  }
  return true;
}

}  // namespace labrack::stack
