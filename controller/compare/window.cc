#include "controller/compare/window.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "storage/base/check.h"

namespace labrack::compare {
namespace {

struct Window {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length() const { return end - begin; }
};

Window MeasuredWindow(const HostStep& host) {
  return {host.result->measure_begin_mono_ns() + host.clock_offset_ns,
          host.result->measure_end_mono_ns() + host.clock_offset_ns};
}

Window CommonWindow(std::span<const HostStep> hosts) {
  Window common = MeasuredWindow(hosts.front());
  for (const HostStep& host : hosts.subspan(1)) {
    const Window window = MeasuredWindow(host);
    common.begin = std::max(common.begin, window.begin);
    common.end = std::min(common.end, window.end);
  }
  return common;
}

Window HullWindow(std::span<const HostStep> hosts) {
  Window hull = MeasuredWindow(hosts.front());
  for (const HostStep& host : hosts.subspan(1)) {
    const Window window = MeasuredWindow(host);
    hull.begin = std::min(hull.begin, window.begin);
    hull.end = std::max(hull.end, window.end);
  }
  return hull;
}

// Share of `part` that lies inside `whole`. An instant lies inside or it does not.
double ShareInside(Window part, Window whole) {
  if (part.length() <= 0) {
    return part.begin >= whole.begin && part.begin < whole.end ? 1.0 : 0.0;
  }
  const std::int64_t inside = std::min(part.end, whole.end) - std::max(part.begin, whole.begin);
  if (inside <= 0) return 0.0;
  return static_cast<double>(inside) / static_cast<double>(part.length());
}

std::uint64_t CountedWork(const v1::StepResult& step, const v1::Interval& interval, Work work) {
  std::uint64_t sum = 0;
  for (const v1::IntervalOperation& operation : interval.operations()) {
    if (!IsCounted(step, operation.operation())) continue;
    sum += work == Work::kBytes ? operation.bytes() : operation.count();
  }
  return sum;
}

double WorkInside(const HostStep& host, Window window, Work work, Spread spread) {
  if (spread == Spread::kEven || host.result->intervals().empty()) {
    return static_cast<double>(TotalWork(*host.result, work)) *
           ShareInside(MeasuredWindow(host), window);
  }
  double sum = 0;
  for (const v1::Interval& interval : host.result->intervals()) {
    const Window part{interval.begin_mono_ns() + host.clock_offset_ns,
                      interval.end_mono_ns() + host.clock_offset_ns};
    const double share = ShareInside(part, window);
    if (share > 0) sum += share * static_cast<double>(CountedWork(*host.result, interval, work));
  }
  return sum;
}

double PerSecond(double work, std::int64_t length_ns) {
  return length_ns <= 0 ? 0 : work / (static_cast<double>(length_ns) * 1e-9);
}

double Milliseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

}  // namespace

bool IsCounted(const v1::StepResult& step, const std::string& operation) {
  if (step.counted().empty()) return true;
  return std::ranges::find(step.counted(), operation) != step.counted().end();
}

std::uint64_t TotalWork(const v1::StepResult& step, Work work) {
  std::uint64_t sum = 0;
  for (const v1::OperationResult& operation : step.operations()) {
    if (!IsCounted(step, operation.operation())) continue;
    sum += work == Work::kBytes ? operation.bytes() : operation.count();
  }
  return sum;
}

Result<FleetTiming> TimeFleet(std::span<const HostStep> hosts) {
  if (hosts.empty()) return Fail(Errc::kInvalidArgument, "no host took part");
  FleetTiming timing;
  std::int64_t measured_ns = 0;
  for (const HostStep& host : hosts) {
    const Window window = MeasuredWindow(host);
    if (window.length() <= 0) {
      return Fail(Errc::kInvalidArgument, host.host_name, "the measured window is empty");
    }
    measured_ns += window.length();
    timing.wall_max_ns = std::max(timing.wall_max_ns, window.length());
  }
  if (hosts.size() == 1) {
    timing.common_ns = measured_ns;
    return timing;
  }
  const Window common = CommonWindow(hosts);
  if (common.length() <= 0) {
    return Fail(
        Errc::kInvalidArgument,
        fmt::format("the hosts' measured windows do not overlap: {:.1f} ms lie between them",
                    Milliseconds(-common.length())));
  }
  std::int64_t start_first = INT64_MAX;
  std::int64_t start_last = INT64_MIN;
  for (const HostStep& host : hosts) {
    if (static_cast<double>(host.clock_uncertainty_ns) >
        kUncertaintyShareMax * static_cast<double>(common.length())) {
      return Fail(
          Errc::kInvalidArgument, host.host_name,
          fmt::format("its clock is known within {:.1f} ms only, and the common window is "
                      "{:.1f} ms long",
                      Milliseconds(host.clock_uncertainty_ns), Milliseconds(common.length())));
    }
    const std::int64_t started = host.started_mono_ns + host.clock_offset_ns;
    start_first = std::min(start_first, started);
    start_last = std::max(start_last, started);
    if (host.result->intended_start_mono_ns() == 0) continue;
    timing.start_skew_max_ns =
        std::max(timing.start_skew_max_ns,
                 std::abs(host.started_mono_ns - host.result->intended_start_mono_ns()));
  }
  timing.common_ns = common.length();
  timing.start_spread_ns = start_last - start_first;
  timing.overlap = static_cast<double>(common.length()) * static_cast<double>(hosts.size()) /
                   static_cast<double>(measured_ns);
  return timing;
}

FleetRates RateFleet(std::span<const HostStep> hosts, Work work, Spread spread) {
  LABRACK_CHECK(!hosts.empty());
  const Window common = CommonWindow(hosts);
  const Window hull = HullWindow(hosts);
  const Window until_first{hull.begin, common.end};
  FleetRates rates;
  double in_common = 0;
  double in_first = 0;
  double total = 0;
  for (const HostStep& host : hosts) {
    in_common += WorkInside(host, common, work, spread);
    in_first += WorkInside(host, until_first, work, spread);
    // Less than all where operations begun in the window completed after it.
    const double own = WorkInside(host, MeasuredWindow(host), work, spread);
    total += own;
    rates.whole += PerSecond(own, MeasuredWindow(host).length());
  }
  // One host's window is the common one; its totals need no interpolation and lose no edge.
  rates.common = hosts.size() == 1 ? rates.whole : PerSecond(in_common, common.length());
  rates.first_done = hosts.size() == 1 ? rates.whole : PerSecond(in_first, until_first.length());
  rates.last_done = PerSecond(total, hull.length());
  return rates;
}

Result<void> SelfCheck(const v1::StepResult& step) {
  if (step.intervals().empty()) return {};
  struct Sums {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Sums> parts;
  for (const v1::Interval& interval : step.intervals()) {
    if (interval.end_mono_ns() < interval.begin_mono_ns()) {
      return Fail(Errc::kCorrupt, "step " + step.step(), "an interval ends before it begins");
    }
    for (const v1::IntervalOperation& operation : interval.operations()) {
      parts[operation.operation()].count += operation.count();
      parts[operation.operation()].bytes += operation.bytes();
    }
  }
  std::map<std::string, Sums> totals;
  for (const v1::OperationResult& operation : step.operations()) {
    totals[operation.operation()].count += operation.count();
    totals[operation.operation()].bytes += operation.bytes();
  }
  for (const auto& [name, sums] : parts) totals.try_emplace(name);
  for (const auto& [name, total] : totals) {
    const Sums part = parts[name];
    if (part.count == total.count && part.bytes == total.bytes) continue;
    return Fail(
        Errc::kCorrupt, "step " + step.step(),
        fmt::format("the intervals of `{}` sum up to {} operations and {} bytes, its totals "
                    "say {} and {}",
                    name, part.count, part.bytes, total.count, total.bytes));
  }
  return {};
}

}  // namespace labrack::compare
