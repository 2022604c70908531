// From trials to series: for one cell, one value a valid trial and metric. A trial's value over
// several hosts is one number: a rate over the common window, the slowest host's wall time, a
// percentile of the merged histogram, the median of the hosts' figures.
//
//   plan --> cells --> scopes asked for (rows.h, gates.h)      before the first trial
//   trial --> assessed --> its hosts' results --> one value a scope, step and metric; dropped
//
// Results are large and values are small, so each trial is reduced as it comes and nothing points
// into it afterwards. A value over several hosts cannot be made from values of single ones, which
// is why scopes must be asked for first.
#pragma once

#include <cstdint>
#include <map>
#include <set>
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

// Hosts whose parts of a trial make one value together: agent ids, sorted. Empty: all hosts.
using Scope = std::vector<std::string>;
Scope ScopeOf(std::vector<std::string> agents);

// One step of a cell over one scope.
class StepValues {
 public:
  // The percentiles (0..1) are wanted of all counted operations together, beside the metrics.
  StepValues(std::string step, bool several_hosts, const std::set<double>& percentiles);

  // The scope's hosts in one valid trial, at least one.
  void Add(std::uint32_t repeat, const std::vector<HostStep>& hosts, Spread spread);

  // The primary metric, then latencies, then figures. `of_fio`: its CPU shares explain a result and
  // are none themselves.
  void AppendTo(std::vector<MetricSeries>& all, bool of_fio) const;
  const MetricSeries& Percentile(double percentile) const { return percentiles_.at(percentile); }

 private:
  std::string step_;
  bool several_hosts_;
  std::uint32_t trials_ = 0;
  MetricSeries primary_;
  std::map<std::string, std::size_t> latency_places_;  // by operation
  std::vector<MetricSeries> latencies_;                // in the order in which they were first seen
  std::map<std::string, std::size_t> figure_places_;   // by name
  std::vector<MetricSeries> figures_;
  bool figure_is_primary_ = false;
  std::map<double, MetricSeries> percentiles_;
};

// What a cell's valid trials gave over one scope.
struct ScopeValues {
  std::set<double> percentiles;
  std::map<std::string, StepValues> steps;
};

// A cell and what is known of it so far.
struct CellView {
  const v1::PlannedCell* cell = nullptr;
  std::uint32_t valid = 0;         // trials
  std::vector<std::string> steps;  // that the valid trials measured, in their order
  std::map<Scope, ScopeValues> scopes;

  const std::string& stack() const { return cell->stack().name(); }
  const std::string& workload() const { return cell->workload().name(); }
  const std::string& parameters() const { return cell->parameters_text(); }

  // A valid trial; its record is not needed afterwards.
  void Add(const v1::TrialRecord& trial);
};

// Stack, workload, parameters.
using CellKey = std::tuple<std::string, std::string, std::string>;

// Cells of one workload and parameters, on all their stacks: what is compared within a run.
struct CellGroup {
  std::vector<std::size_t> cells;  // places in RunView::cells, in the order of the plan
};

// A run's cells. Points into `record`, of which the trials are not looked at.
struct RunView {
  explicit RunView(const v1::RunRecord& run);

  const v1::RunRecord* record = nullptr;
  std::vector<CellView> cells;                    // in the order of the plan
  std::vector<CellGroup> groups;                  // in the order of their first cells
  std::map<CellKey, std::size_t> places;          // of cells
  std::map<std::uint32_t, std::size_t> by_index;  // places of cells by their numbers

  // The cell of `stack` with the workload and parameters of `like`; nullptr when there is none.
  const CellView* Find(const std::string& stack, const CellView& like) const;
  // The cell that a trial is of; nullptr for a number that the plan does not have.
  CellView* CellOf(const v1::TrialRecord& trial);
  // Has the series of one of `cells` over `agents` made. To be called before the first trial.
  ScopeValues& Want(const CellView& cell, const std::vector<std::string>& agents);
};

// The metrics of a cell over `agents`, which were wanted, in the order of steps; within a step the
// primary metric, then latencies, then figures. Empty when no trial is valid.
std::vector<MetricSeries> SeriesOf(const CellView& cell, const std::vector<std::string>& agents);

// A percentile (0..1) that was wanted, of all counted operations of a step.
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
