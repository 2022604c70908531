// Throughput of several hosts that did one step together.
//
//   host A   |======================|                 measured windows, on the controller's clock
//   host B      |========================|
//               |-- common window ---|
//
// The fleet's rate is what all hosts did inside the common window, divided by its length: before
// and after it some host was idle, and a rate over idle hosts says nothing about the stack.
// Interval counts that straddle an edge count by the share of the interval that lies inside.
// Beside it stand the rates until the first and until the last host was done, and the sum of the
// hosts' own rates, each under its own name (they differ, and that is the point).
//
// Work that counts only once a closing sync is done (`dd; sync`) is spread evenly over the host's
// own window: its bytes enter the page cache early, and the intervals would call them done before
// they were durable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "labrack/v1/result.pb.h"
#include "storage/base/result.h"

namespace labrack::compare {

// One host's part of a step. `result` must outlive this.
struct HostStep {
  std::string agent_id = {};
  std::string host_name;
  const v1::StepResult* result = nullptr;
  // When the clients started: with the warm-up, or with the measurement where there is none.
  std::int64_t started_mono_ns = 0;
  std::int64_t clock_offset_ns = 0;  // controller = mono + offset
  std::int64_t clock_uncertainty_ns = 0;
};

enum class Work { kBytes, kOperations };

// How intervals become a rate: by their own counts, or evenly over the host's measured window.
enum class Spread { kIntervals, kEven };

struct FleetRates {
  double common = 0;      // per second, over the common window: the rate that is compared
  double first_done = 0;  // all work until the first host was done, since the first started
  double last_done = 0;   // all work since the first host started until the last was done
  double whole = 0;       // sum of the hosts' own rates, each over its own window
};

struct FleetTiming {
  std::int64_t common_ns = 0;  // length of the common window
  double overlap = -1;         // share of the measured windows inside it; -1 for one host
  std::int64_t start_skew_max_ns =
      0;                             // |started - intended|, largest over hosts; 0 without barrier
  std::int64_t start_spread_ns = 0;  // last host's start minus the first's
  std::int64_t wall_max_ns = 0;      // the slowest host's window
};

// Errors (kInvalidArgument): no hosts, an empty window, windows that do not overlap, clocks too
// uncertain to lay the windows over each other.
Result<FleetTiming> TimeFleet(std::span<const HostStep> hosts);

// `hosts` must have passed TimeFleet and SelfCheck.
FleetRates RateFleet(std::span<const HostStep> hosts, Work work, Spread spread);

// Whether the sum of a step's intervals equals its totals, for each operation (fio#1918: parts and
// whole that disagree). Error kCorrupt names the operation and both sums. A step without intervals
// passes: its window is one interval.
Result<void> SelfCheck(const v1::StepResult& step);

// Counted operations of a step; all of them when it names none.
bool IsCounted(const v1::StepResult& step, const std::string& operation);
std::uint64_t TotalWork(const v1::StepResult& step, Work work);

// A clock uncertainty beyond this share of a window makes the common window meaningless.
constexpr double kUncertaintyShareMax = 0.05;

}  // namespace labrack::compare
