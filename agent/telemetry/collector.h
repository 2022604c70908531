// Collector: the state behind Exporter, and how it is written as metric families.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "agent/telemetry/exporter.h"
#include "storage/base/histogram.h"

namespace labrack::telemetry {

struct SeriesKey {
  std::string op;
  std::string personality;
  std::string workload;
  std::string stack;
  std::string device_class;
  friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
};

// A histogram as it is exposed: a few numbers instead of thousands of buckets, as there may be many
// series.
struct Latencies {
  std::uint64_t count = 0;
  std::uint64_t sum_ns = 0;
  std::vector<std::uint64_t> at_most;  // by bound; empty while there is none

  void Add(const Histogram& histogram);
  void Add(const Latencies& other);
};

struct Counts {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  Latencies service;
  std::optional<Latencies> response;  // open loops only

  void Add(const v1::OperationResult& operation);
  void Add(const Counts& other);
};

// Thread-safe.
class Collector final : public prometheus::Collectable {
 public:
  Collector(Nanoseconds grace, AgentInfo info, const Clock& clock)
      : grace_(grace), info_(std::move(info)), clock_(clock) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

  void SetFigures(const AgentFigures& figures);
  void TrialBegan(const v1::AssignmentSpec& spec);
  void PhaseBegan(const v1::AssignmentSpec& spec, v1::PhaseKind phase, Nanoseconds wall);
  void StepRuns(const v1::AssignmentSpec& spec, const std::vector<v1::OperationResult>& operations);
  void StepDone(const v1::AssignmentSpec& spec, const v1::StepResult& step);
  void TrialEnded(const v1::AssignmentSpec& spec, v1::Outcome outcome);

 private:
  struct Series {
    Counts done;  // of steps that are over
    Counts live;  // of the one that runs
    TimePoint used;
  };
  struct Trial {
    std::string run_id;
    std::string playbook;
    std::string cell;
    std::string workload;
    std::string stack;
    std::string phase;
    double phase_start = 0;  // seconds since the epoch
    std::optional<TimePoint> ended;
    TimePoint used;
  };

  Series* Find(const SeriesKey& key);
  void Expire() const;
  std::vector<prometheus::MetricFamily> IoFamilies() const;
  std::vector<prometheus::MetricFamily> TrialFamilies() const;
  std::vector<prometheus::MetricFamily> AgentFamilies() const;

  const Nanoseconds grace_;
  const AgentInfo info_;
  const Clock& clock_;

  mutable std::mutex mutex_;  // guards all below; a scrape lets old series go
  mutable std::map<SeriesKey, Series> series_;
  mutable std::map<std::string, Trial> trials_;  // by assignment
  std::map<std::string, std::uint64_t> outcomes_;
  std::optional<double> start_skew_;
  mutable TimePoint start_skew_at_;
  std::uint64_t dropped_series_ = 0;
  AgentFigures figures_;
};

}  // namespace labrack::telemetry
