#include "tests/unit/run_record_builder.h"

#include <cmath>

#include "proto/convert/convert.h"
#include "storage/base/histogram.h"

namespace labrack {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

void AddPhase(v1::AssignmentResult& result, v1::PhaseKind kind, const std::string& step,
              std::int64_t begin_ns, std::int64_t end_ns) {
  v1::PhaseRecord& phase = *result.add_phases();
  phase.set_phase(kind);
  phase.set_step(step);
  phase.set_begin_mono_ns(begin_ns);
  phase.set_end_mono_ns(end_ns);
  phase.set_end(v1::PHASE_END_DONE);
}

// Nine of ten at the median, a tail up to four times as long: enough samples for a p99.
Histogram Latencies(double median_ns, std::uint64_t count) {
  Histogram histogram;
  const std::uint64_t samples = std::min<std::uint64_t>(count, 2000);
  for (std::uint64_t i = 0; i < samples; ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(samples);
    const double factor = place < 0.9 ? 0.8 + 0.3 * place : 1 + 30 * (place - 0.9);
    histogram.Record(static_cast<std::uint64_t>(median_ns * factor));
  }
  return histogram;
}

void FillEnvironment(const std::string& host, v1::Environment& environment) {
  v1::Inventory& inventory = *environment.mutable_host();
  inventory.set_host_name(host);
  inventory.set_kernel("Linux 6.1.0-18-amd64");
  inventory.set_os("Debian GNU/Linux 12 (bookworm)");
  inventory.set_cpu_model("AMD EPYC 7313P 16-Core Processor");
  inventory.set_cpu_count(32);
  inventory.set_cpu_governor("performance");
  inventory.set_memory_bytes(128ULL << 30);
  inventory.set_agent_version("0.1.0");
  inventory.set_git_commit("9c1e2aa");
  environment.set_boot_id("boot-" + host);
  environment.set_backing_device("ext4 on /dev/nvme0n1p2 (Samsung PM9A3, serial S64-" + host + ")");
}

}  // namespace

