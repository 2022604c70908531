#include "controller/compare/reasons.h"

#include <algorithm>
#include <set>

#include "controller/compare/rows.h"
#include "proto/convert/convert.h"
#include "proto/convert/names.h"

namespace labrack::compare {
namespace {

// Which way the bytes of an operation go. Others move none that is counted at the disks.
bool Reads(const std::string& operation) {
  return operation == "read" || operation == "checksum" || operation == "read_data";
}
bool Writes(const std::string& operation) { return operation == "write" || operation == "create"; }

void AddHistogram(const v1::HistogramData& data, Histogram& sum) {
  if (const Result<Histogram> histogram = convert::FromMessage(data)) sum.Merge(*histogram);
}

double Mean(const Histogram& histogram) {
  return static_cast<double>(histogram.sum_ns()) / static_cast<double>(histogram.count());
}

template <typename A, typename B>
double Per(A sum, B count) {
  return static_cast<double>(sum) / static_cast<double>(count);
}

std::string StepName(const v1::PlannedCell& cell, const std::string& step, std::size_t count) {
  return count > 1 ? cell.workload().name() + "/" + step : cell.workload().name();
}

}  // namespace

void Reasons::Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial) {
  std::set<std::string> counted;
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    for (const v1::StepResult& step : assignment.result().steps()) {
      Sums& sums = sums_[{cell.index(), step.step()}];
      if (counted.insert(step.step()).second) ++sums.trials;
      AddStep(step, sums);
    }
  }
}

void Reasons::AddStep(const v1::StepResult& step, Sums& sums) {
  for (const v1::OperationResult& operation : step.operations()) {
    if (Reads(operation.operation())) sums.bytes_read += operation.bytes();
    if (Writes(operation.operation())) sums.bytes_written += operation.bytes();
    if (!IsCounted(step, operation.operation())) continue;
    sums.operations += operation.count();
    sums.bytes += operation.bytes();
    sums.latency_ns += static_cast<double>(operation.service().sum_ns());
  }
  for (const v1::DeviceUse& device : step.devices()) {
    sums.has_devices = true;
    sums.device_reads += device.read_operations();
    sums.device_writes += device.write_operations();
    sums.device_read_bytes += device.read_bytes();
    sums.device_write_bytes += device.write_bytes();
    sums.device_flushes += device.flush_operations();
  }
  if (step.has_io()) AddIo(step.io(), sums);
  if (step.has_cpu()) {
    sums.has_cpu = true;
    const v1::CpuUse& cpu = step.cpu();
    sums.cpu_ns += static_cast<double>(cpu.user_ns() + cpu.system_ns() - cpu.data_making_ns());
  }
}

void Reasons::AddIo(const v1::IoUse& io, Sums& sums) {
  sums.has_io = true;
  for (const v1::IoSum& sum : io.sums()) {
    sums.behind += sum.behind();
    v1::IoSum& stage = sums.stages[{sum.depth(), sum.purpose()}];
    stage.set_reads(stage.reads() + sum.reads());
    stage.set_writes(stage.writes() + sum.writes());
    stage.set_behind(stage.behind() + sum.behind());
  }
  for (const v1::IoChain& chain : io.chains()) {
    if (chain.operation() == "flush") continue;
    sums.chains += chain.count();
    for (int depth = 0; depth < chain.by_depth_size(); ++depth) {
      sums.chain_sum += static_cast<std::uint64_t>(depth) * chain.by_depth(depth);
    }
  }
  sums.durable_writes += io.durable_writes();
  for (const v1::QueueUse& queue : io.queues()) {
    sums.queued += queue.started() + queue.merged();
    sums.queue_wait_ns += queue.waited_ns();
  }
  AddHistogram(io.read_times(), sums.read_times);
  AddHistogram(io.write_times(), sums.write_times);
  AddHistogram(io.flush_times(), sums.flush_times);
  if (!io.has_modelled()) return;
  sums.has_model = true;
  v1::ModelledTime& all = sums.model;
  const v1::ModelledTime& one = io.modelled();
  all.set_command_ns(all.command_ns() + one.command_ns());
  all.set_queue_ns(all.queue_ns() + one.queue_ns());
  all.set_seek_ns(all.seek_ns() + one.seek_ns());
  all.set_rotation_ns(all.rotation_ns() + one.rotation_ns());
  all.set_transfer_ns(all.transfer_ns() + one.transfer_ns());
  all.set_bus_ns(all.bus_ns() + one.bus_ns());
}

