#include "controller/api/metrics.h"

#include <prometheus/text_serializer.h>

namespace labrack::api {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

// Fixed bounds: another set would break the history of every series.
const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.000001, 0.000002, 0.000005, 0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005,
    0.001,    0.002,    0.005,    0.01,    0.02,    0.05,    0.1,    0.2,    0.5,
    1,        2,        5,        10,      20,      50,      100};

double Seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

prometheus::Counter* OneCounter(prometheus::Registry& registry, const std::string& name,
                                const std::string& help) {
  return &BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

Metrics::Metrics() : registry_(std::make_shared<prometheus::Registry>()) {
  AddStates(*registry_);
  AddCounters(*registry_);
  AddGauges(*registry_);
}

void Metrics::AddStates(prometheus::Registry& registry) {
  auto& agents = BuildGauge()
                     .Name("labrack_controller_agents")
                     .Help("Agents that the controller knows, by the state of their session.")
                     .Register(registry);
  for (const fleet::AgentState state :
       {fleet::AgentState::kOffline, fleet::AgentState::kSyncing, fleet::AgentState::kOnline,
        fleet::AgentState::kSuspect, fleet::AgentState::kLost}) {
    agents_[state] = &agents.Add({{"state", std::string(fleet::StateName(state))}});
  }
  auto& runs = BuildGauge()
                   .Name("labrack_controller_runs")
                   .Help("Runs in the catalog, by state.")
                   .Register(registry);
  for (const v1::RunState state :
       {v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING, v1::RUN_STATE_CANCELLING, v1::RUN_STATE_DONE,
        v1::RUN_STATE_CANCELLED, v1::RUN_STATE_FAILED}) {
    runs_[state] = &runs.Add({{"state", std::string(catalog::StateName(state))}});
  }
  auto& trials = BuildCounter()
                     .Name("labrack_controller_trials_total")
                     .Help("Trials in the catalog that have ended, by outcome.")
                     .Register(registry);
  for (const catalog::TrialState state :
       {catalog::TrialState::kValid, catalog::TrialState::kInvalid, catalog::TrialState::kLost,
        catalog::TrialState::kCancelled}) {
    trials_[state] = &trials.Add({{"outcome", std::string(catalog::StateName(state))}});
  }
}

void Metrics::AddCounters(prometheus::Registry& registry) {
  stored_ = OneCounter(registry, "labrack_controller_events_stored_total",
                       "Events of assignments in the catalog.");
  duplicates_ = OneCounter(registry, "labrack_controller_events_duplicate_total",
                           "Events that were stored already; normal after a reconnect.");
  conflicting_ = OneCounter(registry, "labrack_controller_events_conflicting_total",
                            "Alarm: events with the key of a stored one, but another body.");
  refused_ = OneCounter(registry, "labrack_controller_final_changes_refused_total",
                        "Alarm: changes of assignments that had ended already.");
  foreign_ = OneCounter(registry, "labrack_controller_events_foreign_total",
                        "Alarm: batches of events about another agent's assignment; they are "
                        "stored apart.");
  refused_events_ = OneCounter(registry, "labrack_controller_events_refused_total",
                               "Alarm: records that leave a gap, neither stored nor acknowledged.");
  conflicts_ = OneCounter(registry, "labrack_controller_agent_conflicts_total",
                          "Alarm: sessions refused since another machine uses the agent's id.");
  dropped_ = OneCounter(registry, "labrack_controller_sessions_dropped_total",
                        "Sessions ended by the controller since nothing was heard on them.");
  commit_ = &BuildHistogram()
                 .Name("labrack_controller_catalog_commit_seconds")
                 .Help("Time of one catalog transaction, with its fsync.")
                 .Register(registry)
                 .Add({}, kSeconds);
  skew_ = &BuildHistogram()
               .Name("labrack_controller_start_skew_seconds")
               .Help("Largest distance of a host's start from the common start, per trial.")
               .Register(registry)
               .Add({}, kSeconds);
}

void Metrics::AddGauges(prometheus::Registry& registry) {
  auto& queues = BuildGauge()
                     .Name("labrack_controller_queue_items")
                     .Help("Items that wait in the controller's bounded queues.")
                     .Register(registry);
  inbox_ = &queues.Add({{"queue", "inbox"}});
  jobs_ = &queues.Add({{"queue", "jobs"}});
  inbox_bytes_ = &BuildGauge()
                      .Name("labrack_controller_inbox_bytes")
                      .Help("Agents' messages that wait for the loop.")
                      .Register(registry)
                      .Add({});
  reports_bytes_ = &BuildGauge()
                        .Name("labrack_controller_reports_kept_bytes")
                        .Help("Finished reports that are kept for the next question.")
                        .Register(registry)
                        .Add({});
  sessions_ = &BuildGauge()
                   .Name("labrack_controller_sessions_open")
                   .Help("Streams of agents, also those before Hello and those that end.")
                   .Register(registry)
                   .Add({});
  mass_silence_ = &BuildGauge()
                       .Name("labrack_controller_mass_silence")
                       .Help("Alarm: 1 while many agents are silent together; nobody is given up.")
                       .Register(registry)
                       .Add({});
  watchers_ = &BuildGauge()
                   .Name("labrack_controller_watchers")
                   .Help("Open watch streams.")
                   .Register(registry)
                   .Add({});
}

void Metrics::Begin(const catalog::Totals& totals,
                    const std::vector<catalog::StoredRun>& open_runs) {
  for (const auto& [state, count] : totals.runs) {
    if (runs_.contains(state)) runs_[state]->Set(static_cast<double>(count));
  }
  for (const auto& [state, count] : totals.trials) {
    if (trials_.contains(state)) trials_[state]->Increment(static_cast<double>(count));
  }
  stored_->Increment(static_cast<double>(totals.events));
  for (const catalog::StoredRun& run : open_runs) open_runs_[run.run.id] = run.run.state;
}

void Metrics::SetRunState(const std::string& id, v1::RunState state) {
  const auto found = open_runs_.find(id);
  if (found != open_runs_.end()) {
    runs_[found->second]->Decrement();
    open_runs_.erase(found);
  }
  runs_[state]->Increment();
  if (!catalog::IsFinal(state)) open_runs_[id] = state;
}

void Metrics::CountTrial(const catalog::TrialRow& trial) {
  if (!catalog::IsFinal(trial.state)) return;
  trials_[trial.state]->Increment();
  if (trial.state == catalog::TrialState::kValid && trial.host_count > 1) {
    skew_->Observe(Seconds(Nanoseconds(trial.start_skew_ns)));
  }
}

void Metrics::Committed(const std::vector<catalog::Change>& changes,
                        const catalog::Applied& applied, Nanoseconds took) {
  for (const catalog::Change& change : changes) {
    if (const auto* inserted = std::get_if<catalog::InsertRun>(&change)) {
      SetRunState(inserted->run.id, inserted->run.state);
    } else if (const auto* updated = std::get_if<catalog::UpdateRun>(&change)) {
      SetRunState(updated->id, updated->state);
    } else if (const auto* trial = std::get_if<catalog::UpdateTrial>(&change)) {
      CountTrial(trial->trial);
    }
  }
  stored_->Increment(static_cast<double>(applied.events_stored));
  duplicates_->Increment(static_cast<double>(applied.events_duplicate));
  conflicting_->Increment(static_cast<double>(applied.events_conflicting));
  refused_->Increment(static_cast<double>(applied.final_changes_refused));
  commit_->Observe(Seconds(took));
}

void Metrics::SetAgents(const std::map<fleet::AgentState, std::uint64_t>& by_state) {
  for (const auto& [state, gauge] : agents_) {
    const auto found = by_state.find(state);
    gauge->Set(found == by_state.end() ? 0 : static_cast<double>(found->second));
  }
}

void Metrics::SetQueues(const Queues& queues) {
  inbox_->Set(static_cast<double>(queues.inbox));
  inbox_bytes_->Set(static_cast<double>(queues.inbox_bytes));
  jobs_->Set(static_cast<double>(queues.jobs));
  reports_bytes_->Set(static_cast<double>(queues.reports_bytes));
  watchers_->Set(static_cast<double>(queues.watchers));
  sessions_->Set(static_cast<double>(queues.sessions));
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace labrack::api