RunRecordBuilder::RunRecordBuilder(std::string playbook) {
  v1::RunSummary& summary = *run_.mutable_summary();
  summary.set_run_id("r-7f3a");
  summary.set_playbook_name(playbook);
  summary.set_state(v1::RUN_STATE_DONE);
  summary.set_created_wall_ns(1'796'000'000 * kSecond);
  summary.set_ended_wall_ns(1'796'000'600 * kSecond);
  summary.set_owner("ann");
  v1::Plan& plan = *run_.mutable_plan();
  plan.set_playbook_name(playbook);
  plan.set_seed(7);
  plan.mutable_playbook()->set_playbook(playbook);
  plan.mutable_playbook()->set_margin(0.03);
  plan.mutable_playbook()->set_latency_margin(0.05);
  run_.set_playbook_file(playbook + ".yaml");
}

void RunRecordBuilder::AddHost(const std::string& name) {
  v1::PlannedHost& host = *run_.mutable_plan()->add_hosts();
  host.set_agent_id("agent-" + name);
  host.set_host_name(name);
  host.add_disks("file:/var/lib/labrack-agent/disks/0, 1 GiB on ext4 (/dev/nvme0n1p2)");
  host.set_write_bytes(8ULL << 30);
}

std::uint32_t RunRecordBuilder::AddCell(const std::string& stack, const v1::Workload& workload,
                                        std::vector<StepKind> steps,
                                        const std::string& parameters) {
  v1::Plan& plan = *run_.mutable_plan();
  v1::PlannedCell& cell = *plan.add_cells();
  cell.set_index(static_cast<std::uint32_t>(plan.cells_size() - 1));
  cell.mutable_stack()->set_name(stack);
  *cell.mutable_workload() = workload;
  cell.set_parameters_text(parameters);
  for (const v1::PlannedHost& host : plan.hosts()) cell.add_agent_ids(host.agent_id());
  bool known = false;
  for (const v1::Stack& other : plan.playbook().stacks()) known = known || other.name() == stack;
  if (!known) *plan.mutable_playbook()->add_stacks() = cell.stack();
  steps_.push_back(std::move(steps));
  return cell.index();
}

v1::TrialRecord& RunRecordBuilder::AddTrial(const Trial& trial) {
  v1::PlannedTrial& planned = *run_.mutable_plan()->add_trials();
  planned.set_index(static_cast<std::uint32_t>(run_.plan().trials_size() - 1));
  planned.set_cell(trial.cell);
  planned.set_repeat(trial.repeat);
  const v1::PlannedCell& cell = run_.plan().cells(static_cast<int>(trial.cell));

  v1::TrialRecord& record = *run_.add_trials();
  v1::TrialSummary& summary = *record.mutable_summary();
  summary.set_index(planned.index());
  summary.set_cell(trial.cell);
  summary.set_cell_name(cell.stack().name() + "/" + cell.workload().name());
  summary.set_repeat(trial.repeat);
  summary.set_state("valid");
  for (std::size_t host = 0; host < static_cast<std::size_t>(cell.agent_ids_size()); ++host) {
    AddAssignment(trial, host, record);
  }
  return record;
}

void RunRecordBuilder::AddAssignment(const Trial& trial, std::size_t host,
                                     v1::TrialRecord& record) {
  const v1::PlannedHost& planned = run_.plan().hosts(static_cast<int>(host));
  v1::AssignmentRecord& assignment = *record.add_assignments();
  assignment.set_assignment_id(run_.summary().run_id() + "/" +
                               std::to_string(record.summary().index()) + "/" + planned.agent_id());
  assignment.set_epoch(1);
  assignment.set_agent_id(planned.agent_id());
  assignment.set_host_name(planned.host_name());
  assignment.set_state("closed");

  v1::AssignmentResult& result = *assignment.mutable_result();
  result.set_assignment_id(assignment.assignment_id());
  result.set_epoch(1);
  result.set_agent_id(planned.agent_id());
  result.set_host_name(planned.host_name());
  result.set_clock("monotonic");
  result.mutable_measurement()->set_outcome(v1::OUTCOME_OK);
  result.mutable_environment_verdict()->set_outcome(v1::OUTCOME_OK);
  result.mutable_clean_up()->set_outcome(v1::OUTCOME_OK);
  result.set_verified(v1::VERIFY_OUTCOME_MATCHED);
  result.set_verified_bytes(256ULL << 20);
  // Every host's clock has a start of its own; the offsets map all onto the controller's.
  result.set_clock_offset_ns(static_cast<std::int64_t>(host) * 1000 * kSecond);
  result.set_clock_uncertainty_ns(50'000);
  FillEnvironment(planned.host_name(), *result.mutable_environment());

  std::int64_t begin_ns = static_cast<std::int64_t>(record.summary().index()) * 60 * kSecond +
                          5000 * kSecond - result.clock_offset_ns();
  AddPhase(result, v1::PHASE_BUILD, "", begin_ns - 2 * kSecond, begin_ns);
  for (const StepKind& kind : steps_[trial.cell]) {
    FillStep(kind, trial, host, begin_ns, result);
    begin_ns = result.steps(result.steps_size() - 1).measure_end_mono_ns() + kSecond;
  }
  AddPhase(result, v1::PHASE_VERIFY, "", begin_ns, begin_ns + kSecond);
}

void RunRecordBuilder::FillStep(const StepKind& kind, const Trial& trial, std::size_t host,
                                std::int64_t begin_ns, v1::AssignmentResult& result) {
  const double factor = host < trial.host_factors.size() ? trial.host_factors[host] : 1;
  const bool wall = kind.primary == v1::PRIMARY_METRIC_SECONDS;
  const double seconds = wall ? trial.rate * factor : trial.seconds;
  v1::StepResult& step = *result.add_steps();
  step.set_step(kind.step);
  step.set_primary(kind.primary);
  const bool barrier = run_.plan().hosts_size() > 1;
  // The barrier's instant, and each host a little later than the one before.
  if (barrier) step.set_intended_start_mono_ns(begin_ns);
  const std::int64_t late_ns = barrier ? static_cast<std::int64_t>(host) * 200'000 + 100'000 : 0;
  step.set_measure_begin_mono_ns(begin_ns + late_ns);
  step.set_measure_end_mono_ns(step.measure_begin_mono_ns() + std::llround(seconds * 1e9));
  step.mutable_cpu()->set_user_ns(std::llround(seconds * 2e8));
  step.mutable_cpu()->set_system_ns(std::llround(seconds * 1e8));
  AddPhase(result, v1::PHASE_MEASURE, kind.step, step.measure_begin_mono_ns(),
           step.measure_end_mono_ns());
  if (wall) return;

  const bool by_bytes = kind.primary == v1::PRIMARY_METRIC_BYTES_PER_SECOND;
  const double per_operation = by_bytes ? static_cast<double>(kind.bytes_per_operation) : 1;
  const auto count =
      static_cast<std::uint64_t>(std::llround(trial.rate * factor * seconds / per_operation));
  v1::OperationResult& operation = *step.add_operations();
  operation.set_operation(kind.operation);
  operation.set_count(count);
  operation.set_bytes(count * kind.bytes_per_operation);
  *operation.mutable_service() = convert::ToMessage(Latencies(trial.latency_ns, count));
  step.add_counted(kind.operation);

  // Two halves, so that the common window has edges to interpolate.
  const std::int64_t middle_ns = (step.measure_begin_mono_ns() + step.measure_end_mono_ns()) / 2;
  for (int half = 0; half < 2; ++half) {
    v1::Interval& interval = *step.add_intervals();
    interval.set_begin_mono_ns(half == 0 ? step.measure_begin_mono_ns() : middle_ns);
    interval.set_end_mono_ns(half == 0 ? middle_ns : step.measure_end_mono_ns());
    v1::IntervalOperation& part = *interval.add_operations();
    part.set_operation(kind.operation);
    part.set_count(half == 0 ? count / 2 : count - count / 2);
    part.set_bytes(part.count() * kind.bytes_per_operation);
  }
}

v1::RunRecord RunRecordBuilder::Build() {
  v1::RunRecord run = run_;
  run.mutable_summary()->set_trials_total(static_cast<std::uint32_t>(run.plan().trials_size()));
  run.mutable_summary()->set_trials_done(static_cast<std::uint32_t>(run.trials_size()));
  return run;
}

v1::Workload RunRecordBuilder::SyncPages(const std::string& name) {
  v1::Workload workload;
  workload.set_name(name);
  workload.mutable_sync_pages()->set_size(2048);
  return workload;
}

v1::Workload RunRecordBuilder::Copy(const std::string& name) {
  v1::Workload workload;
  workload.set_name(name);
  workload.mutable_copy()->set_file(1ULL << 30);
  workload.mutable_copy()->set_sync(true);
  return workload;
}

v1::Workload RunRecordBuilder::Exec(const std::string& name) {
  v1::Workload workload;
  workload.set_name(name);
  workload.mutable_exec()->add_command("true");
  return workload;
}

}  // namespace labrack
