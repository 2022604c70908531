#include "agent/session/trial_clock.h"

#include <algorithm>
#include <sstream>

#include "agent/worker/trial_files.h"

namespace labrack::session {

void TrialClock::Load() {
  constexpr std::size_t kTextMax = 256;
  const Result<std::string> text = worker::ReadFile(file_, kTextMax);
  if (!text) return;
  std::istringstream words(*text);
  Nanoseconds::rep offset = 0;
  Nanoseconds::rep uncertainty = 0;
  std::string end;
  if (!(words >> controller_epoch_ >> offset >> uncertainty >> end) || end != "ns") return;
  figures_ = {.offset = Nanoseconds(offset),
              .uncertainty = Nanoseconds(uncertainty),
              .round_trip = Nanoseconds(0)};
}

void TrialClock::Take(const ClockEstimate& estimate, std::uint64_t controller_epoch) {
  ClockEstimate now = estimate;
  if (figures_ && controller_epoch != controller_epoch_) {
    // It may be another machine's clock, which has nothing to do with the first.
    now.uncertainty = kUncertaintyUnknown;
  } else if (figures_) {
    now.uncertainty = std::max(
        now.uncertainty, std::chrono::abs(now.offset - figures_->offset) + figures_->uncertainty);
  }
  figures_ = now;
  controller_epoch_ = controller_epoch;
  const std::string text = std::to_string(controller_epoch) + " " +
                           std::to_string(now.offset.count()) + " " +
                           std::to_string(now.uncertainty.count()) + " ns\n";
  // Without it the figures end with this agent, and are not known to the next one.
  (void)worker::WriteFile(file_, text, /*durable=*/false);
}

}  // namespace labrack::session
