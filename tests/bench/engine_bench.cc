// What the workload engine itself costs: on a target that does nothing, and beside fio on the same
// file. Run by `./lab bench engine`.
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "agent/exec/run.h"
#include "agent/workload/engine.h"
#include "agent/workload/fio_import.h"
#include "agent/workload/pages.h"
#include "storage/block/null_device.h"
#include "storage/fs/host_file_system.h"
#include "storage/runtime/host_env.h"
#include "storage/runtime/host_launcher.h"
#include "tests/bench/goals.h"
#include "tests/bench/scratch.h"

namespace labrack::bench {
namespace {

using workload::Client;
using workload::Data;
using workload::FileId;
using workload::Generation;

constexpr int kRounds = 5;
constexpr Nanoseconds kRunTime = std::chrono::milliseconds(1500);
constexpr Bytes kFileSize = 256_MiB;
constexpr Bytes kBlock = 4_KiB;

double OperationsPerSecond(const v1::StepResult& result) {
  std::uint64_t count = 0;
  for (const v1::OperationResult& operation : result.operations()) count += operation.count();
  return static_cast<double>(count) * 1e9 /
         static_cast<double>(result.measure_end_mono_ns() - result.measure_begin_mono_ns());
}

// `random` on a target that does nothing, one client, with latency recorded.
Result<double> RandomOnNull() {
  runtime::HostEnv env;
  runtime::HostLauncher launcher;
  block::NullDevice device({.size = kFileSize, .block_size = 512_B});
  const Data data(Seed{1}, v1::DATA_KIND_RANDOM);
  const workload::PageWork work{.device = &device,
                                .name = "null",
                                .page = kBlock,
                                .page_count = kFileSize / kBlock,
                                .read_share = 1,
                                .data = &data};
  const workload::StepPlan plan{
      .step = "mix", .kinds = {{.name = "read"}}, .duration = kRunTime, .seed = Seed{1}};
  workload::Engine engine(env, launcher);
  const workload::StepOutcome outcome =
      engine.Run(plan, workload::StepContext{},
                 [&](Client& client) { return workload::RunPages(&client, &work); });
  if (!outcome.status) return std::unexpected(outcome.status.error());
  return OperationsPerSecond(outcome.result);
}

// Bytes per second at which one core makes, or checks, the data of 128 KiB blocks.
Result<double> DataSpeed(bool compare) {
  constexpr Bytes kPiece = 128_KiB;
  constexpr int kPieces = 8192;  // 1 GiB
  const Data data(Seed{1}, v1::DATA_KIND_RANDOM);
  AlignedBuffer buffer(kPiece);
  data.Fill(FileId{0}, Offset(0), Generation{0}, buffer.view());
  const TimePoint begin = MonotonicClock().Now();
  for (int i = 0; i < kPieces; ++i) {
    const Offset at(compare ? 0 : static_cast<std::uint64_t>(i) * kPiece.count());
    if (!compare) {
      data.Fill(FileId{0}, at, Generation{0}, buffer.view());
    } else if (data.Compare(FileId{0}, at, Generation{0}, buffer.view())) {
      return Fail(Errc::kInternal, "the data does not compare with itself");
    }
  }
  const double seconds = static_cast<double>((MonotonicClock().Now() - begin).count()) * 1e-9;
  return static_cast<double>(kPiece.count()) * kPieces / seconds;
}

struct Load {
  bool write = false;
  std::uint32_t depth = 1;
};

// `random` on a file, as a playbook runs it.
class RandomOnFile {
 public:
  Result<void> Open(const std::filesystem::path& directory, Load load) {
    Result<std::unique_ptr<fs::HostFileSystem>> opened = fs::HostFileSystem::Open(directory);
    if (!opened) return std::unexpected(opened.error());
    file_system_ = *std::move(opened);
    v1::Workload spec;
    v1::RandomWorkload& random = *spec.mutable_random();
    random.set_file(kFileSize.count());
    random.set_block(kBlock.count());
    random.set_read(load.write ? 0 : 1);
    random.set_clients(1);
    random.set_depth(load.depth);
    random.set_direct(true);
    random.mutable_stop()->set_duration(kRunTime.count());
    random.set_data(v1::DATA_KIND_RANDOM);
    random.set_verify(v1::VERIFY_ALL);
    Result<std::unique_ptr<workload::Workload>> made =
        workload::MakeWorkload(spec, Seed{1},
                               {.file_system = file_system_.get(),
                                .directory = directory,
                                .cpu_count = std::thread::hardware_concurrency()},
                               env_);
    if (!made) return std::unexpected(made.error());
    workload_ = *std::move(made);
    const Result<workload::LayOutReport> laid_out = workload_->LayOut({});
    if (!laid_out) return std::unexpected(laid_out.error());
    return {};
  }

  Result<double> Measure() {
    const workload::StepOutcome outcome = workload_->RunStep(0, {});
    if (!outcome.status) return std::unexpected(outcome.status.error());
    return OperationsPerSecond(outcome.result);
  }

