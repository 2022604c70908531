#include "storage/block/wrap/stats.h"

#include <algorithm>

namespace labrack::block {
namespace {

// I/Os are counted when they are begun: a failed one was one too.
void Tally(const IoContext& io, bool write, std::size_t length) {
  IoTally::Sum& sum = io.tally->by_purpose[static_cast<std::size_t>(io.purpose)];
  ++(write ? sum.writes : sum.reads);
  sum.bytes += length;
  io.tally->depth_max = std::max(io.tally->depth_max, io.depth);
}

}  // namespace

void DeviceStats::Sum::Add(const Sum& other) {
  reads += other.reads;
  writes += other.writes;
  read += other.read;
  written += other.written;
  behind += other.behind;
  failed += other.failed;
}

DeviceStats::Sum DeviceStats::Sum::Since(const Sum& earlier) const {
  return {.reads = reads - earlier.reads,
          .writes = writes - earlier.writes,
          .read = read - earlier.read,
          .written = written - earlier.written,
          .behind = behind - earlier.behind,
          .failed = failed - earlier.failed};
}

DeviceStats::Sum DeviceStats::OfPurpose(Purpose purpose) const {
  Sum sum;
  for (const Sum& one : sums[static_cast<std::size_t>(purpose)]) sum.Add(one);
  return sum;
}

DeviceStats::Sum DeviceStats::OfDepth(std::size_t depth) const {
  Sum sum;
  for (const auto& depths : sums) sum.Add(depths[std::min(depth, kDepthMax)]);
  return sum;
}

DeviceStats::Sum DeviceStats::Total() const {
  Sum sum;
  for (std::size_t depth = 0; depth <= kDepthMax; ++depth) sum.Add(OfDepth(depth));
  return sum;
}

void DeviceStats::Merge(const DeviceStats& other) {
  for (std::size_t purpose = 0; purpose < sums.size(); ++purpose) {
    for (std::size_t depth = 0; depth <= kDepthMax; ++depth) {
      sums[purpose][depth].Add(other.sums[purpose][depth]);
    }
  }
  durable_writes += other.durable_writes;
  flushes += other.flushes;
  flushes_failed += other.flushes_failed;
  read_times.Merge(other.read_times);
  write_times.Merge(other.write_times);
  flush_times.Merge(other.flush_times);
}

DeviceStats DeviceStats::Since(const DeviceStats& earlier) const {
  DeviceStats since;
  for (std::size_t purpose = 0; purpose < sums.size(); ++purpose) {
    for (std::size_t depth = 0; depth <= kDepthMax; ++depth) {
      since.sums[purpose][depth] = sums[purpose][depth].Since(earlier.sums[purpose][depth]);
    }
  }
  since.durable_writes = durable_writes - earlier.durable_writes;
  since.flushes = flushes - earlier.flushes;
  since.flushes_failed = flushes_failed - earlier.flushes_failed;
  since.read_times = read_times.Since(earlier.read_times);
  since.write_times = write_times.Since(earlier.write_times);
  since.flush_times = flush_times.Since(earlier.flush_times);
  return since;
}

DeviceStats::Sum& StatsDevice::SumOf(const IoContext& io) {
  const std::size_t depth = std::min<std::size_t>(io.depth, DeviceStats::kDepthMax);
  return stats_.sums[static_cast<std::size_t>(io.purpose)][depth];
}

Task<Result<void>> StatsDevice::Read(IoContext io, Offset at, MutableView into) {
  DeviceStats::Sum& sum = SumOf(io);
  ++sum.reads;
  sum.read += Bytes(into.size());
  if (io.tally != nullptr) {
    Tally(io, false, into.size());
  } else {
    ++sum.behind;
  }
  const TimePoint begin = clock_.Now();
  Result<void> done = co_await device_.Read(io, at, into);
  stats_.read_times.Record(clock_.Now() - begin);
  if (!done) ++sum.failed;
  co_return done;
}

Task<Result<void>> StatsDevice::Write(IoContext io, Offset at, ConstView from) {
  DeviceStats::Sum& sum = SumOf(io);
  ++sum.writes;
  sum.written += Bytes(from.size());
  if (io.durable) ++stats_.durable_writes;
  if (io.tally != nullptr) {
    Tally(io, true, from.size());
  } else {
    ++sum.behind;
  }
  const TimePoint begin = clock_.Now();
  Result<void> done = co_await device_.Write(io, at, from);
  stats_.write_times.Record(clock_.Now() - begin);
  if (!done) ++sum.failed;
  co_return done;
}

Task<Result<void>> StatsDevice::Flush(IoContext io) {
  ++stats_.flushes;
  if (io.tally != nullptr) {
    ++io.tally->flushes;
    io.tally->depth_max = std::max(io.tally->depth_max, io.depth);
  }
  const TimePoint begin = clock_.Now();
  Result<void> done = co_await device_.Flush(io);
  stats_.flush_times.Record(clock_.Now() - begin);
  if (!done) ++stats_.flushes_failed;
  co_return done;
}

}  // namespace labrack::block
