#include "controller/plan/names.h"
#include "proto/convert/convert.h"
#include "storage/base/histogram.h"
#include "tests/sim/sim_agent.h"

namespace labrack::sim {
namespace {

std::int64_t Count(TimePoint at) { return at.time_since_epoch().count(); }

void AddPhase(v1::AssignmentResult& result, v1::PhaseKind kind, const std::string& step,
              TimePoint begin, TimePoint end) {
  v1::PhaseRecord* phase = result.add_phases();
  phase->set_phase(kind);
  phase->set_step(step);
  phase->set_begin_mono_ns(Count(begin));
  phase->set_end_mono_ns(Count(end));
  phase->set_end(v1::PHASE_END_DONE);
}

void AddStep(v1::AssignmentResult& result, const std::string& name,
             std::pair<TimePoint, TimePoint> window, TimePoint intended, Random& random) {
  v1::StepResult* step = result.add_steps();
  step->set_step(name);
  step->set_primary(v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND);
  step->set_measure_begin_mono_ns(Count(window.first));
  step->set_measure_end_mono_ns(Count(window.second));
  step->set_intended_start_mono_ns(Count(intended));
  Histogram service;
  const std::uint64_t operations = 100 + random.Below(10);
  for (std::uint64_t i = 0; i < operations; ++i) {
    service.Record(Nanoseconds(static_cast<std::int64_t>(100'000 + random.Below(50'000))));
  }
  v1::OperationResult* operation = step->add_operations();
  operation->set_operation("write");
  operation->set_count(operations);
  operation->set_bytes(operations * 2048);
  *operation->mutable_service() = convert::ToMessage(service);
  step->add_counted("write");
  AddPhase(result, v1::PHASE_MEASURE, name, window.first, window.second);
}

}  // namespace

v1::AssignmentResult MakeResult(const v1::AssignmentSpec& spec, const std::string& agent_id,
                                const std::vector<std::pair<TimePoint, TimePoint>>& windows,
                                const std::vector<TimePoint>& intended, Random& random) {
  v1::AssignmentResult result;
  result.set_assignment_id(spec.assignment_id());
  result.set_epoch(spec.epoch());
  result.set_agent_id(agent_id);
  result.set_host_name("host-" + agent_id);
  result.mutable_measurement()->set_outcome(v1::OUTCOME_OK);
  result.mutable_environment_verdict()->set_outcome(v1::OUTCOME_OK);
  result.mutable_clean_up()->set_outcome(v1::OUTCOME_OK);
  result.set_verified(v1::VERIFY_OUTCOME_MATCHED);
  result.set_clock("monotonic");
  result.set_clock_uncertainty_ns(1000);
  const std::vector<std::string> names = plan::StepNames(spec.workload());
  for (std::size_t i = 0; i < names.size() && i < windows.size(); ++i) {
    AddStep(result, names[i], windows[i], intended[i], random);
  }
  return result;
}

v1::Inventory MakeInventory(const SimAgentOptions& options) {
  v1::Inventory inventory;
  inventory.set_host_name("host-" + options.id);
  inventory.set_machine_id(options.machine_id);
  inventory.set_kernel("Linux 6.1.0-sim");
  inventory.set_cpu_count(4);
  inventory.set_memory_bytes(8ULL << 30);
  inventory.set_is_root(true);
  inventory.set_loop_devices(true);
  inventory.set_metrics_address("127.0.0.1:9");
  for (const auto& [name, value] : options.labels) (*inventory.mutable_labels())[name] = value;
  for (const char* kind : {"dir", "ext4", "xfs"}) {
    v1::StackSupport* support = inventory.add_stack_support();
    support->set_kind(kind);
    support->set_supported(true);
  }
  v1::LentDisk* disk = inventory.add_disks();
  disk->set_id("file:/sim");
  disk->set_kind("file");
  disk->set_backing("nothing");
  disk->set_capacity_bytes(1ULL << 40);
  disk->set_free_bytes(1ULL << 40);
  return inventory;
}

}  // namespace labrack::sim
