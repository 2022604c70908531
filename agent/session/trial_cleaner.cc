#include "agent/session/trial_cleaner.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace labrack::session {
namespace {

constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(100);

// An empty log has nothing left to undo.
bool HasSteps(const worker::TrialFiles& files) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(files.undo_log(), error);
  if (error) return error != std::errc::no_such_file_or_directory;
  return size > 0;
}

}  // namespace

void TrialCleaner::Begin(TimePoint now, Processes processes) {
  if (stage_ != Stage::kIdle) return;
  processes_ = processes;
  stage_ = Stage::kKilling;
  stage_limit_ = now + kUnkillableAfter;
  Step(now);
}

void TrialCleaner::Step(TimePoint now) {
  if (stage_ == Stage::kWaiting && now >= next_step_) {
    stage_ = Stage::kKilling;
    stage_limit_ = now + kUnkillableAfter;
  }
  if (stage_ == Stage::kKilling) Kill(now);
  if (stage_ == Stage::kUndoing) StepUndo(now);
}

void TrialCleaner::Kill(TimePoint now) {
  // A worker that lives after all, one that undoes already, or a lock that cannot be looked at.
  const Result<WorkerProcess::Holder> holder = WorkerProcess::FindHolder(files_);
  if (!holder || *holder != WorkerProcess::Holder::kNobody) {
    Failed(holder ? files_.directory().string() + " is in use by another labrack-worker"
                  : holder.error().ToString(),
           now);
    return;
  }
  std::vector<exec::ProcessFacts> left;
  if (processes_ == Processes::kMaybe) left = KillTrial(files_);
  if (left.empty()) {
    StartUndo(now);
  } else if (now >= stage_limit_) {
    Failed("cannot be killed, hangs in the kernel: " + exec::NamesOf(left), now);
  } else {
    next_step_ = now + kLookInterval;
  }
}

void TrialCleaner::StartUndo(TimePoint now) {
  if (!HasSteps(files_)) {
    BecomeClean();
    return;
  }
  Result<WorkerProcess> started = WorkerProcess::StartUndo(worker_program_, files_);
  if (!started) {
    Failed(started.error().ToString(), now);
    return;
  }
  process_ = *std::move(started);
  undo_killed_ = false;
  stage_ = Stage::kUndoing;
  stage_limit_ = now + limit_ + kUndoGrace;
}

void TrialCleaner::StepUndo(TimePoint now) {
  next_step_ = now + kLookInterval;
  const std::optional<WorkerProcess::End> ended = process_->Poll();
  if (ended) {
    process_.reset();
    if (ended->exit_code == 0 && !HasSteps(files_)) {
      BecomeClean();
    } else {
      const std::string words = ended->exit_code > 0 ? LastWords(files_) : "";
      Failed(words.empty() ? fmt::format("labrack-worker --undo: {}; see {}", ended->how,
                                         files_.worker_log().string())
                           : words,
             now);
    }
    return;
  }
  if (now < stage_limit_) return;
  process_->Kill();
  if (!std::exchange(undo_killed_, true)) {
    stage_limit_ = now + kUnkillableAfter;
    return;
  }
  // It is still waited for: nobody else can undo while it holds the lock.
  attempts_ = std::max(attempts_, kCleanAttemptsMax);
  left_ = process_->Name() + " --undo hangs in the kernel and cannot be killed";
  stage_limit_ = now + kDirtyRetry;
}

void TrialCleaner::Failed(std::string left, TimePoint now) {
  if (left != left_) spdlog::warn("{}: not clean: {}", files_.directory().string(), left);
  left_ = std::move(left);
  processes_ = Processes::kMaybe;
  ++attempts_;
  stage_ = Stage::kWaiting;
  next_step_ = now + (attempts_ < kCleanAttemptsMax ? kCleanRetry : kDirtyRetry);
}

void TrialCleaner::BecomeClean() {
  if (!left_.empty()) spdlog::info("{}: clean again", files_.directory().string());
  stage_ = Stage::kClean;
  left_.clear();
  next_step_ = TimePoint::max();
  RemoveCgroup(files_);
}

}  // namespace labrack::session