 private:
  runtime::HostEnv env_;
  std::unique_ptr<fs::HostFileSystem> file_system_;
  std::unique_ptr<workload::Workload> workload_;
};

// The same load by fio on the same file, a thread for each operation under way.
Result<double> FioOnFile(const std::filesystem::path& directory, Load load) {
  const Result<exec::Outcome> ran = exec::RunChecked(
      {.words = {"fio", "--name=peer", "--filename=random.dat",
                 fmt::format("--size={}", kFileSize.count()), "--ioengine=psync", "--direct=1",
                 fmt::format("--bs={}", kBlock.count()),
                 load.write ? "--rw=randwrite" : "--rw=randread", "--norandommap", "--randrepeat=0",
                 "--thread", fmt::format("--numjobs={}", load.depth), "--group_reporting",
                 "--time_based",
                 fmt::format("--runtime={}ms", kRunTime / std::chrono::milliseconds(1)),
                 "--eta=never", "--output-format=json+"},
       .directory = directory,
       .environment = {},
       .timeout = std::chrono::minutes(1)});
  if (!ran) return std::unexpected(ran.error());
  const Result<workload::FioReport> report = workload::ImportFioJson(ran->output);
  if (!report) return std::unexpected(report.error());
  const double seconds = static_cast<double>(report->window.count()) * 1e-9;
  return static_cast<double>(report->operations.at(0).count()) / seconds;
}

void AddFileRow(Goals& goals, const std::string& name, Load load) {
  Result<std::unique_ptr<Scratch>> scratch = Scratch::Make();
  RandomOnFile ours;
  Result<void> opened;
  if (scratch) {
    opened = ours.Open((*scratch)->path(), load);
  } else {
    opened = std::unexpected(scratch.error());
  }
  if (!opened) {
    return goals.AddRatio(name, "op/s", Series{.values = {}, .error = opened.error()}, Series{},
                          Direction::kAtLeast, 0.95);
  }
  const std::vector<Series> series = Interleave(
      kRounds,
      {[&] { return ours.Measure(); }, [&] { return FioOnFile((*scratch)->path(), load); }});
  goals.AddRatio(name, "op/s", series[0], series[1], Direction::kAtLeast, 0.95);
}

// `stream` onto a file system in memory, the fastest target there is.
Result<double> StreamInMemory(v1::DataKind kind) {
  Result<std::unique_ptr<Scratch>> scratch = Scratch::MakeIn("/dev/shm");
  if (!scratch) return std::unexpected(scratch.error());
  Result<std::unique_ptr<fs::HostFileSystem>> files = fs::HostFileSystem::Open((*scratch)->path());
  if (!files) return std::unexpected(files.error());
  runtime::HostEnv env;
  v1::Workload spec;
  v1::StreamWorkload& stream = *spec.mutable_stream();
  stream.set_direction(v1::DIRECTION_WRITE);
  stream.set_file((1_GiB).count());
  stream.set_block((128_KiB).count());
  stream.set_sync(v1::STREAM_SYNC_NONE);
  stream.set_clients(1);
  stream.set_data(kind);
  stream.set_verify(v1::VERIFY_NONE);
  Result<std::unique_ptr<workload::Workload>> made =
      workload::MakeWorkload(spec, Seed{1},
                             {.file_system = files->get(),
                              .directory = (*scratch)->path(),
                              .cpu_count = std::thread::hardware_concurrency()},
                             env);
  if (!made) return std::unexpected(made.error());
  const workload::StepOutcome outcome = (*made)->RunStep(0, {});
  if (!outcome.status) return std::unexpected(outcome.status.error());
  return OperationsPerSecond(outcome.result) * static_cast<double>(stream.block());
}

int Main(int argc, char** argv) {
  Goals goals("engine");
  const std::vector<Series> own = Interleave(
      kRounds, {RandomOnNull, [] { return DataSpeed(false); }, [] { return DataSpeed(true); }});
  goals.AddAbsolute("random on a null target, 1 thread", "op/s", own[0], Direction::kAtLeast, 3e6);
  goals.AddAbsolute("data made, 1 core", "B/s", own[1], Direction::kAtLeast, 5e9);
  goals.AddAbsolute("data compared, 1 core", "B/s", own[2], Direction::kAtLeast, 3e9);
  AddFileRow(goals, "random 4 KiB direct read, depth 1 / fio psync", {.write = false, .depth = 1});
  AddFileRow(goals, "random 4 KiB direct write, depth 1 / fio psync", {.write = true, .depth = 1});
  AddFileRow(goals, "random 4 KiB direct read, depth 4 / fio psync", {.write = false, .depth = 4});
  // Nothing is made for zeros, so they are what the target takes.
  const std::vector<Series> streams =
      Interleave(kRounds, {[] { return StreamInMemory(v1::DATA_KIND_RANDOM); },
                           [] { return StreamInMemory(v1::DATA_KIND_ZEROS); }});
  goals.AddRatio("stream write in memory, data made / zeros", "B/s", streams[0], streams[1],
                 Direction::kAtLeast, 0.9);
  return goals.Finish(argc, argv);
}

}  // namespace
}  // namespace labrack::bench

int main(int argc, char** argv) { return labrack::bench::Main(argc, argv); }
