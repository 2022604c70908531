#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "storage/base/aligned_buffer.h"
#include "storage/base/histogram.h"
#include "storage/base/random.h"
#include "storage/base/units.h"
#include "storage/tool/commands.h"

namespace labrack::tool {
namespace {

using runtime::Task;
using volume::VolumeSet;

struct Work {
  block::BlockDevice* device = nullptr;
  runtime::Reactor* reactor = nullptr;
  const BenchOptions* options = nullptr;
  TimePoint until = {};
  Histogram times = {};
  std::optional<Error> failed = {};
};

Task<void> RunClient(Work* work, Seed seed) {
  Random random(seed);
  AlignedBuffer buffer(work->options->block);
  for (std::byte& byte : buffer.view()) byte = static_cast<std::byte>(random.Next());
  const std::uint64_t blocks = work->device->geometry().size / work->options->block;
  while (!work->failed) {
    const TimePoint begin = work->reactor->Now();
    if (begin >= work->until) break;
    const Offset at(random.Below(blocks) * work->options->block.count());
    block::IoContext io;
    Result<void> done;
    if (work->options->write) {
      io.priority = block::PriorityClass::kSyncWrite;
      done = co_await work->device->Write(io, at, buffer.view());
    } else {
      done = co_await work->device->Read(io, at, buffer.view());
    }
    if (!done) {
      work->failed = done.error();
      break;
    }
    work->times.Record(work->reactor->Now() - begin);
  }
}

Task<void> RunClients(Work* work) {
  runtime::TaskGroup group(*work->reactor);
  for (std::uint32_t i = 0; i < work->options->depth; ++i)
    group.Spawn(RunClient(work, Seed{i + 1}));
  co_await group.Join();
}

Result<void> CheckBlock(const BenchOptions& options, const block::BlockDevice* device) {
  if (device == nullptr) {
    return Fail(Errc::kUnavailable, "the last volume of the set",
                "lacks disks that it cannot do without");
  }
  const block::Geometry volume = device->geometry();
  if (options.block >= volume.block_size && IsAligned(options.block, volume.block_size) &&
      options.block <= volume.size) {
    return {};
  }
  return Fail(Errc::kInvalidArgument, "--block",
              "takes multiples of the volume's block of " + FormatBytesExact(volume.block_size) +
                  ", up to its " + FormatBytesExact(volume.size));
}

void PutOut(const BenchOptions& options, const Work& work, Nanoseconds took,
            const block::DeviceStats& at_disks) {
  const std::uint64_t count = work.times.count();
  const double seconds = std::chrono::duration<double>(took).count();
  const double rate = static_cast<double>(count) / seconds;
  const Nanoseconds p50 = work.times.Percentile(0.5).value_or(Nanoseconds(0));
  const Nanoseconds p99 = work.times.Percentile(0.99).value_or(Nanoseconds(0));
  const block::DeviceStats::Sum total = at_disks.Total();
  const double ios =
      count == 0 ? 0 : static_cast<double>(total.reads + total.writes) / static_cast<double>(count);
  if (options.set.json) {
    const nlohmann::ordered_json json{{"operations", count},           {"seconds", seconds},
                                      {"operations_per_second", rate}, {"p50_ns", p50.count()},
                                      {"p99_ns", p99.count()},         {"ios_per_operation", ios},
                                      {"flushes", at_disks.flushes}};
    std::fputs((json.dump(2) + "\n").c_str(), stdout);
    return;
  }
  const std::string text = fmt::format(
      "{} of {} at random places, {} at once: {:.0f}/s, p50 {}, p99 {}, {:.2f} I/Os at the disks "
      "for each\n",
      options.write ? "writes" : "reads", FormatBytesExact(options.block), options.depth, rate,
      FormatDuration(p50), FormatDuration(p99), ios);
  std::fputs(text.c_str(), stdout);
}

}  // namespace

ExitCode Bench(const BenchOptions& options) {
  Result<Disks> disks = Disks::Open(options.set.disks);
  if (!disks) return FailWith(disks.error());
  runtime::Reactor& reactor = disks->reactor();
  Result<std::unique_ptr<VolumeSet>> set =
      reactor.Run(VolumeSet::Assemble(&reactor, disks->devices(), {.auto_resync = false}));
  if (!set) return FailWith(disks->Named(set.error()));
  Work work{.device = (*set)->volume((*set)->volume_count() - 1),
            .reactor = &reactor,
            .options = &options};
  Result<void> fits = CheckBlock(options, work.device);
  const block::DeviceStats before = disks->Stats();
  const TimePoint begin = reactor.Now();
  work.until = begin + options.duration;
  if (fits) reactor.Run(RunClients(&work));
  const Nanoseconds took = reactor.Now() - begin;
  const block::DeviceStats at_disks = disks->Stats().Since(before);
  const Result<void> closed = reactor.Run((*set)->Close());
  if (!fits) return FailWith(fits.error());
  if (work.failed) return FailWith(disks->Named(*work.failed));
  if (!closed) return FailWith(disks->Named(closed.error()));
  PutOut(options, work, took, at_disks);
  return ExitCode::kPassed;
}

}  // namespace labrack::tool
