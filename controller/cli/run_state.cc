#include "controller/cli/run_state.h"

#include <algorithm>
#include <cctype>

namespace labrack::cli {
void LatencyHistory::Add(TimePoint now, std::int64_t p99_ns) {
  const std::int64_t slot = now.time_since_epoch() / kSlotLength;
  std::int64_t& worst = worst_[slot];
  worst = std::max(worst, p99_ns);
  worst_.erase(worst_.begin(),
               worst_.lower_bound(slot - static_cast<std::int64_t>(kSlotCount) + 1));
}

std::array<std::int64_t, LatencyHistory::kSlotCount> LatencyHistory::Slots(TimePoint now) const {
  std::array<std::int64_t, kSlotCount> slots = {};
  const std::int64_t newest = now.time_since_epoch() / kSlotLength;
  for (const auto& [slot, worst] : worst_) {
    const std::int64_t index = static_cast<std::int64_t>(kSlotCount) - 1 - (newest - slot);
    if (index >= 0 && index < static_cast<std::int64_t>(kSlotCount)) {
      slots[static_cast<std::size_t>(index)] = worst;
    }
  }
  return slots;
}

bool HasSample(const v1::AssignmentProgress& progress) {
  const v1::PhaseKind phase = progress.phase();
  const bool works =
      phase == v1::PHASE_WARM_UP || phase == v1::PHASE_MEASURE || phase == v1::PHASE_DRAIN;
  return works && progress.p99_ns() > 0;
}

void RunState::Apply(const v1::RunEvent& event, TimePoint now) {
  if (event.has_summary()) summary_ = event.summary();
  for (const v1::HostProgress& host : event.hosts()) {
    HostState& state = hosts_[host.agent_id()];
    state.last = host;
    state.seen = now;
    // An event may repeat what a silent host said last; only fresh samples make the curve.
    if (state.has_sample() && Nanoseconds(host.age_ns()) < kStaleAfter) {
      state.p99.Add(now, host.progress().p99_ns());
    }
  }
  for (const v1::TrialSummary& trial : event.trials()) {
    if (IsOldNews(trial)) continue;
    trials_[trial.index()] = trial;
    if (TrialHasEnded(trial)) last_ended_ = trial.index();
  }
}

bool RunState::IsOldNews(const v1::TrialSummary& trial) const {
  const auto known = trials_.find(trial.index());
  if (known == trials_.end()) return false;
  return known->second.state() == trial.state() ||
         (TrialHasEnded(known->second) && !TrialHasEnded(trial));
}

const v1::TrialSummary* RunState::last_ended() const {
  if (!last_ended_) return nullptr;
  return &trials_.at(*last_ended_);
}

std::optional<Nanoseconds> RunState::SkewMax() const {
  std::optional<Nanoseconds> worst;
  for (const auto& [index, trial] : trials_) {
    if (trial.state() != "valid" || trial.host_count() < 2) continue;
    worst = std::max(worst.value_or(Nanoseconds(0)), Nanoseconds(trial.start_skew_ns()));
  }
  return worst;
}

std::optional<double> RunState::OverlapMin() const {
  std::optional<double> least;
  for (const auto& [index, trial] : trials_) {
    if (trial.state() != "valid" || trial.host_count() < 2) continue;
    least = std::min(least.value_or(1.0), trial.overlap());
  }
  return least;
}

bool RunState::ended() const { return HasEnded(summary_.state()); }

bool HasEnded(v1::RunState state) {
  return state == v1::RUN_STATE_DONE || state == v1::RUN_STATE_CANCELLED ||
         state == v1::RUN_STATE_FAILED;
}

bool TrialHasEnded(const v1::TrialSummary& trial) {
  return trial.state() != "planned" && trial.state() != "running";
}

std::string PhaseWord(v1::PhaseKind phase) {
  if (phase == v1::PHASE_UNSPECIFIED) return "-";
  std::string word = v1::PhaseKind_Name(phase).substr(std::string_view("PHASE_").size());
  std::ranges::transform(word, word.begin(), [](unsigned char c) {
    return c == '_' ? ' ' : static_cast<char>(std::tolower(c));
  });
  return word;
}

}  // namespace labrack::cli