v1::StackReasons Reasons::Of(const std::string& stack, const Sums& sums) {
  v1::StackReasons of;
  of.set_stack(stack);
  of.set_trials(sums.trials);
  of.set_operations(sums.operations);
  if (sums.operations == 0) return of;
  of.set_bytes_per_operation(Per(sums.bytes, sums.operations));
  of.set_latency_ns(Per(sums.latency_ns, sums.operations));
  if (sums.has_cpu) of.set_cpu_ns(Per(sums.cpu_ns, sums.operations));
  if (!sums.has_devices) return of;
  const std::uint64_t ios = sums.device_reads + sums.device_writes;
  of.set_ios(Per(ios, sums.operations));
  of.set_flushes(Per(sums.device_flushes, sums.operations));
  if (sums.bytes_read > 0) of.set_read_amplification(Per(sums.device_read_bytes, sums.bytes_read));
  if (sums.bytes_written > 0) {
    of.set_write_amplification(Per(sums.device_write_bytes, sums.bytes_written));
  }
  if (!sums.has_io) return of;
  of.set_ios_before(Per(ios - sums.behind, sums.operations));
  of.set_ios_behind(Per(sums.behind, sums.operations));
  of.set_durable_writes(Per(sums.durable_writes, sums.operations));
  if (sums.chains > 0) of.set_chain(Per(sums.chain_sum, sums.chains));
  for (const auto& [key, sum] : sums.stages) {
    v1::IoStage& stage = *of.add_stages();
    stage.set_depth(key.first);
    stage.set_purpose(key.second);
    stage.set_reads(Per(sum.reads(), sums.operations));
    stage.set_writes(Per(sum.writes(), sums.operations));
    stage.set_behind(Per(sum.behind(), sums.operations));
  }
  if (sums.queued > 0) of.set_queue_wait_ns(Per(sums.queue_wait_ns, sums.queued));
  if (sums.read_times.count() > 0) of.set_disk_read_ns(Mean(sums.read_times));
  if (sums.write_times.count() > 0) of.set_disk_write_ns(Mean(sums.write_times));
  if (sums.flush_times.count() > 0) of.set_disk_flush_ns(Mean(sums.flush_times));
  if (!sums.has_model || ios == 0) return of;
  v1::ModelledShares& model = *of.mutable_modelled();
  model.set_command_ns(Per(sums.model.command_ns(), ios));
  model.set_queue_ns(Per(sums.model.queue_ns(), ios));
  model.set_seek_ns(Per(sums.model.seek_ns(), ios));
  model.set_rotation_ns(Per(sums.model.rotation_ns(), ios));
  model.set_transfer_ns(Per(sums.model.transfer_ns(), ios));
  model.set_bus_ns(Per(sums.model.bus_ns(), ios));
  return of;
}

void Reasons::AddTo(const RunView& view, v1::Report& report) const {
  const std::string base = BaseStack(*view.record);
  for (const CellGroup& group : view.groups) {
    std::vector<std::string> steps;
    for (const std::size_t place : group.cells) {
      for (const std::string& step : view.cells[place].steps) {
        if (std::ranges::find(steps, step) == steps.end()) steps.push_back(step);
      }
    }
    for (const std::string& step : steps) {
      v1::StepReasons reasons;
      const CellView& first = view.cells[group.cells.front()];
      reasons.set_workload(StepName(*first.cell, step, steps.size()));
      reasons.set_parameters(first.parameters());
      for (const bool of_base : {true, false}) {
        for (const std::size_t place : group.cells) {
          const CellView& cell = view.cells[place];
          const auto found = sums_.find({cell.cell->index(), step});
          if ((cell.stack() == base) != of_base || found == sums_.end()) continue;
          *reasons.add_stacks() = Of(cell.stack(), found->second);
        }
      }
      const bool has_base = !reasons.stacks().empty() && reasons.stacks(0).stack() == base;
      for (int i = 1; has_base && i < reasons.stacks_size(); ++i) {
        for (std::string& sentence : Differences(reasons.stacks(0), reasons.stacks(i))) {
          reasons.add_sentences(std::move(sentence));
        }
      }
      *report.add_reasons() = std::move(reasons);
    }
  }
}

}  // namespace labrack::compare
