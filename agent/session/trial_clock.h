// TrialClock: how the controller's clock stood to ours while a trial was measured. It is taken at
// the beginning of each step, and not when the result is sent: that may be hours later, after a
// reboot (our clock begins anew), or to a controller on another machine.
//
// One pair of figures stands for all steps: the newest offset, with an uncertainty that covers what
// the earlier ones said. In a file of the trial's directory, without a sync, which would disturb
// the step: what a reboot takes with it is not known any more, and is said to be so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "agent/session/clock_sync.h"
#include "storage/base/result.h"

namespace labrack::session {

// Beyond any window: nothing can be said about instants on two hosts.
constexpr Nanoseconds kUncertaintyUnknown = std::chrono::hours(24 * 365);

class TrialClock {
 public:
  explicit TrialClock(std::filesystem::path file) : file_(std::move(file)) {}

  // What an earlier agent has taken.
  void Load();
  // At the beginning of a step; `controller_epoch` says which controller's clock it is.
  void Take(const ClockEstimate& estimate, std::uint64_t controller_epoch);
  // nullopt: none was taken.
  const std::optional<ClockEstimate>& figures() const { return figures_; }

 private:
  std::filesystem::path file_;
  std::optional<ClockEstimate> figures_;
  std::uint64_t controller_epoch_ = 0;
};

}  // namespace labrack::session
