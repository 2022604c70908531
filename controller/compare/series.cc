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

std::optional<double> PrimaryValue(const std::vector<HostStep>& hosts) {
  const v1::StepResult& step = *hosts.front().result;
  if (step.primary() == v1::PRIMARY_METRIC_SECONDS) {
    const Result<FleetTiming> timing = TimeFleet(hosts);
    if (!timing) return std::nullopt;
    return static_cast<double>(timing->wall_max_ns) * 1e-9;
  }
  return FigureOf(hosts, step.figures(0).name());
}

// What the step's rate counts; nothing when its primary metric is no rate.
std::optional<Work> WorkOf(const v1::StepResult& step) {
  if (step.primary() == v1::PRIMARY_METRIC_BYTES_PER_SECOND) return Work::kBytes;
  if (step.primary() == v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND) return Work::kOperations;
  return std::nullopt;
}

// The parts of `agents` in a step of a trial.
std::vector<HostStep> HostsIn(const ValidTrial& trial, const std::string& step,
                              const std::vector<std::string>& agents) {
  std::vector<HostStep> hosts;
  const auto found = std::ranges::find(trial.steps, step, &StepHosts::step);
  if (found == trial.steps.end()) return hosts;
  for (const HostStep& host : found->hosts) {
    const bool wanted = agents.empty() || std::ranges::find(agents, host.agent_id) != agents.end();
    if (wanted) hosts.push_back(host);
  }
  return hosts;
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
  void AddDone(const FleetRates& rates) {
    series_.first_done.push_back(rates.first_done);
    series_.last_done.push_back(rates.last_done);
  }
  MetricSeries Take() { return std::move(series_); }

 private:
  MetricSeries series_;
};

MetricSeries OnePrimary(const CellView& cell, const std::string& step,
                        const std::vector<std::string>& agents) {
  const Spread spread = SpreadOf(cell.cell->workload());
  std::optional<Collector> collector;
  for (const ValidTrial& trial : cell.valid) {
    const std::vector<HostStep> hosts = HostsIn(trial, step, agents);
    if (hosts.empty()) continue;
    const v1::StepResult& result = *hosts.front().result;
    if (!collector) collector.emplace(step, PrimaryMetric(result, agents.size() > 1));
    const std::uint32_t repeat = trial.trial->summary().repeat();
    if (const std::optional<Work> work = WorkOf(result); work) {
      const FleetRates rates = RateFleet(hosts, *work, spread);
      collector->Add(repeat, rates.common, "a host has no value");
      if (hosts.size() > 1) collector->AddDone(rates);
    } else {
      collector->Add(repeat, PrimaryValue(hosts), "a host has no value");
    }
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
  for (const ValidTrial& trial : cell.valid) {
    const std::vector<HostStep> hosts = HostsIn(trial, step, agents);
    if (hosts.empty()) continue;
    collector.Add(trial.trial->summary().repeat(), PercentileOf(hosts, operation, percentile),
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
  for (const ValidTrial& trial : cell.valid) {
    const std::vector<HostStep> hosts = HostsIn(trial, step, agents);
    if (hosts.empty()) continue;
    collector.Add(trial.trial->summary().repeat(), FigureOf(hosts, figure.name()),
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

const CellView* RunView::Find(const std::string& stack, const CellView& like) const {
  const auto found = places.find({stack, like.workload(), like.parameters()});
  return found == places.end() ? nullptr : &cells[found->second];
}

RunView ViewRun(const v1::RunRecord& run) {
  RunView view{.record = &run, .cells = {}, .trials = {}, .groups = {}, .places = {}};
  std::map<std::uint32_t, std::size_t> by_index;
  std::map<CellKey, std::size_t> group_of;
  for (const v1::PlannedCell& planned : run.plan().cells()) {
    const std::size_t place = view.cells.size();
    by_index.try_emplace(planned.index(), place);
    const CellView& cell = view.cells.emplace_back(&planned);
    // A plan has each name once; of a record that does not, the first counts.
    if (!view.places.try_emplace({cell.stack(), cell.workload(), cell.parameters()}, place)
             .second) {
      continue;
    }
    const auto [group, is_new] =
        group_of.try_emplace({"", cell.workload(), cell.parameters()}, view.groups.size());
    if (is_new) view.groups.emplace_back();
    view.groups[group->second].cells.push_back(place);
  }
  for (const v1::TrialRecord& trial : run.trials()) {
    const auto place = by_index.find(trial.summary().cell());
    if (place == by_index.end()) continue;
    CellView& cell = view.cells[place->second];
    view.trials.push_back(
        {.trial = &trial, .cell = cell.cell, .assessment = AssessTrial(*cell.cell, trial)});
    if (!view.trials.back().assessment.valid()) continue;
    cell.valid.push_back({.trial = &trial, .steps = StepsOfTrial(trial)});
    for (const StepHosts& step : cell.valid.back().steps) {
      if (std::ranges::find(cell.steps, step.step) == cell.steps.end()) {
        cell.steps.push_back(step.step);
      }
    }
  }
  return view;
}

std::string WorkloadName(const CellView& cell, const std::string& step) {
  return cell.steps.size() > 1 ? cell.workload() + "/" + step : cell.workload();
}

std::string WhyNotJudged(const MetricSeries& base, const std::string& base_name,
                         const MetricSeries& test, const std::string& test_name) {
  for (const auto& [series, name] : {std::pair(&test, &test_name), std::pair(&base, &base_name)}) {
    if (series->missing > 0) {
      return fmt::format("{} of {} trials of {} have no value: {}", series->missing,
                         series->missing + series->series.size(), *name, series->why_missing);
    }
  }
  for (const auto& [series, name] : {std::pair(&test, &test_name), std::pair(&base, &base_name)}) {
    if (!series->series.empty()) continue;
    // No trial at all, or none with the ten samples that a percentile needs above it.
    const MetricSeries& other = series == &test ? base : test;
    return "no valid trial of " + *name + " has a value for " +
           (series->metric.name.empty() ? other.metric.name : series->metric.name);
  }
  return "";
}

std::vector<MetricSeries> SeriesOf(const CellView& cell, const std::vector<std::string>& agents) {
  std::vector<MetricSeries> all;
  for (const std::string& step : cell.steps) {
    MetricSeries primary = OnePrimary(cell, step, agents);
    if (primary.series.empty() && primary.missing == 0) continue;
    all.push_back(std::move(primary));

    std::vector<std::string> operations;
    std::vector<v1::Figure> figures;
    bool figure_is_primary = false;
    for (const ValidTrial& trial : cell.valid) {
      for (const HostStep& host : HostsIn(trial, step, agents)) {
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

}  // namespace labrack::compare
