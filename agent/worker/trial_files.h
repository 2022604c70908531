// What is in a trial's directory, and the lock that says whether its worker lives.
//
//   <state>/trials/<assignment with / replaced by _>.<epoch>/
//     spec.json     what to do (v1::WorkerSpec)
//     worker.lock   locked by the worker as long as it lives; the agent hands its lock over at
//                   the start, so that no living worker ever looks dead
//     worker.pid    number of the worker's process, which leads a session of its own
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

#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::worker {

// "run-1_0_st-01.1099511627777": a file name whatever the assignment's id holds.
std::string TrialName(std::string_view assignment_id, std::uint64_t epoch);
constexpr std::size_t kAssignmentIdMax = 200;  // so that the name above is one

// How a worker ends that has no other way to say it.
constexpr int kExitNoResult = 5;  // in its last line of worker.log it says why
constexpr int kExitNoSpace = 6;   // likewise, and the log may have had no room either

class TrialFiles {
 public:
  explicit TrialFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path spec() const { return directory_ / "spec.json"; }
  std::filesystem::path lock() const { return directory_ / "worker.lock"; }
  std::filesystem::path pid() const { return directory_ / "worker.pid"; }
  std::filesystem::path spool() const { return directory_ / "spool"; }
  std::filesystem::path undo_log() const { return directory_ / "undo.log"; }
  std::filesystem::path worker_log() const { return directory_ / "worker.log"; }

  // Takes the worker's lock; it is held until the descriptor and all its copies in other processes
  // are closed. kBusy: a worker lives.
  Result<Descriptor> Lock() const;
  // The number in worker.pid; nullopt when there is none.
  std::optional<int> ReadPid() const;
  Result<void> WritePid(int pid) const;

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
