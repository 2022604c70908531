#include "agent/workload/fio_import.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent/workload/recorder.h"
#include "proto/convert/convert.h"

namespace labrack::workload {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 3> kDirections{"read", "write", "trim"};
constexpr std::size_t kFiguresMax = 512;  // of all jobs; what lies beyond is left out

// The end of the document that begins at `begin`, which is a brace; npos when it is cut off.
std::size_t DocumentEnd(std::string_view text, std::size_t begin) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// Every document that has jobs. A brace within a warning opens none: what it encloses is no JSON.
Result<std::vector<Json>> FindDocuments(std::string_view text) {
  std::vector<Json> documents;
  bool cut_off = false;
  std::size_t at = text.find('{');
  while (at != std::string_view::npos) {
    const std::size_t end = DocumentEnd(text, at);
    if (end == std::string_view::npos) {
      cut_off = cut_off || text.substr(at).find("\"jobs\"") != std::string_view::npos;
      at = text.find('{', at + 1);
      continue;
    }
    Json document = Json::parse(text.substr(at, end - at), nullptr, /*allow_exceptions=*/false);
    if (document.is_object() && document.contains("jobs") && document["jobs"].is_array()) {
      documents.push_back(std::move(document));
      at = text.find('{', end);
    } else {
      at = text.find('{', at + 1);
    }
  }
  if (cut_off) return Fail(Errc::kCorrupt, "fio's report", "its JSON is cut off");
  if (documents.empty()) {
    return Fail(Errc::kCorrupt, "fio's report", "it holds no JSON document with jobs");
  }
  return documents;
}

std::uint64_t Count(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  return static_cast<std::uint64_t>(std::max(0.0, found->get<double>()));
}

double Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? 0.0 : found->get<double>();
}

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

// One latency object; empty where fio kept no bins (gtod_reduce, clat_percentiles=0).
Result<Sums> ReadBins(const Json& latency, const std::string& where) {
  Sums sums;
  const auto bins = latency.find("bins");
  if (bins == latency.end() || !bins->is_object()) return sums;
  std::map<std::uint32_t, std::uint64_t> buckets;
  for (const auto& [key, value] : bins->items()) {
    std::uint64_t ns = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), ns);
    if (error != std::errc() || end != key.data() + key.size() || !value.is_number_unsigned()) {
      return Fail(Errc::kCorrupt, "fio's report", where + " has a bin that is no number: " + key);
    }
    const auto count = value.get<std::uint64_t>();
    sums.count += count;
    if (ns > Histogram::kValueMax) {
      sums.overflow_count += count;
    } else if (count > 0) {
      buckets[static_cast<std::uint32_t>(Histogram::IndexOf(ns))] += count;
    }
  }
  sums.buckets.assign(buckets.begin(), buckets.end());
  const std::uint64_t stated = Count(latency, "N");
  if (stated != sums.count) {
    return Fail(
        Errc::kCorrupt, "fio's report",
        fmt::format("{} has {} latencies in its bins, but says {}", where, sums.count, stated));
  }
  if (sums.count == 0) return Sums();
  sums.min_ns = Count(latency, "min");
  sums.max_ns = Count(latency, "max");
  sums.sum_ns = static_cast<std::uint64_t>(
      std::llround(Number(latency, "mean") * static_cast<double>(sums.count)));
  return sums;
}

// Total latency where fio kept bins of it (lat_percentiles=1), otherwise completion latency.
Result<Sums> ReadLatency(const Json& direction, const std::string& where) {
  for (const char* key : {"lat_ns", "clat_ns"}) {
    const auto latency = direction.find(key);
    if (latency != direction.end() && latency->is_object() && latency->contains("bins")) {
      return ReadBins(*latency, where + "." + key);
    }
  }
  return Sums();
}

// The counts of one direction of one job, or of several of that name (numjobs).
struct Part {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;  // short and dropped operations
  std::uint64_t runtime_ms = 0;
  Sums latency;

  void Add(const Part& other) {
    count += other.count;
    bytes += other.bytes;
    errors += other.errors;
    runtime_ms = std::max(runtime_ms, other.runtime_ms);
    latency.Add(other.latency);
  }
};

struct JobSums {
  std::map<std::string, Part> parts;  // by direction
  double user_percent = 0;            // of all of that name
  double system_percent = 0;
};

class Importer {
 public:
  Result<FioReport> Import(std::string_view text) {
    const Result<std::vector<Json>> documents = FindDocuments(text);
    if (!documents) return std::unexpected(documents.error());
    for (std::size_t i = 0; i < documents->size(); ++i) {
      const Json& document = (*documents)[i];
      if (report_.version.empty()) report_.version = Text(document, "fio version");
      for (const Json& job : document["jobs"]) {
        Result<void> read = ReadJob(job, i);
        if (!read) return std::unexpected(read.error());
      }
    }
    return Finish();
  }

