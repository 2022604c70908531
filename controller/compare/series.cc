#include "controller/compare/series.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "proto/convert/convert.h"

namespace labrack::compare {
namespace {

constexpr double kPercentileShown = 0.99;

Metric PrimaryMetric(const v1::StepResult& step, bool several_hosts) {
  switch (step.primary()) {
    case v1::PRIMARY_METRIC_BYTES_PER_SECOND:
      return {.name = "throughput", .unit = "B/s"};
    case v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND:
      return {.name = "operations", .unit = "op/s"};
    case v1::PRIMARY_METRIC_SECONDS:
      return {
          .name = several_hosts ? "wall, slowest" : "wall", .unit = "s", .lower_is_better = true};
    default: {
      const v1::Figure& figure = step.figures(0);
      return {.name = figure.name() + (several_hosts ? ", median host" : ""),
              .unit = figure.unit(),
              .lower_is_better = figure.lower_is_better()};
    }
  }
}

// The hosts' median of the figure `name`; nothing when one of them has none.
std::optional<double> FigureOf(const std::vector<HostStep>& hosts, const std::string& name) {
  std::vector<double> values;
  for (const HostStep& host : hosts) {
    for (const v1::Figure& figure : host.result->figures()) {
      if (figure.name() != name) continue;
      values.push_back(figure.value());
      break;
    }
  }
  if (values.empty() || values.size() != hosts.size()) return std::nullopt;
  return Median(values);
}

std::optional<double> PrimaryValue(const std::vector<HostStep>& hosts, Spread spread) {
  const v1::StepResult& step = *hosts.front().result;
  switch (step.primary()) {
    case v1::PRIMARY_METRIC_BYTES_PER_SECOND:
      return RateFleet(hosts, Work::kBytes, spread).common;
    case v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND:
      return RateFleet(hosts, Work::kOperations, spread).common;
    case v1::PRIMARY_METRIC_SECONDS: {
      const Result<FleetTiming> timing = TimeFleet(hosts);
      if (!timing) return std::nullopt;
      return static_cast<double>(timing->wall_max_ns) * 1e-9;
    }
    default:
      return FigureOf(hosts, step.figures(0).name());
  }
}

// From the intended start where the load is an open loop, else of the operation itself.
const v1::HistogramData* LatencyData(const v1::OperationResult& operation) {
  if (operation.has_response() && operation.response().count_size() > 0) {
    return &operation.response();
  }
  return operation.has_service() ? &operation.service() : nullptr;
}

// Merged over the hosts and, with an empty name, over all counted operations.
std::optional<Histogram> MergedLatency(const std::vector<HostStep>& hosts,
                                       const std::string& operation_name) {
  Histogram merged;
  for (const HostStep& host : hosts) {
    for (const v1::OperationResult& operation : host.result->operations()) {
      if (!operation_name.empty() && operation.operation() != operation_name) continue;
      if (!IsCounted(*host.result, operation.operation())) continue;
      const v1::HistogramData* data = LatencyData(operation);
      if (data == nullptr) continue;
      Result<Histogram> histogram = convert::FromMessage(*data);
      if (!histogram) return std::nullopt;
      merged.Merge(*histogram);
    }
  }
  if (merged.count() == 0) return std::nullopt;
  return merged;
}

std::optional<double> PercentileOf(const std::vector<HostStep>& hosts, const std::string& operation,
                                   double percentile) {
  const std::optional<Histogram> merged = MergedLatency(hosts, operation);
  if (!merged) return std::nullopt;
  const std::optional<Nanoseconds> value = merged->Percentile(percentile, kSamplesAboveMin);
  if (!value || value->count() <= 0) return std::nullopt;
  return static_cast<double>(value->count());
}

std::string PercentileName(double percentile) { return fmt::format("p{:g}", percentile * 100); }

// Collects one metric over trials.
class Collector {
 public:
  Collector(std::string step, Metric metric) {
    series_.step = std::move(step);
    series_.metric = std::move(metric);
  }
  void Add(std::uint32_t repeat, std::optional<double> value, const std::string& why_missing) {
    if (value && std::isfinite(*value) && *value > 0) {
      series_.series.push_back({repeat, *value});
      return;
    }
    ++series_.missing;
    if (series_.why_missing.empty()) {
      series_.why_missing = value ? "the value is not positive, so there is no ratio" : why_missing;
    }
  }
  MetricSeries Take() { return std::move(series_); }

