#include "agent/telemetry/collector.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/convert/convert.h"

namespace labrack::telemetry {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

MetricFamily Family(std::string name, std::string help, MetricType type) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

void AddValue(MetricFamily& family, Labels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

void AddHistogram(MetricFamily& family, Labels labels, const Latencies& latencies) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.histogram.sample_count = latencies.count;
  metric.histogram.sample_sum = static_cast<double>(latencies.sum_ns) * 1e-9;
  const std::vector<std::uint64_t> bounds = BucketBoundsNs();
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const std::uint64_t count = latencies.at_most.empty() ? 0 : latencies.at_most[i];
    metric.histogram.bucket.push_back(
        {.cumulative_count = count, .upper_bound = static_cast<double>(bounds[i]) / 1e9});
  }
  metric.histogram.bucket.push_back({.cumulative_count = latencies.count,
                                     .upper_bound = std::numeric_limits<double>::infinity()});
  family.metric.push_back(std::move(metric));
}

Labels LabelsOf(const SeriesKey& key) {
  return {{"op", key.op},
          {"personality", key.personality},
          {"workload", key.workload},
          {"stack", key.stack},
          {"device_class", key.device_class}};
}

// The name of the field that is set in a message whose fields are alternatives: "sync_pages",
// "ext4".
std::string KindOf(const google::protobuf::Message& message, const char* oneof) {
  const auto* field = message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName(oneof));
  return field == nullptr ? std::string("none") : field->name();
}

SeriesKey KeyOf(const v1::AssignmentSpec& spec, const std::string& op) {
  std::string device_class = spec.disks().kind() == v1::DISK_KIND_RAM ? "ram" : "file";
  if (!spec.stand_in().empty() || spec.stack().host().has_dir()) device_class = "directory";
  return {.op = op,
          .personality = KindOf(spec.workload(), "kind"),
          .workload = spec.workload().name(),
          .stack = spec.stack().name(),
          .device_class = std::move(device_class)};
}

// PHASE_WARM_UP -> "warm_up"
std::string PhaseLabel(v1::PhaseKind phase) {
  std::string text = v1::PhaseKind_Name(phase);
  if (text.starts_with("PHASE_")) text.erase(0, 6);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The measured window begins that much after the start.
std::int64_t WarmUpNs(const v1::Workload& workload) {
  if (workload.has_random()) return workload.random().warmup();
  if (workload.has_sync_pages()) return workload.sync_pages().warmup();
  return 0;
}

double Seconds(Nanoseconds duration) { return static_cast<double>(duration.count()) * 1e-9; }

}  // namespace

