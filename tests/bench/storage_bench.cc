// What the storage core costs: a disk with its queue beside fio on the same file, volumes beside
// the same disks written in parallel, parity, and simulated I/Os of one core. Run by
// `./lab bench storage`.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <sys/resource.h>

#include <fmt/format.h>

#include "agent/exec/run.h"
#include "agent/workload/fio_import.h"
#include "storage/base/aligned_buffer.h"
#include "storage/base/random.h"
#include "storage/block/disk/file_disk.h"
#include "storage/block/disk/presets.h"
#include "storage/block/null_device.h"
#include "storage/block/queue/io_queue.h"
#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "storage/runtime/uring_reactor.h"
#include "storage/volume/parity.h"
#include "storage/volume/raid5.h"
#include "storage/volume/stripe.h"
#include "tests/bench/goals.h"
#include "tests/bench/scratch.h"

namespace labrack::bench {
namespace {

using runtime::Task;

constexpr int kRounds = 5;
constexpr Nanoseconds kRunTime = std::chrono::milliseconds(1500);
constexpr Bytes kFileSize = 256_MiB;
constexpr Bytes kBlock = 4_KiB;
constexpr std::size_t kDisks = 4;

// --- the files of four disks, written from end to end ---

std::filesystem::path DiskOf(const Scratch& scratch, std::size_t index) {
  return scratch.path() / fmt::format("disk-{}", index);
}

Result<std::unique_ptr<Scratch>> MakeDisks() {
  Result<std::unique_ptr<Scratch>> scratch = Scratch::Make();
  if (!scratch) return scratch;
  const Result<exec::Outcome> made = exec::RunChecked(
      {.words = {"fio", "--name=disk", "--filename=disk-0:disk-1:disk-2:disk-3",
                 fmt::format("--size={}", (kFileSize * kDisks).count()), "--rw=write", "--bs=1M",
                 "--direct=1", "--end_fsync=1", "--eta=never"},
       .directory = (*scratch)->path(),
       .environment = {},
       .timeout = std::chrono::minutes(2)});
  if (!made) return std::unexpected(made.error());
  return scratch;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// --- a disk with its queue, beside fio ---

struct Load {
  bool write = false;
  std::uint32_t depth = 1;
};

struct Speed {
  double per_second = 0;
  double cpu_seconds_per_operation = 0;
};

struct Clients {
  runtime::Reactor* reactor = nullptr;
  block::BlockDevice* device = nullptr;
  Load load = {};
  TimePoint until = {};
  std::uint64_t count = 0;
  std::optional<Error> failed = {};
};

Task<void> RunClient(Clients* all, Seed seed) {
  Random random(seed);
  AlignedBuffer buffer(kBlock);
  for (std::byte& byte : buffer.view()) byte = static_cast<std::byte>(random.Next());
  const std::uint64_t blocks = all->device->geometry().size / kBlock;
  const block::IoContext io{.priority = all->load.write ? block::PriorityClass::kSyncWrite
                                                        : block::PriorityClass::kSyncRead};
  while (!all->failed && all->reactor->Now() < all->until) {
    const Offset at(random.Below(blocks) * kBlock.count());
    Result<void> done;
    if (all->load.write) {
      done = co_await all->device->Write(io, at, buffer.view());
    } else {
      done = co_await all->device->Read(io, at, buffer.view());
    }
    if (!done) all->failed = done.error();
    ++all->count;
  }
}

Task<void> RunClients(Clients* all) {
  runtime::TaskGroup group(*all->reactor);
  for (std::uint32_t i = 0; i < all->load.depth; ++i) group.Spawn(RunClient(all, Seed{i + 1}));
  co_await group.Join();
}

// The defaults for solid state, but as many at the disk as fio has: the peer has no limit.
block::QueueOptions QueueFor(Load load) {
  block::QueueOptions options =
      block::QueueOptions::Classes(block::QueueOptions::Medium::kSolidState);
  for (block::ClassLimits& limits : options.classes.limits) {
    limits.active_max = std::max(limits.active_max, load.depth);
  }
  return options;
}

Result<Speed> OursOnFile(const std::filesystem::path& path, Load load) {
  Result<std::unique_ptr<runtime::UringReactor>> reactor = runtime::UringReactor::Open();
  if (!reactor) return std::unexpected(reactor.error());
  Result<std::unique_ptr<block::FileDisk>> disk = block::FileDisk::Open(**reactor, path);
  if (!disk) return std::unexpected(disk.error());
  Result<std::unique_ptr<block::IoQueue>> queue =
      block::IoQueue::Create(**reactor, **disk, QueueFor(load));
  if (!queue) return std::unexpected(queue.error());
  Clients all{.reactor = reactor->get(), .device = queue->get(), .load = load};
  const double cpu = CpuSeconds();
  const TimePoint begin = (*reactor)->Now();
  all.until = begin + kRunTime;
  (*reactor)->Run(RunClients(&all));
  const double seconds = std::chrono::duration<double>((*reactor)->Now() - begin).count();
  if (all.failed) return std::unexpected(*all.failed);
  return Speed{.per_second = static_cast<double>(all.count) / seconds,
               .cpu_seconds_per_operation = (CpuSeconds() - cpu) / static_cast<double>(all.count)};
}

Result<exec::Outcome> RunFio(const std::filesystem::path& directory,
                             std::vector<std::string> words) {
  const std::vector<std::string> all = {
      "fio",
      "--name=peer",
      "--direct=1",
      "--ioengine=io_uring",
      "--eta=never",
      "--output-format=json+",
      "--time_based",
      "--randrepeat=0",
      fmt::format("--runtime={}ms", kRunTime / std::chrono::milliseconds(1))};
  words.insert(words.begin(), all.begin(), all.end());
  return exec::RunChecked({.words = std::move(words),
                           .directory = directory,
                           .environment = {},
                           .timeout = std::chrono::minutes(1)});
}

// What fio does beside its I/Os, to be taken off its processor time: it starts and reports.
Result<double> FioOverhead(const std::filesystem::path& directory) {
  const Result<exec::Outcome> ran = exec::RunChecked({.words = {"fio", "--version"},
                                                      .directory = directory,
                                                      .environment = {},
                                                      .timeout = std::chrono::minutes(1)});
  if (!ran) return std::unexpected(ran.error());
  return static_cast<double>(ran->cpu.user_ns() + ran->cpu.system_ns()) * 1e-9;
}

Result<Speed> FioOnFile(const std::filesystem::path& directory, Load load) {
  const Result<double> overhead = FioOverhead(directory);
  if (!overhead) return std::unexpected(overhead.error());
  const Result<exec::Outcome> ran =
      RunFio(directory, {"--filename=disk-0", fmt::format("--size={}", kFileSize.count()),
                         fmt::format("--bs={}", kBlock.count()), "--norandommap",
                         load.write ? "--rw=randwrite" : "--rw=randread",
                         fmt::format("--iodepth={}", load.depth), "--registerfiles=1"});
  if (!ran) return std::unexpected(ran.error());
  const Result<workload::FioReport> report = workload::ImportFioJson(ran->output);
  if (!report) return std::unexpected(report.error());
  const double seconds = static_cast<double>(report->window.count()) * 1e-9;
  const auto count = static_cast<double>(report->operations.at(0).count());
  const double cpu = static_cast<double>(ran->cpu.user_ns() + ran->cpu.system_ns()) * 1e-9;
  return Speed{.per_second = count / seconds,
               .cpu_seconds_per_operation = (cpu - *overhead) / count};
}

// Both figures of one measurement, as two series.
void AddFileRows(Goals& goals, const Scratch& scratch, Load load) {
  const std::string name =
      fmt::format("random 4 KiB {}, depth {}", load.write ? "write" : "read", load.depth);
  std::vector<double> ours_cpu;
  std::vector<double> fio_cpu;
  const auto keep = [](const Result<Speed>& speed, std::vector<double>& cpu) -> Result<double> {
    if (!speed) return std::unexpected(speed.error());
    cpu.push_back(speed->cpu_seconds_per_operation * 1e9);
    return speed->per_second;
  };
  const std::vector<Series> series =
      Interleave(kRounds, {[&] { return keep(OursOnFile(DiskOf(scratch, 0), load), ours_cpu); },
                           [&] { return keep(FioOnFile(scratch.path(), load), fio_cpu); }});
  goals.AddRatio(name + " / fio io_uring", "op/s", series[0], series[1], Direction::kAtLeast, 0.95);
  goals.AddRatio(name + ", CPU an op / fio", "ns", {.values = ours_cpu, .error = series[0].error},
                 {.values = fio_cpu, .error = series[1].error}, Direction::kAtMost, 1);
}

// --- the path of one I/O, with nothing below ---

Task<void> ReadNull(block::BlockDevice* device, MutableView into, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Result<void> done = co_await device->Read({}, Offset(0), into);
    LABRACK_CHECK(done.has_value());
  }
}

Result<double> NanosecondsOnNull() {
  constexpr std::uint64_t kCount = 2'000'000;
  runtime::SimReactor reactor(Seed{1});
  block::NullDevice device({.size = kFileSize, .block_size = 512_B});
  Result<std::unique_ptr<block::IoQueue>> queue = block::IoQueue::Create(
      reactor, device, block::QueueOptions::Classes(block::QueueOptions::Medium::kSolidState));
  if (!queue) return std::unexpected(queue.error());
  AlignedBuffer buffer(kBlock);
  reactor.Run(ReadNull(queue->get(), buffer.view(), 1000));
  const TimePoint begin = MonotonicClock().Now();
  reactor.Run(ReadNull(queue->get(), buffer.view(), kCount));
  return static_cast<double>((MonotonicClock().Now() - begin).count()) / kCount;
}

// --- volumes, beside the same files written in parallel ---

struct Stream {
  block::BlockDevice* device = nullptr;
  runtime::Reactor* reactor = nullptr;
  Bytes block = {};
  TimePoint until = {};
  Bytes at = {};
  Bytes written = {};
  std::optional<Error> failed = {};
};

Task<void> WriteStream(Stream* stream) {
  AlignedBuffer buffer(stream->block);
  Random random(Seed{1});
  for (std::byte& byte : buffer.view()) byte = static_cast<std::byte>(random.Next());
  const Bytes size = stream->device->geometry().size;
  while (!stream->failed && stream->reactor->Now() < stream->until) {
    if (stream->at + stream->block > size) stream->at = Bytes(0);
    const Offset at(stream->at.count());
    stream->at += stream->block;
    Result<void> done = co_await stream->device->Write({}, at, buffer.view());
    if (!done) stream->failed = done.error();
    stream->written += stream->block;
  }
}

Task<void> WriteStreams(Stream* stream, std::size_t count) {
  runtime::TaskGroup group(*stream->reactor);
  for (std::size_t i = 0; i < count; ++i) group.Spawn(WriteStream(stream));
  co_await group.Join();
}

constexpr Bytes kInterlace = 256_KiB;
constexpr std::size_t kAtOnce = 8;

class Volume {
 public:
  Result<void> Open(const Scratch& scratch, bool raid5) {
    Result<std::unique_ptr<runtime::UringReactor>> reactor = runtime::UringReactor::Open();
    if (!reactor) return std::unexpected(reactor.error());
    reactor_ = *std::move(reactor);
    std::vector<volume::Component> components;
    for (std::size_t i = 0; i < kDisks; ++i) {
      Result<std::unique_ptr<block::FileDisk>> disk =
          block::FileDisk::Open(*reactor_, DiskOf(scratch, i));
      if (!disk) return std::unexpected(disk.error());
      const Result<volume::Component> placed =
          volume::PlaceComponent(**disk, Bytes(0), raid5 ? 64_KiB : Bytes(0), kInterlace);
      if (!placed) return std::unexpected(placed.error());
      components.push_back(*placed);
      disks_.push_back(*std::move(disk));
    }
    return raid5 ? OpenRaid5(std::move(components)) : OpenStripe(components);
  }
  ~Volume() {
    if (raid5_ != nullptr) (void)reactor_->Run(raid5_->Close({}));
  }