 private:
  MetricSeries series_;
};

MetricSeries OnePrimary(const CellView& cell, const std::string& step,
                        const std::vector<std::string>& agents) {
  std::optional<Collector> collector;
  for (const v1::TrialRecord* trial : cell.valid) {
    const std::vector<HostStep> hosts = StepOfHosts(*trial, step, agents);
    if (hosts.empty()) continue;
    if (!collector)
      collector.emplace(step, PrimaryMetric(*hosts.front().result, agents.size() > 1));
    collector->Add(trial->summary().repeat(), PrimaryValue(hosts, SpreadOf(cell.cell->workload())),
                   "a host has no value");
  }
  return collector ? collector->Take() : MetricSeries();
}

MetricSeries OneLatency(const CellView& cell, const std::string& step,
                        const std::vector<std::string>& agents, const std::string& operation,
                        double percentile) {
  std::string name = PercentileName(percentile);
  if (!operation.empty()) name += " " + operation;
  Collector collector(
      step, {.kind = MetricKind::kLatency, .name = name, .unit = "ns", .lower_is_better = true});
  for (const v1::TrialRecord* trial : cell.valid) {
    const std::vector<HostStep> hosts = StepOfHosts(*trial, step, agents);
    if (hosts.empty()) continue;
    collector.Add(trial->summary().repeat(), PercentileOf(hosts, operation, percentile),
                  fmt::format("fewer than {} samples above it", kSamplesAboveMin));
  }
  return collector.Take();
}

MetricSeries OneFigure(const CellView& cell, const std::string& step,
                       const std::vector<std::string>& agents, const v1::Figure& figure) {
  Collector collector(step, {.kind = MetricKind::kFigure,
                             .name = figure.name() + (agents.size() > 1 ? ", median host" : ""),
                             .unit = figure.unit(),
                             .lower_is_better = figure.lower_is_better()});
  for (const v1::TrialRecord* trial : cell.valid) {
    const std::vector<HostStep> hosts = StepOfHosts(*trial, step, agents);
    if (hosts.empty()) continue;
    collector.Add(trial->summary().repeat(), FigureOf(hosts, figure.name()),
                  "a host has no such figure");
  }
  return collector.Take();
}

}  // namespace

Spread SpreadOf(const v1::Workload& workload) {
  if (workload.has_copy() && workload.copy().sync()) return Spread::kEven;
  if (workload.has_stream() && workload.stream().direction() == v1::DIRECTION_WRITE &&
      workload.stream().sync() == v1::STREAM_SYNC_END) {
    return Spread::kEven;
  }
  return Spread::kIntervals;
}

RunView ViewRun(const v1::RunRecord& run) {
  RunView view{.record = &run, .cells = {}, .trials = {}};
  for (const v1::PlannedCell& cell : run.plan().cells())
    view.cells.push_back({.cell = &cell, .valid = {}});
  const auto cell_of = [&](std::uint32_t index) -> CellView* {
    for (CellView& cell : view.cells) {
      if (cell.cell->index() == index) return &cell;
    }
    return nullptr;
  };
  for (const v1::PlannedTrial& trial : run.plan().trials()) {
    if (CellView* cell = cell_of(trial.cell())) ++cell->planned;
  }
  for (const v1::TrialRecord& trial : run.trials()) {
    CellView* cell = cell_of(trial.summary().cell());
    if (cell == nullptr) continue;
    view.trials.push_back(
        {.trial = &trial, .cell = cell->cell, .assessment = AssessTrial(*cell->cell, trial)});
    if (view.trials.back().assessment.valid()) cell->valid.push_back(&trial);
  }
  return view;
}

std::vector<std::string> StepsOf(const CellView& cell) {
  std::vector<std::string> steps;
  for (const v1::TrialRecord* trial : cell.valid) {
    for (const v1::AssignmentRecord& assignment : trial->assignments()) {
      for (const v1::StepResult& step : assignment.result().steps()) {
        if (std::ranges::find(steps, step.step()) == steps.end()) steps.push_back(step.step());
      }
    }
  }
  return steps;
}

std::string WorkloadName(const CellView& cell, const std::string& step) {
  return StepsOf(cell).size() > 1 ? cell.workload() + "/" + step : cell.workload();
}

std::vector<MetricSeries> SeriesOf(const CellView& cell, const std::vector<std::string>& agents) {
  std::vector<MetricSeries> all;
  for (const std::string& step : StepsOf(cell)) {
    MetricSeries primary = OnePrimary(cell, step, agents);
    if (primary.series.empty() && primary.missing == 0) continue;
    all.push_back(std::move(primary));

    std::vector<std::string> operations;
    std::vector<v1::Figure> figures;
    bool figure_is_primary = false;
    for (const v1::TrialRecord* trial : cell.valid) {
      for (const HostStep& host : StepOfHosts(*trial, step, agents)) {
        figure_is_primary = host.result->primary() == v1::PRIMARY_METRIC_FIGURE;
        for (const v1::OperationResult& operation : host.result->operations()) {
          if (!IsCounted(*host.result, operation.operation())) continue;
          if (std::ranges::find(operations, operation.operation()) == operations.end()) {
            operations.push_back(operation.operation());
          }
        }
        for (const v1::Figure& figure : host.result->figures()) {
          const auto same = [&](const v1::Figure& other) { return other.name() == figure.name(); };
          if (std::ranges::none_of(figures, same)) figures.push_back(figure);
        }
      }
    }
    for (const std::string& operation : operations) {
      MetricSeries latency = OneLatency(cell, step, agents, operation, kPercentileShown);
      if (!latency.series.empty()) all.push_back(std::move(latency));
    }
    for (std::size_t i = figure_is_primary ? 1 : 0; i < figures.size(); ++i) {
      // fio's CPU shares explain a result and are none themselves.
      if (cell.cell->workload().has_fio() && figures[i].unit() == "%") continue;
      all.push_back(OneFigure(cell, step, agents, figures[i]));
    }
  }
  return all;
}

MetricSeries LatencySeries(const CellView& cell, const std::string& step,
                           const std::vector<std::string>& agents, double percentile) {
  return OneLatency(cell, step, agents, "", percentile);
}

std::vector<std::string> CommonAgents(const v1::PlannedCell& a, const v1::PlannedCell& b) {
  std::vector<std::string> common;
  for (const std::string& agent : a.agent_ids()) {
    if (std::ranges::find(b.agent_ids(), agent) != b.agent_ids().end()) common.push_back(agent);
  }
  return common;
}

std::string HostNameOf(const v1::RunRecord& run, const std::string& agent_id) {
  for (const v1::PlannedHost& host : run.plan().hosts()) {
    if (host.agent_id() == agent_id && !host.host_name().empty()) return host.host_name();
  }
  return agent_id;
}

std::string CellName(const v1::PlannedCell& cell) {
  std::string name = cell.stack().name() + "/" + cell.workload().name();
  if (!cell.parameters_text().empty()) name += " " + cell.parameters_text();
  return name;
}

}  // namespace labrack::compare
