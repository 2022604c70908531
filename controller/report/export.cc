#include "controller/report/export.h"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "controller/compare/series.h"
#include "controller/compare/validity.h"
#include "proto/convert/convert.h"
#include "proto/convert/names.h"
#include "storage/base/histogram.h"

namespace labrack::report {
namespace {

using Json = nlohmann::ordered_json;

struct TrialView {
  const v1::TrialRecord* trial;
  const v1::PlannedCell* cell;
  compare::TrialAssessment assessment;
};

struct RunView {
  const v1::RunRecord* record;
  std::vector<TrialView> trials;  // in the order of execution
};

RunView ViewRun(const v1::RunRecord& run) {
  std::map<std::uint32_t, const v1::PlannedCell*> cells;
  for (const v1::PlannedCell& cell : run.plan().cells()) cells.try_emplace(cell.index(), &cell);
  RunView view{.record = &run, .trials = {}};
  for (const v1::TrialRecord& trial : run.trials()) {
    const auto cell = cells.find(trial.summary().cell());
    if (cell == cells.end()) continue;
    view.trials.push_back({.trial = &trial,
                           .cell = cell->second,
                           .assessment = compare::AssessTrial(*cell->second, trial)});
  }
  return view;
}

// One step of one host of one trial, with all that a row needs.
struct StepRow {
  const v1::RunRecord* run;
  const TrialView* trial;
  const v1::AssignmentRecord* assignment;
  const v1::StepResult* step;

