// Exporter: /metrics of an agent (prometheus-cpp's exposer). Counters are the raw counts of the
// results: live while a step runs, and exactly the step's own when it is done, so that what PromQL
// adds up is what the catalog holds.
//
// Label budget: op, personality (kind of workload), workload, stack, device_class. run_id stands in
// labrack_phase_info alone. At most kSeriesMax combinations are kept; what goes beyond is counted
// in labrack_metrics_dropped_series_total. A series goes away a grace period after the last trial
// that used it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "labrack/v1/fleet.pb.h"
#include "labrack/v1/plan.pb.h"
#include "labrack/v1/result.pb.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace prometheus {
class Exposer;
}  // namespace prometheus

namespace labrack::telemetry {

constexpr std::size_t kSeriesMax = 2000;
// Upper bounds of the histograms' buckets in nanoseconds: {1, 2, 5} x 10^k seconds for k = -6..1,
// then 100 s. Part of the interface: changing them breaks history.
constexpr int kBucketsVersion = 1;
std::vector<std::uint64_t> BucketBoundsNs();

struct AgentInfo {
  std::string agent_id;
  std::string version;
  std::string git_commit;
};

// What the agent is doing, set by its loop.
struct AgentFigures {
  bool connected = false;
  std::uint64_t spool_bytes = 0;
  std::uint64_t held_assignments = 0;
  std::optional<Nanoseconds> clock_uncertainty;
  std::optional<Nanoseconds> round_trip;
};

class Collector;

// Thread-safe.
class Exporter {
 public:
  // `listen` is "host:port"; port 0: any free one. Errors: kBusy, kInvalidArgument.
  static Result<std::unique_ptr<Exporter>> Open(const std::string& listen, Nanoseconds grace,
                                                const AgentInfo& info, const Clock& clock);
  ~Exporter();

  // "host:port" with the real port.
  const std::string& address() const { return address_; }

  void SetFigures(const AgentFigures& figures);
  void TrialBegan(const v1::AssignmentSpec& spec);
  void PhaseBegan(const v1::AssignmentSpec& spec, v1::PhaseKind phase, Nanoseconds wall);
  // Counts of the step that is running, from its beginning.
  void StepRuns(const v1::AssignmentSpec& spec, const std::vector<v1::OperationResult>& operations);
  void StepDone(const v1::AssignmentSpec& spec, const v1::StepResult& step);
  void TrialEnded(const v1::AssignmentSpec& spec, v1::Outcome outcome);

 private:
  Exporter() = default;
  std::shared_ptr<Collector> collector_;  // shared with the exposer, which holds it weakly
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string address_;
};

}  // namespace labrack::telemetry
