#include "agent/worker/trial_control.h"

#include <utility>

namespace labrack::worker {

void TrialControl::BeginPhase(v1::PhaseKind phase, std::string step, TimePoint begin) {
  {
    const std::lock_guard lock(mutex_);
    view_.phase = phase;
    view_.step = std::move(step);
    view_.begin = begin;
  }
  changed_();
}

void TrialControl::SetDeadline(std::optional<TimePoint> deadline) {
  const std::lock_guard lock(mutex_);
  view_.deadline = deadline;
  if (!view_.timed_out || view_.stop_reason) return;
  view_.timed_out = false;
  cancels_.emplace_back();
}

const runtime::CancelToken& TrialControl::cancel() const {
  const std::lock_guard lock(mutex_);
  return cancels_.back();
}

void TrialControl::BeginTearDown() {
  {
    const std::lock_guard lock(mutex_);
    view_.tearing_down = true;
    view_.deadline.reset();  // it was the last phase's
  }
  if (tear_down_) tear_down_();
}

Result<TimePoint> TrialControl::WaitForGo(std::uint32_t gate_index) {
  std::unique_lock lock(mutex_);
  go_.reset();
  view_.gate = gate_index;
  lock.unlock();
  changed_();
  lock.lock();
  released_.wait(lock, [this] { return go_.has_value() || cancels_.back().cancelled(); });
  view_.gate.reset();
  if (!go_) return Fail(Errc::kCancelled, "stopped while waiting for the other hosts");
  return *go_;
}

void TrialControl::Stop(std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!view_.stop_reason) view_.stop_reason = std::move(reason);
    if (!view_.tearing_down) cancels_.back().Cancel();
  }
  released_.notify_all();
  changed_();
}

bool TrialControl::Go(std::uint32_t gate_index, TimePoint start) {
  {
    const std::lock_guard lock(mutex_);
    if (view_.gate != gate_index || go_) return false;
    go_ = start;
  }
  released_.notify_all();
  return true;
}

void TrialControl::CheckDeadline() {
  {
    const std::lock_guard lock(mutex_);
    if (!view_.deadline || clock_.Now() < *view_.deadline || view_.timed_out) return;
    if (view_.tearing_down || cancels_.back().cancelled()) return;
    view_.timed_out = true;
    cancels_.back().Cancel();
  }
  released_.notify_all();
  changed_();
}

TrialControl::View TrialControl::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

}  // namespace labrack::worker