  Result<double> BytesPerSecond(Bytes block) {
    Stream stream{.device = volume_.get(), .reactor = reactor_.get(), .block = block};
    const TimePoint begin = reactor_->Now();
    stream.until = begin + kRunTime;
    reactor_->Run(WriteStreams(&stream, kAtOnce));
    const double seconds = std::chrono::duration<double>(reactor_->Now() - begin).count();
    if (stream.failed) return std::unexpected(*stream.failed);
    return static_cast<double>(stream.written.count()) / seconds;
  }

 private:
  Result<void> OpenStripe(const std::vector<volume::Component>& components) {
    Result<std::unique_ptr<volume::Stripe>> made =
        volume::Stripe::Create(*reactor_, components, kInterlace, block::FlushMode::kPass);
    if (!made) return std::unexpected(made.error());
    volume_ = *std::move(made);
    return {};
  }
  // Without a log, whose prewrites would be twice the bytes; parity need not be right before.
  Result<void> OpenRaid5(std::vector<volume::Component> components) {
    Result<std::unique_ptr<volume::Raid5>> made = reactor_->Run(volume::Raid5::Open(
        *reactor_, std::move(components),
        {.interlace = kInterlace, .parity_log = volume::ParityLogMode::kNone, .zeroed = true},
        nullptr));
    if (!made) return std::unexpected(made.error());
    raid5_ = made->get();
    volume_ = *std::move(made);
    return {};
  }

