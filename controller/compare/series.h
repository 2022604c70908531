// From records to series: for one cell, one value a valid trial and metric. A trial's value over
// several hosts is one number: a rate over the common window, the slowest host's wall time, a
// percentile of the merged histogram, the median of the hosts' figures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "controller/compare/validity.h"
#include "controller/compare/verdict.h"
#include "labrack/v1/control.pb.h"
#include "storage/base/histogram.h"

namespace labrack::compare {

// A percentile is shown only with so many samples above it; a p99 of fifty is a guess.
constexpr std::uint64_t kSamplesAboveMin = 10;

enum class MetricKind { kPrimary, kLatency, kFigure };

struct Metric {
  MetricKind kind = MetricKind::kPrimary;
  std::string name;  // "throughput", "operations", "wall", "p99 read", a figure's name
  std::string unit;  // "B/s", "op/s", "s", "ns", a figure's
  bool lower_is_better = false;
};

struct MetricSeries {
  std::string step;
  Metric metric;
  Series series = {};         // finite and positive values only
  std::uint32_t missing = 0;  // valid trials without a value
  std::string why_missing = {};
  // Of rates over several hosts, one a trial: until the first and until the last host was done
  // (window.h). Shown beside the rate, never compared.
  std::vector<double> first_done = {};
  std::vector<double> last_done = {};
};

// Why the two cannot be judged against each other, or nothing. Values of some trials only would
// favour the trials that had many samples, so every valid trial needs one.
std::string WhyNotJudged(const MetricSeries& base, const std::string& base_name,
                         const MetricSeries& test, const std::string& test_name);

struct ValidTrial {
  const v1::TrialRecord* trial = nullptr;
  std::vector<StepHosts> steps;
};

// A cell with the trials that may be used. Points into the RunRecord.
struct CellView {
  const v1::PlannedCell* cell = nullptr;
  std::vector<ValidTrial> valid;
  std::vector<std::string> steps;  // that the valid trials measured, in their order

  const std::string& stack() const { return cell->stack().name(); }
  const std::string& workload() const { return cell->workload().name(); }
  const std::string& parameters() const { return cell->parameters_text(); }
};

// Stack, workload, parameters.
using CellKey = std::tuple<std::string, std::string, std::string>;

struct TrialView {
  const v1::TrialRecord* trial = nullptr;
  const v1::PlannedCell* cell = nullptr;
  TrialAssessment assessment;
};

// Cells of one workload and parameters, on all their stacks: what is compared within a run.
struct CellGroup {
  std::vector<std::size_t> cells;  // places in RunView::cells, in the order of the plan
};

// A run, judged once. The record must outlive it.
struct RunView {
  const v1::RunRecord* record = nullptr;
  std::vector<CellView> cells;    // in the order of the plan
  std::vector<TrialView> trials;  // in the order of execution
  std::vector<CellGroup> groups;  // in the order of their first cells
  std::map<CellKey, std::size_t> places;

  // The cell of `stack` with the workload and parameters of `like`; nullptr when there is none.
  const CellView* Find(const std::string& stack, const CellView& like) const;
};
RunView ViewRun(const v1::RunRecord& run);

// The metrics of a cell over `agents`, in the order of steps; within a step the primary metric,
// then latencies, then figures. Empty when no trial is valid.
std::vector<MetricSeries> SeriesOf(const CellView& cell, const std::vector<std::string>& agents);

// The same percentile (0..1) of all counted operations of a step, merged over operations and hosts.
MetricSeries LatencySeries(const CellView& cell, const std::string& step,
                           const std::vector<std::string>& agents, double percentile);

// "pages", or "files/create" for a workload of several steps.
std::string WorkloadName(const CellView& cell, const std::string& step);

// Agents that took part in both.
std::vector<std::string> CommonAgents(const v1::PlannedCell& a, const v1::PlannedCell& b);
std::string HostNameOf(const v1::RunRecord& run, const std::string& agent_id);
// Whether the step's bytes are durable only after a sync that closes it: `dd; sync`.
Spread SpreadOf(const v1::Workload& workload);

}  // namespace labrack::compare
