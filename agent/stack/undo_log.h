// UndoLog: what has to be undone to leave the host as it was, written durably before each step is
// taken. After a crash another process opens the log and runs it (labrack-worker --undo).
//
//   "xxh3 json\n" per step, appended and fdatasync'ed; a torn last line was never acted on.
//
// A step may be in the log without having been taken, or have been undone already: undoing checks
// what is there, so that it can be run any number of times. The file is locked (flock) while a
// process has it open: nobody undoes under a worker that is alive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/base/clock.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::stack {

enum class UndoKind {
  kUnmount,               // whatever is mounted at `path`
  kDetachLoop,            // loop device `name`, if `path` is its backing file
  kDestroyPool,           // ZFS pool `name`
  kRemoveFile,            // `path`
  kRemoveEmptyDirectory,  // `path`, not recursive: a mount point
  kRemoveTree,            // `path` with all that is in it on the same file system
};

struct UndoStep {
  UndoKind kind;
  std::string path;
  std::string name;

  std::string Describe() const;  // "detach /dev/loop3 from /x/disk-0"
};

// How long a step waits for users of a mount or device to go away.
constexpr Nanoseconds kUndoBusyWait = std::chrono::seconds(10);
// How long Open waits for a dying process to let go of the log.
constexpr Nanoseconds kUndoLockWait = std::chrono::seconds(2);
constexpr std::size_t kUndoStepsMax = 1000;

class UndoLog {
 public:
  using Report = std::function<void(const UndoStep& step, const Result<void>& done)>;
  // Called with the number of the step, before it is written and after it is durable. For tests
  // that crash in between.
  using Observer = std::function<void(std::size_t step, bool durable)>;

  // Opens or makes the log. kBusy while another process has it open; kCorrupt when a line before
  // the last does not read back.
  static Result<UndoLog> Open(const std::filesystem::path& path);

  // Returns once the step is durable; only then may the caller act.
  Result<void> Add(UndoStep step);

  // Undoes all steps, the last one first; `report` may be empty. A step that fails does not keep
  // later ones from running unless they would pull away what it still stands on (a mount, a loop
  // device or a pool that stays). The error names every failure; the log then stays as it is and
  // RunAll may be called again. After success the log is empty.
  Result<void> RunAll(const Report& report, Nanoseconds busy_wait = kUndoBusyWait);

  const std::vector<UndoStep>& steps() const { return steps_; }
  void set_observer(Observer observer) { observer_ = std::move(observer); }

 private:
  UndoLog(std::filesystem::path path, Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Result<void> Load();

  std::filesystem::path path_;
  Descriptor file_;
  std::vector<UndoStep> steps_;
  Observer observer_;
};

}  // namespace labrack::stack