std::vector<std::uint64_t> BucketBoundsNs() {
  std::vector<std::uint64_t> bounds;
  for (std::uint64_t decade = 1'000; decade <= 10'000'000'000; decade *= 10) {
    for (std::uint64_t factor : {1U, 2U, 5U}) bounds.push_back(decade * factor);
  }
  bounds.push_back(100'000'000'000);
  return bounds;
}

void Latencies::Add(const Histogram& histogram) {
  const std::vector<std::uint64_t> bounds = BucketBoundsNs();
  at_most.resize(bounds.size());
  for (std::size_t i = 0; i < bounds.size(); ++i) at_most[i] += histogram.CountAtMost(bounds[i]);
  count += histogram.count();
  sum_ns += histogram.sum_ns();
}

void Latencies::Add(const Latencies& other) {
  at_most.resize(std::max(at_most.size(), other.at_most.size()));
  for (std::size_t i = 0; i < other.at_most.size(); ++i) at_most[i] += other.at_most[i];
  count += other.count;
  sum_ns += other.sum_ns;
}

void Counts::Add(const v1::OperationResult& operation) {
  operations += operation.count();
  bytes += operation.bytes();
  errors += operation.error_count();
  // Another layout comes from another version of the worker; its counts are right all the same.
  if (operation.has_service()) {
    if (const Result<Histogram> histogram = convert::FromMessage(operation.service())) {
      service.Add(*histogram);
    }
  }
  if (operation.has_response()) {
    if (const Result<Histogram> histogram = convert::FromMessage(operation.response())) {
      if (!response) response.emplace();
      response->Add(*histogram);
    }
  }
}

void Counts::Add(const Counts& other) {
  operations += other.operations;
  bytes += other.bytes;
  errors += other.errors;
  service.Add(other.service);
  if (!other.response) return;
  if (!response) response.emplace();
  response->Add(*other.response);
}

void Collector::SetFigures(const AgentFigures& figures) {
  const std::lock_guard lock(mutex_);
  figures_ = figures;
}

void Collector::TrialBegan(const v1::AssignmentSpec& spec) {
  const std::lock_guard lock(mutex_);
  Trial& trial = trials_[spec.assignment_id()];
  trial.run_id = spec.run_id();
  trial.playbook = spec.playbook_name();
  trial.cell = spec.cell_name();
  trial.workload = spec.workload().name();
  trial.stack = spec.stack().name();
  trial.used = clock_.Now();
  trial.ended.reset();
}

void Collector::PhaseBegan(const v1::AssignmentSpec& spec, v1::PhaseKind phase, Nanoseconds wall) {
  const std::lock_guard lock(mutex_);
  const auto trial = trials_.find(spec.assignment_id());
  if (trial == trials_.end()) return;
  trial->second.phase = PhaseLabel(phase);
  trial->second.phase_start = Seconds(wall);
  trial->second.used = clock_.Now();
}

Collector::Series* Collector::Find(const SeriesKey& key) {
  const auto found = series_.find(key);
  if (found != series_.end()) {
    found->second.used = clock_.Now();
    return &found->second;
  }
  if (series_.size() >= kSeriesMax) {
    ++dropped_series_;
    return nullptr;
  }
  Series& series = series_[key];
  series.used = clock_.Now();
  return &series;
}

void Collector::StepRuns(const v1::AssignmentSpec& spec,
                         const std::vector<v1::OperationResult>& operations) {
  const std::lock_guard lock(mutex_);
  for (const v1::OperationResult& operation : operations) {
    Series* series = Find(KeyOf(spec, operation.operation()));
    if (series == nullptr) continue;
    series->live = {};
    series->live.Add(operation);
  }
}

void Collector::StepDone(const v1::AssignmentSpec& spec, const v1::StepResult& step) {
  const std::lock_guard lock(mutex_);
  for (const v1::OperationResult& operation : step.operations()) {
    Series* series = Find(KeyOf(spec, operation.operation()));
    if (series == nullptr) continue;
    series->live = {};
    series->done.Add(operation);
  }
  // fio's window begins after its own lay-out, so that it says nothing of the start.
  if (step.intended_start_mono_ns() != 0 && !spec.workload().has_fio()) {
    const std::int64_t started = step.measure_begin_mono_ns() - WarmUpNs(spec.workload());
    start_skew_ = Seconds(Nanoseconds(started - step.intended_start_mono_ns()));
    start_skew_at_ = clock_.Now();
  }
}

void Collector::TrialEnded(const v1::AssignmentSpec& spec, v1::Outcome outcome) {
  const std::lock_guard lock(mutex_);
  std::string name = v1::Outcome_Name(outcome);
  if (name.starts_with("OUTCOME_")) name.erase(0, 8);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  ++outcomes_[name];
  const auto trial = trials_.find(spec.assignment_id());
  if (trial == trials_.end()) return;
  trial->second.ended = clock_.Now();
  trial->second.used = clock_.Now();
  trial->second.phase = "done";
  // A counter never goes back: what a crashed step had counted until then stays.
  for (auto& [key, series] : series_) {
    series.done.Add(series.live);
    series.live = {};
  }
}

void Collector::Expire() const {
  const TimePoint now = clock_.Now();
  std::erase_if(trials_, [&](const auto& entry) {
    return entry.second.ended && now - *entry.second.ended > grace_;
  });
  std::erase_if(series_, [&](const auto& entry) {
    const auto& [key, series] = entry;
    if (now - series.used <= grace_) return false;
    return std::none_of(trials_.begin(), trials_.end(), [&](const auto& trial) {
      return trial.second.workload == key.workload && trial.second.stack == key.stack;
    });
  });
}

std::vector<MetricFamily> Collector::IoFamilies() const {
  MetricFamily operations =
      Family("labrack_io_ops_total", "Operations that workloads have done.", MetricType::Counter);
  MetricFamily bytes =
      Family("labrack_io_bytes_total", "Bytes that these operations moved.", MetricType::Counter);
  MetricFamily errors =
      Family("labrack_io_errors_total", "Operations that failed.", MetricType::Counter);
  MetricFamily service =
      Family("labrack_io_service_seconds", "Time of operations from their start to their end.",
             MetricType::Histogram);
  MetricFamily response =
      Family("labrack_io_response_seconds",
             "Time of operations of open loops from their scheduled start.", MetricType::Histogram);
  for (const auto& [key, series] : series_) {
    Counts counts = series.done;
    counts.Add(series.live);
    AddValue(operations, LabelsOf(key), static_cast<double>(counts.operations));
    AddValue(bytes, LabelsOf(key), static_cast<double>(counts.bytes));
    AddValue(errors, LabelsOf(key), static_cast<double>(counts.errors));
    AddHistogram(service, LabelsOf(key), counts.service);
    if (counts.response) AddHistogram(response, LabelsOf(key), *counts.response);
  }
  return {operations, bytes, errors, service, response};
}

std::vector<MetricFamily> Collector::TrialFamilies() const {
  MetricFamily phase = Family("labrack_phase_info",
                              "The phase of a trial; join with * on(instance) group_left(run_id).",
                              MetricType::Gauge);
  MetricFamily start = Family("labrack_phase_start_timestamp_seconds",
                              "When the running trial's phase began.", MetricType::Gauge);
  // One a host at a time, or joins with it would find several: the trial that runs, else the last
  // one.
  const Trial* current = nullptr;
  for (const auto& [id, trial] : trials_) {
    if (trial.phase.empty()) continue;
    const auto rank = [](const Trial& one) { return std::pair(!one.ended, one.used); };
    if (current == nullptr || rank(trial) > rank(*current)) current = &trial;
  }
  if (current != nullptr) {
    AddValue(phase,
             {{"run_id", current->run_id},
              {"playbook", current->playbook},
              {"phase", current->phase},
              {"workload", current->workload},
              {"stack", current->stack},
              {"cell", current->cell},
              {"git_sha", info_.git_commit}},
             1);
    if (!current->ended) AddValue(start, {}, current->phase_start);
  }
  MetricFamily ended = Family("labrack_trials_total",
                              "Trials that have ended, by the outcome of "
                              "their measurement.",
                              MetricType::Counter);
  for (const auto& [outcome, count] : outcomes_) {
    AddValue(ended, {{"outcome", outcome}}, static_cast<double>(count));
  }
  MetricFamily skew = Family("labrack_start_skew_seconds",
                             "How far the newest common start was missed here.", MetricType::Gauge);
  if (start_skew_ && clock_.Now() - start_skew_at_ <= grace_) AddValue(skew, {}, *start_skew_);
  return {phase, start, ended, skew};
}

std::vector<MetricFamily> Collector::AgentFamilies() const {
  std::vector<MetricFamily> families;
  families.push_back(Family("labrack_agent_build_info", "Which agent this is.", MetricType::Gauge));
  AddValue(
      families.back(),
      {{"agent_id", info_.agent_id}, {"version", info_.version}, {"git_sha", info_.git_commit}}, 1);
  const auto add = [&](const char* name, const char* help, MetricType type, double value) {
    families.push_back(Family(name, help, type));
    AddValue(families.back(), {}, value);
  };
  add("labrack_agent_connected", "Whether the session with the controller stands.",
      MetricType::Gauge, figures_.connected ? 1 : 0);
  add("labrack_agent_assignments", "Trials that the agent holds: running, or not yet acknowledged.",
      MetricType::Gauge, static_cast<double>(figures_.held_assignments));
  add("labrack_agent_spool_bytes", "Bytes of spools that are not acknowledged as a whole.",
      MetricType::Gauge, static_cast<double>(figures_.spool_bytes));
  add("labrack_metrics_dropped_series_total",
      "Updates of series beyond the limit, which are not exported.", MetricType::Counter,
      static_cast<double>(dropped_series_));
  if (figures_.clock_uncertainty) {
    add("labrack_agent_clock_uncertainty_seconds",
        "How exactly the controller's clock is known here.", MetricType::Gauge,
        Seconds(*figures_.clock_uncertainty));
  }
  if (figures_.round_trip) {
    add("labrack_agent_round_trip_seconds", "Best round trip to the controller.", MetricType::Gauge,
        Seconds(*figures_.round_trip));
  }
  return families;
}

std::vector<MetricFamily> Collector::Collect() const {
  const std::lock_guard lock(mutex_);
  Expire();
  std::vector<MetricFamily> families = IoFamilies();
  for (auto part : {TrialFamilies(), AgentFamilies()}) {
    families.insert(families.end(), part.begin(), part.end());
  }
  // A family without a sample is not written: its HELP and TYPE alone say nothing.
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return families;
}

}  // namespace labrack::telemetry
