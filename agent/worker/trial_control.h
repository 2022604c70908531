// TrialControl: what the trial's thread and the worker's control thread know of each other. The
// trial says in which phase it is and waits at gates; the control thread stops it, times it out and
// lets it go.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "labrack/v1/result.pb.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"
#include "storage/runtime/env.h"

namespace labrack::worker {

// Thread-safe.
class TrialControl {
 public:
  // `changed` is called after every change that somebody outside may want to hear of; `tear_down`
  // on the trial's thread, before anything is taken down.
  TrialControl(const Clock& clock, std::function<void()> changed,
               std::function<void()> tear_down = {})
      : clock_(clock), changed_(std::move(changed)), tear_down_(std::move(tear_down)) {}

  // What stops the phases under one limit. It stays valid; ask again after SetDeadline.
  const runtime::CancelToken& cancel() const;

  // --- the trial's thread ---
  void BeginPhase(v1::PhaseKind phase, std::string step, TimePoint begin);
  // The phases from here on must be over by then; nullopt: no limit. That those before took too
  // long does not stop these: they have a token of their own. A Stop is for good.
  void SetDeadline(std::optional<TimePoint> deadline);
  // From here on nothing is cancelled any more.
  void BeginTearDown();
  // Stands at the gate until Go; gives the common instant. kCancelled when stopped or timed out.
  Result<TimePoint> WaitForGo(std::uint32_t gate_index);

  // --- the control thread ---
  void Stop(std::string reason);  // the first reason counts
  // False: the trial does not stand at this gate.
  bool Go(std::uint32_t gate_index, TimePoint start);
  // Cancels what has passed its deadline.
  void CheckDeadline();

  struct View {
    v1::PhaseKind phase = v1::PHASE_UNSPECIFIED;
    std::string step;
    TimePoint begin;
    std::optional<TimePoint> deadline;
    bool tearing_down = false;
    std::optional<std::uint32_t> gate;  // at which it stands
    bool timed_out = false;
    std::optional<std::string> stop_reason;
  };
  View view() const;

 private:
  const Clock& clock_;
  std::function<void()> changed_;
  std::function<void()> tear_down_;

  mutable std::mutex mutex_;                     // guards what follows
  std::deque<runtime::CancelToken> cancels_{1};  // the last one counts; tokens do not move
  std::condition_variable released_;
  View view_;
  std::optional<TimePoint> go_;
};

}  // namespace labrack::worker
