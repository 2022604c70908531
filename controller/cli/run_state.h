// What a watcher knows about a run: the events so far, folded. Every progress view is made from
// this, so that the live, the plain and the JSON view cannot disagree. Not thread-safe.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "labrack/v1/control.pb.h"
#include "storage/base/clock.h"

namespace labrack::cli {

// Data of a host older than this is shown with its age.
constexpr Nanoseconds kStaleAfter = std::chrono::seconds(5);

// The worst p99 of each sixth of a minute, for the little curve.
class LatencyHistory {
 public:
  static constexpr std::size_t kSlotCount = 10;
  static constexpr Nanoseconds kSlotLength = std::chrono::seconds(6);

  void Add(TimePoint now, std::int64_t p99_ns);
  // Oldest first; 0 where there was no sample.
  std::array<std::int64_t, kSlotCount> Slots(TimePoint now) const;

 private:
  std::map<std::int64_t, std::int64_t> worst_;  // by slot number
};

// Whether operations run now and the last second had one; else its figures mean nothing.
bool HasSample(const v1::AssignmentProgress& progress);

struct HostState {
  v1::HostProgress last;
  TimePoint seen;
  LatencyHistory p99;

  // Of the last report, when the event came and now.
  Nanoseconds Age(TimePoint now) const { return Nanoseconds(last.age_ns()) + (now - seen); }
  bool online() const { return last.session_state() == "ONLINE"; }
  bool has_sample() const { return HasSample(last.progress()); }
};

class RunState {
 public:
  void Apply(const v1::RunEvent& event, TimePoint now);

  const v1::RunSummary& summary() const { return summary_; }
  const std::map<std::string, HostState>& hosts() const { return hosts_; }  // by agent id
  const std::map<std::uint32_t, v1::TrialSummary>& trials() const { return trials_; }
  // The trial that ended last.
  const v1::TrialSummary* last_ended() const;
  // The worst of the ended trials of several hosts; nullopt when there was none.
  std::optional<Nanoseconds> SkewMax() const;
  std::optional<double> OverlapMin() const;
  bool ended() const;
  // A stream that was opened again tells everything from the beginning: whether this is known.
  bool IsOldNews(const v1::TrialSummary& trial) const;

 private:
  v1::RunSummary summary_;
  std::map<std::string, HostState> hosts_;
  std::map<std::uint32_t, v1::TrialSummary> trials_;
  std::optional<std::uint32_t> last_ended_;
};

// Whether nothing more happens to a run in this state.
bool HasEnded(v1::RunState state);
// "valid", "invalid", "lost", "cancelled": the trial will not change any more.
bool TrialHasEnded(const v1::TrialSummary& trial);
// "lay out", "measure"; "-" when there is none.
std::string PhaseWord(v1::PhaseKind phase);

}  // namespace labrack::cli
