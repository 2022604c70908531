// From readings of counters to the figures of a result.
#include <algorithm>

#include "agent/stack/core_stack.h"
#include "proto/convert/convert.h"

namespace labrack::stack {
namespace {

block::DeviceStats SumOfDisks(const IoReading& before, const IoReading& after) {
  block::DeviceStats sum;
  for (std::size_t i = 0; i < after.disks.size(); ++i) {
    sum.Merge(after.disks[i].Since(before.disks[i]));
  }
  return sum;
}

void AddSums(const block::DeviceStats& disks, v1::IoUse& use) {
  for (std::size_t purpose = 0; purpose < disks.sums.size(); ++purpose) {
    for (std::size_t depth = 0; depth <= block::DeviceStats::kDepthMax; ++depth) {
      const block::DeviceStats::Sum& sum = disks.sums[purpose][depth];
      if (sum.reads + sum.writes == 0) continue;
      v1::IoSum& into = *use.add_sums();
      into.set_purpose(std::string(block::PurposeName(static_cast<block::Purpose>(purpose))));
      into.set_depth(static_cast<std::uint32_t>(depth));
      into.set_reads(sum.reads);
      into.set_writes(sum.writes);
      into.set_read_bytes(sum.read.count());
      into.set_written_bytes(sum.written.count());
      into.set_behind(sum.behind);
      into.set_failed(sum.failed);
    }
  }
  use.set_flushes(disks.flushes);
  use.set_flushes_failed(disks.flushes_failed);
  use.set_durable_writes(disks.durable_writes);
  *use.mutable_read_times() = convert::ToMessage(disks.read_times);
  *use.mutable_write_times() = convert::ToMessage(disks.write_times);
  *use.mutable_flush_times() = convert::ToMessage(disks.flush_times);
}

void AddChain(const char* operation, const fs::ChainCounts& counts, v1::IoUse& use) {
  if (counts.count == 0) return;
  v1::IoChain& chain = *use.add_chains();
  chain.set_operation(operation);
  chain.set_count(counts.count);
  for (const std::uint64_t count : counts.by_depth) chain.add_by_depth(count);
}

void AddClass(std::size_t priority, const block::QueueClassStats& before,
              const block::QueueClassStats& after, v1::QueueUse& use) {
  use.set_priority(
      std::string(block::PriorityClassName(static_cast<block::PriorityClass>(priority))));
  use.set_started(use.started() + after.started_count - before.started_count);
  use.set_merged(use.merged() + after.merged_count - before.merged_count);
  const std::uint64_t waited = after.waits.sum_ns() - before.waits.sum_ns();
  use.set_waited_ns(use.waited_ns() + static_cast<std::int64_t>(waited));
  for (std::size_t depth = 0; depth < after.depths.size(); ++depth) {
    use.set_depth_sum(use.depth_sum() + depth * (after.depths[depth] - before.depths[depth]));
  }
  use.set_waiting_max(std::max(use.waiting_max(), after.waiting_max));
  use.set_starvation_max_ns(
      std::max<std::int64_t>(use.starvation_max_ns(), after.starvation_max.count()));
}

void AddQueues(const IoReading& before, const IoReading& after, v1::IoUse& use) {
  for (std::size_t priority = 0; priority < block::kPriorityClassCount; ++priority) {
    v1::QueueUse sum;
    for (std::size_t i = 0; i < after.queues.size(); ++i) {
      AddClass(priority, before.queues[i].classes[priority], after.queues[i].classes[priority],
               sum);
    }
    if (sum.started() > 0) *use.add_queues() = std::move(sum);
  }
}

void AddModelled(const block::DiskCounters& before, const block::DiskCounters& after,
                 v1::ModelledTime& use) {
  use.set_command_ns(use.command_ns() + (after.command - before.command).count());
  use.set_queue_ns(use.queue_ns() + (after.queue - before.queue).count());
  use.set_seek_ns(use.seek_ns() + (after.seek - before.seek).count());
  use.set_rotation_ns(use.rotation_ns() + (after.rotation - before.rotation).count());
  use.set_transfer_ns(use.transfer_ns() + (after.transfer - before.transfer).count());
  use.set_bus_ns(use.bus_ns() + (after.bus - before.bus).count());
  use.set_cache_hits(use.cache_hits() + after.cache_hits - before.cache_hits);
  use.set_write_backs(use.write_backs() + after.write_backs - before.write_backs);
}

}  // namespace

v1::IoUse IoUseBetween(const IoReading& before, const IoReading& after) {
  v1::IoUse use;
  AddSums(SumOfDisks(before, after), use);
  AddChain("read", after.files.reads.Since(before.files.reads), use);
  AddChain("write", after.files.writes.Since(before.files.writes), use);
  AddChain("flush", after.files.flushes.Since(before.files.flushes), use);
  AddQueues(before, after, use);
  for (std::size_t i = 0; i < after.modelled.size(); ++i) {
    AddModelled(before.modelled[i], after.modelled[i], *use.mutable_modelled());
  }
  return use;
}

std::vector<v1::DeviceUse> DeviceUseBetween(const IoReading& before, const IoReading& after) {
  std::vector<v1::DeviceUse> all;
  for (std::size_t i = 0; i < after.disks.size(); ++i) {
    const block::DeviceStats disk = after.disks[i].Since(before.disks[i]);
    const block::DeviceStats::Sum total = disk.Total();
    v1::DeviceUse& use = all.emplace_back();
    use.set_device("disk " + std::to_string(i));
    use.set_read_operations(total.reads);
    use.set_read_bytes(total.read.count());
    use.set_write_operations(total.writes);
    use.set_write_bytes(total.written.count());
    use.set_flush_operations(disk.flushes);
  }
  return all;
}

}  // namespace labrack::stack
