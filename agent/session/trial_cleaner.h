// TrialCleaner: the host as it was, once the worker of a trial has ended, however it ended.
//
//   Begin --> what it left running is killed --> labrack-worker --undo --> clean
//                        |                               |
//                        +--- something stays -----------+--> again in a second; after three
//                                                             attempts in 15 s, until it is clean
//
// The undo log is kept while a step of it is left. Lives on the agent's loop; nothing here waits.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "agent/session/worker_process.h"
#include "agent/worker/trial_files.h"
#include "storage/base/clock.h"

namespace labrack::session {

// Killed this long ago and still there: it hangs in the kernel.
constexpr Nanoseconds kUnkillableAfter = std::chrono::seconds(60);
constexpr Nanoseconds kUndoGrace = std::chrono::minutes(1);
// Then what is left is left for now, and said.
constexpr int kCleanAttemptsMax = 3;
constexpr Nanoseconds kCleanRetry = std::chrono::seconds(1);
constexpr Nanoseconds kDirtyRetry = std::chrono::seconds(15);

class TrialCleaner {
 public:
  // `limit`: how long an undo may take.
  TrialCleaner(worker::TrialFiles files, std::filesystem::path worker_program, Nanoseconds limit)
      : files_(std::move(files)), worker_program_(std::move(worker_program)), limit_(limit) {}

  // kNone: it is known that no process of the trial is left, and none is looked for at first.
  enum class Processes { kNone, kMaybe };
  void Begin(TimePoint now, Processes processes);
  void Step(TimePoint now);
  // Step must be called then at the latest.
  TimePoint next_step() const { return next_step_; }
  int poll_fd() const { return process_ ? process_->poll_fd() : -1; }

  bool clean() const { return stage_ == Stage::kClean; }
  // Begun, not clean, and tried often enough for it to be said.
  bool given_up() const { return attempts_ >= kCleanAttemptsMax && !clean(); }
  // What is left, and why; empty while nothing has failed yet.
  const std::string& left() const { return left_; }

 private:
  enum class Stage { kIdle, kKilling, kUndoing, kWaiting, kClean };

  void Kill(TimePoint now);
  void StartUndo(TimePoint now);
  void StepUndo(TimePoint now);
  void Failed(std::string left, TimePoint now);
  void BecomeClean();

  worker::TrialFiles files_;
  std::filesystem::path worker_program_;
  Nanoseconds limit_;
  Processes processes_ = Processes::kMaybe;

  Stage stage_ = Stage::kIdle;
  std::optional<WorkerProcess> process_;  // --undo
  TimePoint stage_limit_;
  bool undo_killed_ = false;
  int attempts_ = 0;
  std::string left_;
  TimePoint next_step_ = TimePoint::max();
};

}  // namespace labrack::session