  std::unique_ptr<runtime::UringReactor> reactor_;
  std::vector<std::unique_ptr<block::FileDisk>> disks_;
  std::unique_ptr<block::BlockDevice> volume_;
  volume::Raid5* raid5_ = nullptr;
};

Result<double> VolumeOnFiles(const Scratch& scratch, bool raid5) {
  Volume volume;
  if (Result<void> opened = volume.Open(scratch, raid5); !opened) {
    return std::unexpected(opened.error());
  }
  const std::size_t data_disks = raid5 ? kDisks - 1 : kDisks;
  return volume.BytesPerSecond(kInterlace * data_disks);
}

// A job a file, each with as many I/Os at once as the volume has at each disk.
Result<double> FioOnFiles(const Scratch& scratch) {
  std::vector<std::string> words = {
      fmt::format("--bs={}", kInterlace.count()),  "--rw=write",
      fmt::format("--iodepth={}", kAtOnce),        "--thread",
      fmt::format("--size={}", kFileSize.count()), "--group_reporting"};
  for (std::size_t i = 0; i < kDisks; ++i) {
    if (i > 0) words.push_back(fmt::format("--name=peer-{}", i));
    words.push_back(fmt::format("--filename=disk-{}", i));
    if (i == 0) continue;
    for (const char* same :
         {"--ioengine=io_uring", "--direct=1", "--rw=write", "--thread", "--time_based"}) {
      words.emplace_back(same);
    }
    words.push_back(fmt::format("--bs={}", kInterlace.count()));
    words.push_back(fmt::format("--iodepth={}", kAtOnce));
    words.push_back(fmt::format("--size={}", kFileSize.count()));
    words.push_back(fmt::format("--runtime={}ms", kRunTime / std::chrono::milliseconds(1)));
  }
  const Result<exec::Outcome> ran = RunFio(scratch.path(), std::move(words));
  if (!ran) return std::unexpected(ran.error());
  const Result<workload::FioReport> report = workload::ImportFioJson(ran->output);
  if (!report) return std::unexpected(report.error());
  const double seconds = static_cast<double>(report->window.count()) * 1e-9;
  return static_cast<double>(report->operations.at(0).bytes()) / seconds;
}

// --- parity, and the simulator ---

// Of data: 8 buffers that stay in the core's cache.
Result<double> ParityBytesPerSecond() {
  constexpr std::size_t kSources = 8;
  constexpr Bytes kLength = 16_KiB;
  constexpr int kTimes = 50'000;
  AlignedBuffer memory(kLength * (kSources + 1));
  std::ranges::fill(memory.view(), std::byte{0x5a});
  std::vector<ConstView> sources;
  for (std::size_t i = 0; i < kSources; ++i) {
    sources.push_back(memory.view().subspan(kLength.size() * i, kLength.size()));
  }
  const MutableView into = memory.view().subspan(kLength.size() * kSources, kLength.size());
  const TimePoint begin = MonotonicClock().Now();
  for (int i = 0; i < kTimes; ++i) volume::XorInto(into, sources);
  const double seconds = std::chrono::duration<double>(MonotonicClock().Now() - begin).count();
  return static_cast<double>(kLength.count()) * kSources * kTimes / seconds;
}

Task<void> SimulatedReads(block::BlockDevice* disk, Seed seed, std::uint64_t count) {
  Random random(seed);
  AlignedBuffer buffer(kBlock);
  const std::uint64_t blocks = disk->geometry().size / kBlock;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Offset at(random.Below(blocks) * kBlock.count());
    Result<void> done = co_await disk->Read({}, at, buffer.view());
    LABRACK_CHECK(done.has_value());
  }
}

Task<void> SimulatedClients(runtime::Reactor* reactor, block::BlockDevice* disk,
                            std::uint64_t each) {
  runtime::TaskGroup group(*reactor);
  for (std::uint64_t i = 0; i < 8; ++i) group.Spawn(SimulatedReads(disk, Seed{i}, each));
  co_await group.Join();
}

// Random reads, eight at once, through the queue of a modelled disk.
Result<double> SimulatedPerSecond(const char* model) {
  constexpr std::uint64_t kEach = 60'000;
  runtime::SimReactor reactor(Seed{1});
  const Result<block::DiskPreset> preset = block::FindDiskPreset(model);
  if (!preset) return std::unexpected(preset.error());
  Result<block::ModelledDisks> disks =
      block::MakeModelledDisks(reactor, *preset, {.size = kFileSize});
  if (!disks) return std::unexpected(disks.error());
  Result<std::unique_ptr<block::IoQueue>> queue =
      block::IoQueue::Create(reactor, *disks->disks[0],
                             block::QueueOptions::Classes(block::QueueOptions::Medium::kRotating));
  if (!queue) return std::unexpected(queue.error());
  const TimePoint begin = MonotonicClock().Now();
  reactor.Run(SimulatedClients(&reactor, queue->get(), kEach));
  const double seconds = std::chrono::duration<double>(MonotonicClock().Now() - begin).count();
  return 8 * kEach / seconds;
}

int Main(int argc, char** argv) {
  Goals goals("storage");
  const std::vector<Series> own =
      Interleave(kRounds, {NanosecondsOnNull, ParityBytesPerSecond,
                           [] { return SimulatedPerSecond("e450-7200"); },
                           [] { return SimulatedPerSecond("nvme"); }});
  goals.AddAbsolute("null device through device and queue", "ns", own[0], Direction::kAtMost, 150);
  goals.AddAbsolute("parity, 1 core", "B/s", own[1], Direction::kAtLeast, 20e9);
  goals.AddAbsolute("simulated reads of a rotating disk, 1 core", "op/s", own[2],
                    Direction::kAtLeast, 1e6);
  goals.AddAbsolute("simulated reads of an NVMe disk, 1 core", "op/s", own[3], Direction::kAtLeast,
                    1e6);
  const Result<std::unique_ptr<Scratch>> scratch = MakeDisks();
  if (!scratch) {
    const Series none{.values = {}, .error = scratch.error()};
    goals.AddRatio("files beside fio", "op/s", none, none, Direction::kAtLeast, 0.95);
    return goals.Finish(argc, argv);
  }
  for (const Load load : {Load{false, 1}, {false, 32}, {true, 1}, {true, 32}}) {
    AddFileRows(goals, **scratch, load);
  }
  const std::vector<Series> streams =
      Interleave(kRounds, {[&] { return VolumeOnFiles(**scratch, false); },
                           [&] { return VolumeOnFiles(**scratch, true); },
                           [&] { return FioOnFiles(**scratch); }});
  goals.AddRatio("sequential write, stripe of 4 / fio on 4", "B/s", streams[0], streams[2],
                 Direction::kAtLeast, 0.9);
  goals.AddRatio("RAID-5 of 4, whole lines / fio on 4", "B/s", streams[1], streams[2],
                 Direction::kAtLeast, 0.85 * (kDisks - 1) / kDisks);
  return goals.Finish(argc, argv);
}

}  // namespace
}  // namespace labrack::bench

int main(int argc, char** argv) { return labrack::bench::Main(argc, argv); }
