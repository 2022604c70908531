// What is in a trial's directory, and the lock that says whether its worker lives.
//
//   <state>/trials/<assignment with / replaced by _>.<epoch>/
//     spec.json     what to do (v1::WorkerSpec)
//     worker.lock   locked by the worker as long as it lives; the agent hands its lock over at
//                   the start, so that no living worker ever looks dead
//     worker.pid    who holds the lock: the worker, which leads a session of its own, or --undo
//     cgroup        where the trial's processes are, if a cgroup could be made
//     control.sock  v1::WorkerCommand in, v1::WorkerReport out
//     spool/        what the trial says (agent/worker/spool)
//     undo.log      what has to be undone (agent/stack)
//     worker.log    the worker's standard output and errors
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "storage/base/clock.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::worker {

// "run-1_0_st-01.1099511627777": a file name whatever the assignment's id holds.
std::string TrialName(std::string_view assignment_id, std::uint64_t epoch);
constexpr std::size_t kAssignmentIdMax = 200;  // so that the name above is one

// How a worker ends: with a result that is good or says what went wrong, or where it has no other
// way to say it.
constexpr int kExitOk = 0;
constexpr int kExitNotOk = 1;
constexpr int kExitNoResult = 5;  // in its last line of worker.log it says why
constexpr int kExitNoSpace = 6;   // likewise, and the log may have had no room either
// The holder of worker.lock, by its own words. The number alone says nothing once it has ended:
// somebody else may have it.
struct LockHolder {
  int pid = -1;
  std::uint64_t start_ticks = 0;  // exec::ProcessFacts
  bool undoes = false;            // --undo, and no worker
};

// How long a phase may go on after it has been cancelled. Then the worker ends itself and leaves
// the undoing to whoever finds it dead: something hangs in the kernel, or a part of ours does not
// look at its token. An agent waits a little longer than that before it sends signals.
constexpr Nanoseconds kCancelGrace = std::chrono::seconds(60);
constexpr Nanoseconds kCancelMargin = std::chrono::seconds(10);

class TrialFiles {
 public:
  explicit TrialFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path spec() const { return directory_ / "spec.json"; }
  std::filesystem::path lock() const { return directory_ / "worker.lock"; }
  std::filesystem::path pid() const { return directory_ / "worker.pid"; }
  std::filesystem::path spool() const { return directory_ / "spool"; }
  std::filesystem::path undo_log() const { return directory_ / "undo.log"; }
  std::filesystem::path cgroup() const { return directory_ / "cgroup"; }
  std::filesystem::path worker_log() const { return directory_ / "worker.log"; }

  // Takes the worker's lock; it is held until the descriptor and all its copies in other processes
  // are closed. kBusy: a worker lives.
  Result<Descriptor> Lock() const;
  // What worker.pid says; nullopt when it says nothing, or the process lives no longer.
  std::optional<LockHolder> ReadHolder() const;
  // The calling process, which has the lock.
  Result<void> WriteHolder(bool undoes) const;

  // In the environment of everything that the trial has started (exec::kTrialMark).
  std::string mark() const;

  // control.sock. Paths of sockets are short (108 bytes), those of directories are not: it is
  // reached through the directory's descriptor.
  Result<Descriptor> Listen() const;
  Result<Descriptor> Connect() const;

 private:
  std::filesystem::path directory_;
};

// The whole text of a file. kExhausted above `size_max` bytes.
Result<std::string> ReadFile(const std::filesystem::path& path, std::size_t size_max);
// Writes to a temporary file beside it and renames; with `durable` also through fsync of file and
// directory.
Result<void> WriteFile(const std::filesystem::path& path, std::string_view text, bool durable);

}  // namespace labrack::worker