 private:
  Result<void> ReadJob(const Json& job, std::size_t document) {
    const std::string name = Text(job, "jobname");
    if (const std::uint64_t error = Count(job, "error"); error != 0) {
      return Fail(
          Errc::kIo, "fio job " + name,
          fmt::format("failed with error {}: {}", error, std::strerror(static_cast<int>(error))));
    }
    if (!jobs_.contains(name)) order_.push_back(name);
    JobSums& sums = jobs_[name];
    sums.user_percent += Number(job, "usr_cpu");
    sums.system_percent += Number(job, "sys_cpu");
    std::uint64_t runtime_ms = 0;
    for (std::string_view direction : kDirections) {
      const auto found = job.find(std::string(direction));
      if (found == job.end() || !found->is_object()) continue;
      Result<Part> part = ReadDirection(*found, name + "." + std::string(direction));
      if (!part) return std::unexpected(part.error());
      runtime_ms = std::max(runtime_ms, part->runtime_ms);
      sums.parts[std::string(direction)].Add(*part);
      all_[std::string(direction)].Add(*part);
    }
    if (const auto sync = job.find("sync"); sync != job.end() && sync->is_object()) {
      Result<Part> part = ReadDirection(*sync, name + ".sync");
      if (!part) return std::unexpected(part.error());
      sums.parts["sync"].Add(*part);
      all_["sync"].Add(*part);
    }
    std::uint64_t& longest = group_ms_[{document, Count(job, "groupid")}];
    longest = std::max(longest, runtime_ms);
    return {};
  }

  static Result<Part> ReadDirection(const Json& object, const std::string& where) {
    Result<Sums> latency = ReadLatency(object, where);
    if (!latency) return std::unexpected(latency.error());
    return Part{.count = Count(object, "total_ios"),
                .bytes = Count(object, "io_bytes"),
                .errors = Count(object, "short_ios") + Count(object, "drop_ios"),
                .runtime_ms = Count(object, "runtime"),
                .latency = *std::move(latency)};
  }

  Result<FioReport> Finish() {
    std::uint64_t counted = 0;
    for (const auto& [name, part] : all_) {
      if (part.count == 0) continue;
      v1::OperationResult operation;
      operation.set_operation(name);
      operation.set_count(part.count);
      operation.set_bytes(part.bytes);
      operation.set_error_count(part.errors);
      *operation.mutable_service() = convert::ToMessage(part.latency.ToHistogram());
      report_.operations.push_back(std::move(operation));
      if (name == "sync") continue;
      report_.counted.push_back(name);
      counted += part.count;
    }
    if (counted == 0) {
      return Fail(Errc::kTimedOut, "fio", "its jobs ended without a single operation");
    }
    for (const auto& [group, runtime_ms] : group_ms_) {
      report_.window += std::chrono::milliseconds(runtime_ms);
    }
    for (const std::string& name : order_) AddFigures(name, jobs_[name]);
    return std::move(report_);
  }

  void AddFigures(const std::string& job, const JobSums& sums) {
    for (const auto& [direction, part] : sums.parts) {
      if (part.count == 0) continue;
      const std::string prefix = job + "." + direction + ".";
      if (part.runtime_ms > 0) {
        const double seconds = static_cast<double>(part.runtime_ms) * 1e-3;
        AddFigure(prefix + "iops", static_cast<double>(part.count) / seconds, "op/s", false);
        AddFigure(prefix + "bytes_per_second", static_cast<double>(part.bytes) / seconds, "B/s",
                  false);
      }
      if (part.latency.count > 0) {
        AddFigure(
            prefix + "latency_mean",
            static_cast<double>(part.latency.sum_ns) / static_cast<double>(part.latency.count),
            "ns", true);
      }
    }
    AddFigure(job + ".usr_cpu", sums.user_percent, "%", true);
    AddFigure(job + ".sys_cpu", sums.system_percent, "%", true);
  }

  void AddFigure(std::string name, double value, const char* unit, bool lower_is_better) {
    if (report_.figures.size() >= kFiguresMax) return;
    v1::Figure figure;
    figure.set_name(std::move(name));
    figure.set_value(value);
    figure.set_unit(unit);
    figure.set_lower_is_better(lower_is_better);
    report_.figures.push_back(std::move(figure));
  }

  FioReport report_;
  std::vector<std::string> order_;  // of jobs, as fio wrote them
  std::map<std::string, JobSums> jobs_;
  std::map<std::string, Part> all_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> group_ms_;
};

}  // namespace

Result<FioReport> ImportFioJson(std::string_view text) { return Importer().Import(text); }

}  // namespace labrack::workload
