#include "storage/block/queue/options.h"

#include <limits>
#include <string>
#include <string_view>

#include "storage/base/units.h"

namespace labrack::block {
namespace {

constexpr std::uint32_t kActiveMax = 65536;  // a submission queue of NVMe
constexpr std::uint32_t kDeadlineTicksMax = 1'000'000;
constexpr std::uint32_t kCreditMax = 1000;
constexpr std::uint32_t kBuffersMax = 1024;
constexpr Bytes kAggregationMax = 16_MiB;
constexpr Nanoseconds kTimeMin = std::chrono::milliseconds(1);
constexpr Nanoseconds kTimeMax = std::chrono::minutes(1);

class Problems {
 public:
  void Add(const std::string& path, const std::string& what, const std::string& right) {
    found_.emplace_back(Errc::kInvalidArgument, path, what + "; " + right);
  }
  void Count(const std::string& path, std::uint32_t value, std::uint32_t low, std::uint32_t high) {
    if (value >= low && value <= high) return;
    Add(path, std::to_string(value) + " is out of range",
        "write " + std::to_string(low) + " to " + std::to_string(high));
  }
  void Time(const std::string& path, Nanoseconds value) {
    if (value >= kTimeMin && value <= kTimeMax) return;
    Add(path, FormatDurationExact(value) + " is out of range",
        "write " + FormatDurationExact(kTimeMin) + " to " + FormatDurationExact(kTimeMax));
  }
  void Size(const std::string& path, Bytes value, Bytes high) {
    if (value <= high) return;
    Add(path, FormatBytesExact(value) + " is out of range",
        "write 0B to " + FormatBytesExact(high));
  }
  std::vector<Error> Take() { return std::move(found_); }

 private:
  std::vector<Error> found_;
};

void CheckLegacy(const LegacyOptions& options, Problems& problems) {
  problems.Count("legacy.pending_max", options.pending_max, 1, kActiveMax);
  problems.Count("legacy.pending_min", options.pending_min, 1, kActiveMax);
  if (options.pending_min > options.pending_max) {
    problems.Add("legacy.pending_min", "it is more than pending_max",
                 "write 1 to " + std::to_string(options.pending_max));
  }
  problems.Count("legacy.ramp_rate", options.ramp_rate, 1, kActiveMax);
  problems.Time("legacy.tick", options.tick);
  for (int i = 0; i < kPriorityClassCount; ++i) {
    const auto priority = static_cast<PriorityClass>(i);
    problems.Count("legacy.deadline_ticks." + std::string(PriorityClassName(priority)),
                   options.deadline_ticks[static_cast<std::size_t>(i)], 0, kDeadlineTicksMax);
  }
}

void CheckClasses(const ClassesOptions& options, Problems& problems) {
  for (int i = 0; i < kPriorityClassCount; ++i) {
    const std::string path =
        "classes." + std::string(PriorityClassName(static_cast<PriorityClass>(i)));
    const ClassLimits& limits = options.limits[static_cast<std::size_t>(i)];
    problems.Count(path + ".active_min", limits.active_min, 1, kActiveMax);
    problems.Count(path + ".active_max", limits.active_max, 1, kActiveMax);
    if (limits.active_min > limits.active_max) {
      problems.Add(path + ".active_min", "it is more than active_max",
                   "write 1 to " + std::to_string(limits.active_max));
    }
  }
  problems.Count("classes.active_max", options.active_max, 1, kActiveMax);
  if (!(options.dirty_low >= 0 && options.dirty_low < options.dirty_high &&
        options.dirty_high <= 1)) {
    problems.Add("classes.dirty_low", "it is not below dirty_high",
                 "write two fractions from 0 to 1, the lower one first");
  }
  problems.Count("classes.background_credit", options.background_credit, 1, kCreditMax);
  problems.Time("classes.bucket", options.bucket);
}

}  // namespace

QueueOptions QueueOptions::Legacy() {
  QueueOptions options;
  options.policy = Policy::kLegacy;
  options.aggregation = {.size_max = 128_KiB, .read_gap = Bytes(0), .write_gap = Bytes(0)};
  return options;
}

QueueOptions QueueOptions::Classes(Medium medium) {
  QueueOptions options;
  options.policy = Policy::kClasses;
  options.aggregation = {.size_max = medium == Medium::kRotating ? 1_MiB : 128_KiB,
                         .read_gap = 32_KiB,
                         .write_gap = 4_KiB};
  return options;
}

std::vector<Error> QueueOptions::Validate() const {
  Problems problems;
  switch (policy) {
    case Policy::kLegacy:
      CheckLegacy(legacy, problems);
      break;
    case Policy::kClasses:
      CheckClasses(classes, problems);
      break;
  }
  problems.Size("aggregation.size_max", aggregation.size_max, kAggregationMax);
  problems.Size("aggregation.read_gap", aggregation.read_gap, aggregation.size_max);
  problems.Size("aggregation.write_gap", aggregation.write_gap, aggregation.size_max);
  problems.Count("aggregation.buffers_max", aggregation.buffers_max, 0, kBuffersMax);
  return problems.Take();
}

}  // namespace labrack::block