  const v1::PlannedCell& cell() const { return *trial->cell; }
  std::int64_t measured_ns() const {
    return step->measure_end_mono_ns() - step->measure_begin_mono_ns();
  }
  double seconds() const { return static_cast<double>(measured_ns()) * 1e-9; }
};

void ForEachStep(const RunView& view, const std::function<void(const StepRow&)>& use) {
  for (const TrialView& trial : view.trials) {
    for (const v1::AssignmentRecord& assignment : trial.trial->assignments()) {
      for (const v1::StepResult& step : assignment.result().steps()) {
        use({view.record, &trial, &assignment, &step});
      }
    }
  }
}

std::optional<Histogram> Latency(const v1::OperationResult& operation) {
  const bool open_loop = operation.has_response() && operation.response().count_size() > 0;
  if (!open_loop && !operation.has_service()) return std::nullopt;
  Result<Histogram> histogram =
      convert::FromMessage(open_loop ? operation.response() : operation.service());
  if (!histogram || histogram->count() == 0) return std::nullopt;
  return std::move(*histogram);
}

// --- CSV ---

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string CsvLine(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + CsvCell(cell);
  return line + "\n";
}

std::string CsvNumber(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : "";
}

std::string CsvPercentile(const std::optional<Histogram>& latency, double percentile) {
  if (!latency) return "";
  const std::optional<Nanoseconds> value =
      latency->Percentile(percentile, compare::kSamplesAboveMin);
  return value ? std::to_string(value->count()) : "";
}

std::vector<std::string> CsvKey(const StepRow& row) {
  const v1::TrialSummary& summary = row.trial->trial->summary();
  return {row.run->summary().run_id(),
          row.run->summary().playbook_name(),
          std::to_string(summary.index() + 1),
          std::to_string(summary.repeat() + 1),
          row.cell().stack().name(),
          row.cell().workload().name(),
          row.cell().parameters_text(),
          row.assignment->host_name(),
          row.assignment->agent_id(),
          row.trial->assessment.valid() ? "1" : "0",
          row.trial->assessment.reason,
          row.step->step(),
          CsvNumber(row.seconds()),
          CsvNumber(static_cast<double>(row.step->cpu().user_ns()) * 1e-9),
          CsvNumber(static_cast<double>(row.step->cpu().system_ns()) * 1e-9)};
}

std::vector<std::string> CsvOperation(const StepRow& row, const v1::OperationResult& operation) {
  const std::optional<Histogram> latency = Latency(operation);
  const double seconds = row.seconds();
  const auto rate = [&](std::uint64_t amount) {
    return seconds > 0 ? CsvNumber(static_cast<double>(amount) / seconds) : "";
  };
  return {operation.operation(),
          compare::IsCounted(*row.step, operation.operation()) ? "1" : "0",
          std::to_string(operation.count()),
          std::to_string(operation.bytes()),
          std::to_string(operation.error_count()),
          rate(operation.count()),
          rate(operation.bytes()),
          latency ? CsvNumber(latency->mean_ns()) : "",
          CsvPercentile(latency, 0.5),
          CsvPercentile(latency, 0.99),
          CsvPercentile(latency, 0.999),
          latency ? std::to_string(latency->max_ns()) : ""};
}

constexpr std::size_t kCsvOperationCells = 12;

// --- OpenMetrics ---

std::string LabelValue(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
      escaped += c;
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Labels(const StepRow& row, const std::string& operation, const std::string& quantile) {
  const v1::TrialSummary& summary = row.trial->trial->summary();
  std::string text = fmt::format(
      "{{run_id=\"{}\",playbook=\"{}\",trial=\"{}\",stack=\"{}\",workload=\"{}\",parameters=\"{}\","
      "host=\"{}\",step=\"{}\",valid=\"{}\"",
      LabelValue(row.run->summary().run_id()), LabelValue(row.run->summary().playbook_name()),
      summary.index() + 1, LabelValue(row.cell().stack().name()),
      LabelValue(row.cell().workload().name()), LabelValue(row.cell().parameters_text()),
      LabelValue(row.assignment->host_name()), LabelValue(row.step->step()),
      row.trial->assessment.valid() ? "true" : "false");
  if (!operation.empty()) text += fmt::format(",op=\"{}\"", LabelValue(operation));
  if (!quantile.empty()) text += fmt::format(",quantile=\"{}\"", quantile);
  return text + "}";
}

// Virtual time is the same on all hosts.
std::int64_t OffsetOf(const StepRow& row) {
  const v1::AssignmentResult& result = row.assignment->result();
  return result.clock() == "virtual" ? 0 : result.clock_offset_ns();
}

// Results carry monotonic times only. The last step's end is put at the run's end (or, while it
// goes on, the first step's begin at its creation), and the others at their distance from it.
class WallTimes {
 public:
  explicit WallTimes(const RunView& view) {
    std::int64_t first = INT64_MAX;
    std::int64_t last = INT64_MIN;
    ForEachStep(view, [&](const StepRow& row) {
      const std::int64_t offset = OffsetOf(row);
      first = std::min(first, row.step->measure_begin_mono_ns() + offset);
      last = std::max(last, row.step->measure_end_mono_ns() + offset);
    });
    const v1::RunSummary& run = view.record->summary();
    if (first > last) return;
    shift_ = run.ended_wall_ns() > 0 ? run.ended_wall_ns() - last : run.created_wall_ns() - first;
  }
  std::string SecondsAt(const StepRow& row) const {
    const std::int64_t wall = row.step->measure_end_mono_ns() + OffsetOf(row) + shift_;
    return fmt::format("{:.3f}", static_cast<double>(wall) * 1e-9);
  }

 private:
  std::int64_t shift_ = 0;
};

struct Family {
  const char* name;
  const char* type;
  const char* unit;  // empty: none
  const char* help;
};

std::string FamilyHead(const Family& family) {
  std::string text = fmt::format("# TYPE {} {}\n", family.name, family.type);
  if (*family.unit != '\0') text += fmt::format("# UNIT {} {}\n", family.name, family.unit);
  return text + fmt::format("# HELP {} {}\n", family.name, family.help);
}

using CountOf = std::function<std::uint64_t(const v1::OperationResult&)>;

std::string CounterFamily(const RunView& view, const WallTimes& times, const Family& family,
                          const CountOf& count) {
  std::string samples;
  ForEachStep(view, [&](const StepRow& row) {
    for (const v1::OperationResult& operation : row.step->operations()) {
      samples +=
          fmt::format("{}_total{} {} {}\n", family.name, Labels(row, operation.operation(), ""),
                      count(operation), times.SecondsAt(row));
    }
  });
  return samples.empty() ? "" : FamilyHead(family) + samples;
}

std::string LatencyFamily(const RunView& view, const WallTimes& times) {
  const Family family{"labrack_result_latency_seconds", "summary", "seconds",
                      "Latency of operations; a quantile needs 10 samples above it."};
  constexpr std::array<std::pair<double, const char*>, 3> kQuantiles{
      {{0.5, "0.5"}, {0.99, "0.99"}, {0.999, "0.999"}}};
  std::string samples;
  ForEachStep(view, [&](const StepRow& row) {
    const std::string at = times.SecondsAt(row);
    for (const v1::OperationResult& operation : row.step->operations()) {
      const std::optional<Histogram> latency = Latency(operation);
      if (!latency) continue;
      for (const auto& [quantile, text] : kQuantiles) {
        const std::optional<Nanoseconds> value =
            latency->Percentile(quantile, compare::kSamplesAboveMin);
        if (!value) continue;
        samples +=
            fmt::format("{}{} {:.9g} {}\n", family.name, Labels(row, operation.operation(), text),
                        static_cast<double>(value->count()) * 1e-9, at);
      }
      const std::string labels = Labels(row, operation.operation(), "");
      samples += fmt::format("{}_count{} {} {}\n", family.name, labels, latency->count(), at);
      samples += fmt::format("{}_sum{} {:.9g} {}\n", family.name, labels,
                             static_cast<double>(latency->sum_ns()) * 1e-9, at);
    }
  });
  return samples.empty() ? "" : FamilyHead(family) + samples;
}

std::string GaugeFamily(const RunView& view, const WallTimes& times, const Family& family,
                        const std::function<double(const StepRow&)>& value) {
  std::string samples;
  ForEachStep(view, [&](const StepRow& row) {
    samples += fmt::format("{}{} {:.9g} {}\n", family.name, Labels(row, "", ""), value(row),
                           times.SecondsAt(row));
  });
  return samples.empty() ? "" : FamilyHead(family) + samples;
}

std::string FigureFamily(const RunView& view, const WallTimes& times) {
  const Family family{"labrack_result_figure", "gauge", "",
                      "Named figures of commands and jobs, in their own units."};
  std::string samples;
  ForEachStep(view, [&](const StepRow& row) {
    for (const v1::Figure& figure : row.step->figures()) {
      if (!std::isfinite(figure.value())) continue;
      std::string labels = Labels(row, "", "");
      labels.pop_back();
      samples += fmt::format("{}{},figure=\"{}\",figure_unit=\"{}\"}} {:.9g} {}\n", family.name,
                             labels, LabelValue(figure.name()), LabelValue(figure.unit()),
                             figure.value(), times.SecondsAt(row));
    }
  });
  return samples.empty() ? "" : FamilyHead(family) + samples;
}

// --- fio ---

double DeviationNs(const Histogram& histogram) {
  const double mean = histogram.mean_ns();
  double sum = 0;
  double count = 0;
  for (const auto& [index, times] : histogram.NonEmpty()) {
    const double middle = (static_cast<double>(Histogram::LowerBound(index)) +
                           static_cast<double>(Histogram::UpperBound(index))) /
                          2;
    sum += static_cast<double>(times) * (middle - mean) * (middle - mean);
    count += static_cast<double>(times);
  }
  return count > 0 ? std::sqrt(sum / count) : 0;
}

Json FioLatency(const Histogram& histogram) {
  Json latency = {{"min", histogram.min_ns()},
                  {"max", histogram.max_ns()},
                  {"mean", histogram.mean_ns()},
                  {"stddev", DeviationNs(histogram)},
                  {"N", histogram.count()}};
  if (histogram.count() == 0) return latency;
  Json percentiles = Json::object();
  for (double percent : {1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0,
                         99.5, 99.9, 99.95, 99.99}) {
    const std::optional<Nanoseconds> value = histogram.Percentile(percent / 100);
    if (value) percentiles[fmt::format("{:.6f}", percent)] = value->count();
  }
  latency["percentile"] = percentiles;
  return latency;
}

struct Merged {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Histogram latency;
};

Json FioDirection(const Merged& merged, const StepRow& row) {
  const double seconds = row.seconds();
  const double per_second = seconds > 0 ? 1 / seconds : 0;
  const double bytes_per_second = static_cast<double>(merged.bytes) * per_second;
  return {{"io_bytes", merged.bytes},
          {"io_kbytes", merged.bytes >> 10},
          {"bw_bytes", std::llround(bytes_per_second)},
          {"bw", std::llround(bytes_per_second / 1024)},
          {"iops", static_cast<double>(merged.count) * per_second},
          {"runtime", row.measured_ns() / 1'000'000},
          {"total_ios", merged.count},
          {"short_ios", 0},
          {"drop_ios", 0},
          {"lat_ns", FioLatency(merged.latency)}};
}

// fio knows four directions. Ours are told by the operation's name; what is none of them (create,
// stat, delete) stands under "labrack_operations".
const char* FioDirectionOf(const std::string& operation) {
  for (const char* name : {"read", "checksum"}) {
    if (operation.starts_with(name)) return "read";
  }
  for (const char* name : {"write", "append", "copy"}) {
    if (operation.starts_with(name)) return "write";
  }
  if (operation.starts_with("trim")) return "trim";
  if (operation.starts_with("fsync") || operation.starts_with("sync")) return "sync";
  return "";
}

Json FioJob(const StepRow& row) {
  std::map<std::string, Merged> directions;
  Json others = Json::object();
  std::uint64_t errors = 0;
  for (const v1::OperationResult& operation : row.step->operations()) {
    errors += operation.error_count();
    const std::optional<Histogram> latency = Latency(operation);
    const std::string direction = FioDirectionOf(operation.operation());
    if (direction.empty()) {
      Merged alone{.count = operation.count(), .bytes = operation.bytes(), .latency = Histogram()};
      if (latency) alone.latency = *latency;
      others[operation.operation()] = FioDirection(alone, row);
      continue;
    }
    Merged& merged = directions[direction];
    merged.count += operation.count();
    merged.bytes += operation.bytes();
    if (latency) merged.latency.Merge(*latency);
  }
  const v1::CpuUse& cpu = row.step->cpu();
  const double wall = static_cast<double>(row.measured_ns());
  Json job = {{"jobname", convert::CellName(row.cell()) + "/" + row.step->step()},
              {"groupid", row.trial->trial->summary().index()},
              {"error", row.trial->assessment.valid() ? 0 : 1}};
  job["job options"] = {{"name", row.step->step()},
                        {"labrack_trial", std::to_string(row.trial->trial->summary().index() + 1)},
                        {"labrack_valid", row.trial->assessment.valid() ? "1" : "0"}};
  for (const char* direction : {"read", "write", "trim"}) {
    job[direction] = FioDirection(directions[direction], row);
  }
  job["sync"] = {{"total_ios", directions["sync"].count},
                 {"lat_ns", FioLatency(directions["sync"].latency)}};
  job["job_runtime"] = row.measured_ns() / 1'000'000;
  job["usr_cpu"] = wall > 0 ? 100 * static_cast<double>(cpu.user_ns()) / wall : 0;
  job["sys_cpu"] = wall > 0 ? 100 * static_cast<double>(cpu.system_ns()) / wall : 0;
  job["ctx"] = cpu.context_switches_voluntary() + cpu.context_switches_involuntary();
  job["majf"] = cpu.page_faults_major();
  if (errors > 0) job["total_err"] = errors;
  if (!others.empty()) job["labrack_operations"] = others;
  job["hostname"] = row.assignment->host_name();
  job["port"] = 0;
  return job;
}

}  // namespace

std::string FormatCsv(const v1::RunRecord& run) {
  std::string text = CsvLine({"run_id",       "playbook",
                              "trial",        "repeat",
                              "stack",        "workload",
                              "parameters",   "host",
                              "agent_id",     "valid",
                              "reason",       "step",
                              "seconds",      "cpu_user_s",
                              "cpu_system_s", "operation",
                              "counted",      "count",
                              "bytes",        "errors",
                              "per_second",   "bytes_per_second",
                              "mean_ns",      "p50_ns",
                              "p99_ns",       "p999_ns",
                              "max_ns",       "figure",
                              "figure_value", "figure_unit"});
  const RunView view = ViewRun(run);
  ForEachStep(view, [&](const StepRow& row) {
    const auto add = [&](const std::vector<std::string>& operation,
                         const std::vector<std::string>& figure) {
      std::vector<std::string> cells = CsvKey(row);
      cells.insert(cells.end(), operation.begin(), operation.end());
      cells.insert(cells.end(), figure.begin(), figure.end());
      text += CsvLine(cells);
    };
    const std::vector<std::string> none(kCsvOperationCells);
    for (const v1::OperationResult& operation : row.step->operations()) {
      add(CsvOperation(row, operation), {"", "", ""});
    }
    for (const v1::Figure& figure : row.step->figures()) {
      add(none, {figure.name(), CsvNumber(figure.value()), figure.unit()});
    }
    if (row.step->operations().empty() && row.step->figures().empty()) add(none, {"", "", ""});
  });
  return text;
}

std::string FormatOpenMetrics(const v1::RunRecord& run) {
  const RunView view = ViewRun(run);
  const WallTimes times(view);
  std::string text;
  text += CounterFamily(
      view, times, {"labrack_result_operations", "counter", "", "Operations of a measured step."},
      [](const v1::OperationResult& operation) { return operation.count(); });
  text += CounterFamily(view, times,
                        {"labrack_result_bytes", "counter", "bytes", "Bytes of a measured step."},
                        [](const v1::OperationResult& operation) { return operation.bytes(); });
  text += CounterFamily(
      view, times,
      {"labrack_result_errors", "counter", "", "Failed operations of a measured step."},
      [](const v1::OperationResult& operation) { return operation.error_count(); });
  text += LatencyFamily(view, times);
  text += GaugeFamily(view, times,
                      {"labrack_result_measured_seconds", "gauge", "seconds",
                       "Length of the measured window of a step."},
                      [](const StepRow& row) { return row.seconds(); });
  text += FigureFamily(view, times);
  return text + "# EOF\n";
}

std::string FormatFioJson(const v1::RunRecord& run) {
  const RunView view = ViewRun(run);
  Json json = Json::object();
  json["fio version"] = "labrack-export-1";
  json["timestamp"] = run.summary().ended_wall_ns() / 1'000'000'000;
  json["global options"] = Json::object();
  json["client_stats"] = Json::array();
  ForEachStep(view, [&](const StepRow& row) { json["client_stats"].push_back(FioJob(row)); });
  json["disk_util"] = Json::array();
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace labrack::report
