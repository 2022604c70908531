#include "controller/compare/series.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "proto/convert/convert.h"
#include "storage/base/check.h"

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

// The scope's part of a step.
std::vector<HostStep> HostsIn(const StepHosts& step, const Scope& scope) {
  std::vector<HostStep> hosts;
  for (const HostStep& host : step.hosts) {
    if (scope.empty() || std::ranges::binary_search(scope, host.agent_id)) hosts.push_back(host);
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

const std::string& FewSamples() {
  static const std::string text = fmt::format("fewer than {} samples above it", kSamplesAboveMin);
  return text;
}

Metric LatencyMetric(double percentile, const std::string& operation) {
  return {.kind = MetricKind::kLatency,
          .name = PercentileName(percentile) + (operation.empty() ? "" : " " + operation),
          .unit = "ns",
          .lower_is_better = true};
}

Metric FigureMetric(const v1::Figure& figure, bool several_hosts) {
  return {.kind = MetricKind::kFigure,
          .name = figure.name() + (several_hosts ? ", median host" : ""),
          .unit = figure.unit(),
          .lower_is_better = figure.lower_is_better()};
}

void AddValue(MetricSeries& metric, std::uint32_t repeat, std::optional<double> value,
              std::string_view why_missing) {
  if (value && std::isfinite(*value) && *value > 0) {
    metric.series.push_back({repeat, *value});
    return;
  }
  ++metric.missing;
  if (metric.why_missing.empty()) {
    if (value) why_missing = "the value is not positive, so there is no ratio";
    metric.why_missing = why_missing;
  }
}

// A metric that the trials before, `missing` of them, did not have.
MetricSeries NewSeries(const std::string& step, Metric metric, std::uint32_t missing,
                       std::string_view why_missing) {
  MetricSeries series{.step = step, .metric = std::move(metric), .missing = missing};
  if (missing > 0) series.why_missing = why_missing;
  return series;
}

constexpr std::string_view kNoSuchFigure = "a host has no such figure";

}  // namespace

Scope ScopeOf(std::vector<std::string> agents) {
  std::ranges::sort(agents);
  return agents;
}

StepValues::StepValues(std::string step, bool several_hosts, const std::set<double>& percentiles)
    : step_(std::move(step)), several_hosts_(several_hosts) {
  for (const double percentile : percentiles) {
    percentiles_.emplace(percentile, NewSeries(step_, LatencyMetric(percentile, ""), 0, ""));
  }
}

void StepValues::Add(std::uint32_t repeat, const std::vector<HostStep>& hosts, Spread spread) {
  const v1::StepResult& first = *hosts.front().result;
  if (trials_ == 0) primary_ = NewSeries(step_, PrimaryMetric(first, several_hosts_), 0, "");
  if (const std::optional<Work> work = WorkOf(first); work) {
    const FleetRates rates = RateFleet(hosts, *work, spread);
    AddValue(primary_, repeat, rates.common, "a host has no value");
    if (hosts.size() > 1) {
      primary_.first_done.push_back(rates.first_done);
      primary_.last_done.push_back(rates.last_done);
    }
  } else {
    AddValue(primary_, repeat, PrimaryValue(hosts), "a host has no value");
  }
  for (const HostStep& host : hosts) {
    figure_is_primary_ = host.result->primary() == v1::PRIMARY_METRIC_FIGURE;
    for (const v1::OperationResult& operation : host.result->operations()) {
      if (!IsCounted(*host.result, operation.operation())) continue;
      if (latency_places_.try_emplace(operation.operation(), latencies_.size()).second) {
        latencies_.push_back(NewSeries(
            step_, LatencyMetric(kPercentileShown, operation.operation()), trials_, FewSamples()));
      }
    }
    for (const v1::Figure& figure : host.result->figures()) {
      if (figure_places_.try_emplace(figure.name(), figures_.size()).second) {
        figures_.push_back(
            NewSeries(step_, FigureMetric(figure, several_hosts_), trials_, kNoSuchFigure));
      }
    }
  }
  for (const auto& [operation, place] : latency_places_) {
    AddValue(latencies_[place], repeat, PercentileOf(hosts, operation, kPercentileShown),
             FewSamples());
  }
  for (const auto& [name, place] : figure_places_) {
    AddValue(figures_[place], repeat, FigureOf(hosts, name), kNoSuchFigure);
  }
  for (auto& [percentile, series] : percentiles_) {
    AddValue(series, repeat, PercentileOf(hosts, "", percentile), FewSamples());
  }
  ++trials_;
}

void StepValues::AppendTo(std::vector<MetricSeries>& all, bool of_fio) const {
  all.push_back(primary_);
  for (const MetricSeries& latency : latencies_) {
    if (!latency.series.empty()) all.push_back(latency);
  }
  for (std::size_t i = figure_is_primary_ ? 1 : 0; i < figures_.size(); ++i) {
    if (of_fio && figures_[i].metric.unit == "%") continue;
    all.push_back(figures_[i]);
  }
}

void CellView::Add(const v1::TrialRecord& trial) {
  ++valid;
  const Spread spread = SpreadOf(cell->workload());
  for (const StepHosts& step : StepsOfTrial(trial)) {
    if (std::ranges::find(steps, step.step) == steps.end()) steps.push_back(step.step);
    for (auto& [scope, values] : scopes) {
      const std::vector<HostStep> hosts = HostsIn(step, scope);
      if (hosts.empty()) continue;
      values.steps.try_emplace(step.step, step.step, scope.size() > 1, values.percentiles)
          .first->second.Add(trial.summary().repeat(), hosts, spread);
    }
  }
}

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

CellView* RunView::CellOf(const v1::TrialRecord& trial) {
  const auto found = by_index.find(trial.summary().cell());
  return found == by_index.end() ? nullptr : &cells[found->second];
}

ScopeValues& RunView::Want(const CellView& cell, const std::vector<std::string>& agents) {
  return cells[static_cast<std::size_t>(&cell - cells.data())].scopes[ScopeOf(agents)];
}

RunView::RunView(const v1::RunRecord& run) : record(&run) {
  std::map<CellKey, std::size_t> group_of;
  for (const v1::PlannedCell& planned : run.plan().cells()) {
    const std::size_t place = cells.size();
    by_index.try_emplace(planned.index(), place);
    CellView& cell = cells.emplace_back();
    cell.cell = &planned;
    // A plan has each name once; of a record that does not, the first counts.
    if (!places.try_emplace({cell.stack(), cell.workload(), cell.parameters()}, place).second) {
      continue;
    }
    const auto [group, is_new] =
        group_of.try_emplace({"", cell.workload(), cell.parameters()}, groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].cells.push_back(place);
  }
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

namespace {

const ScopeValues& ValuesOf(const CellView& cell, const std::vector<std::string>& agents) {
  const auto found = cell.scopes.find(ScopeOf(agents));
  LABRACK_CHECK(found != cell.scopes.end());
  return found->second;
}

}  // namespace

std::vector<MetricSeries> SeriesOf(const CellView& cell, const std::vector<std::string>& agents) {
  const ScopeValues& values = ValuesOf(cell, agents);
  std::vector<MetricSeries> all;
  for (const std::string& step : cell.steps) {
    const auto found = values.steps.find(step);
    if (found != values.steps.end()) found->second.AppendTo(all, cell.cell->workload().has_fio());
  }
  return all;
}

MetricSeries LatencySeries(const CellView& cell, const std::string& step,
                           const std::vector<std::string>& agents, double percentile) {
  const ScopeValues& values = ValuesOf(cell, agents);
  const auto found = values.steps.find(step);
  if (found != values.steps.end()) return found->second.Percentile(percentile);
  return NewSeries(step, LatencyMetric(percentile, ""), 0, "");
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
