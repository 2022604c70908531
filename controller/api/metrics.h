// The controller's own metrics. Counters of trials and events begin with what the catalog holds, so
// that they agree with it over restarts. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "controller/catalog/catalog.h"
#include "controller/catalog/rows.h"
#include "controller/fleet/roster.h"

namespace labrack::api {

class Metrics {
 public:
  Metrics();

  void Begin(const catalog::Totals& totals, const std::vector<catalog::StoredRun>& open_runs);
  // After each commit.
  void Committed(const std::vector<catalog::Change>& changes, const catalog::Applied& applied,
                 Nanoseconds took);
  void SetAgents(const std::map<fleet::AgentState, std::uint64_t>& by_state);
  struct Queues {
    std::size_t inbox = 0;
    std::size_t inbox_bytes = 0;
    std::size_t jobs = 0;
    std::size_t reports_bytes = 0;
    std::size_t watchers = 0;
    std::size_t sessions = 0;
  };
  void SetQueues(const Queues& queues);
  void SetMassSilence(bool lasts) { mass_silence_->Set(lasts ? 1 : 0); }

  prometheus::Counter& foreign_events() { return *foreign_; }
  prometheus::Counter& refused_events() { return *refused_events_; }
  prometheus::Counter& agent_conflicts() { return *conflicts_; }
  prometheus::Counter& sessions_dropped() { return *dropped_; }

  std::string Text() const;  // text format 0.0.4

 private:
  void AddStates(prometheus::Registry& registry);
  void AddCounters(prometheus::Registry& registry);
  void AddGauges(prometheus::Registry& registry);
  void SetRunState(const std::string& id, v1::RunState state);
  void CountTrial(const catalog::TrialRow& trial);

  std::shared_ptr<prometheus::Registry> registry_;
  std::map<fleet::AgentState, prometheus::Gauge*> agents_;
  std::map<v1::RunState, prometheus::Gauge*> runs_;
  std::map<catalog::TrialState, prometheus::Counter*> trials_;
  prometheus::Counter* stored_;
  prometheus::Counter* duplicates_;
  prometheus::Counter* conflicting_;
  prometheus::Counter* refused_;
  prometheus::Counter* foreign_;
  prometheus::Counter* refused_events_;
  prometheus::Counter* conflicts_;
  prometheus::Counter* dropped_;
  prometheus::Histogram* commit_;
  prometheus::Histogram* skew_;
  prometheus::Gauge* mass_silence_;
  prometheus::Gauge* sessions_;
  prometheus::Gauge* inbox_;
  prometheus::Gauge* inbox_bytes_;
  prometheus::Gauge* jobs_;
  prometheus::Gauge* reports_bytes_;
  prometheus::Gauge* watchers_;
  std::map<std::string, v1::RunState> open_runs_;  // of the loop's thread only
};

}  // namespace labrack::api
