// Goal: presets are the disks that their names say, found by name, and behave alike on every
// machine. Method: rates, seek times and latencies of each preset, measured in virtual time,
// against the table of their sources; names that do not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/block/disk/presets.h"
#include "tests/unit/model_disk_load.h"

namespace labrack::block {
namespace {

using runtime::SimReactor;
using testing::HasSubstr;

struct Made {
  explicit Made(std::string_view name, ModelledDisksOptions options = {}) {
    Result<DiskPreset> preset = FindDiskPreset(name);
    EXPECT_TRUE(preset) << preset.error().ToString();
    Result<ModelledDisks> made = MakeModelledDisks(reactor, *preset, options);
    EXPECT_TRUE(made) << made.error().ToString();
    disks = std::move(*made);
  }
  ModelDisk& disk() { return *disks.disks[0]; }

  SimReactor reactor{Seed{1}};
  ModelledDisks disks;
};

double Rate(Made& made, Load load) {
  const Nanoseconds time = RunLoad(made.reactor, made.disk(), load);
  return static_cast<double>((load.count * load.length).count()) / Seconds(time);
}

struct Rotating {
  std::string_view name;
  double gigabytes;
  double seek_read_ms;
  double seek_write_ms;
  double outer_mb;
  double inner_mb;
};

class RotatingPreset : public testing::TestWithParam<Rotating> {};

TEST_P(RotatingPreset, HasTheFiguresOfItsSource) {
  const Rotating& expected = GetParam();
  Made made(expected.name);
  auto& disk = dynamic_cast<RotatingDisk&>(made.disk());
  const Bytes size = disk.geometry().size;
  EXPECT_NEAR(static_cast<double>(size.count()) / 1e9 / expected.gigabytes, 1.0, 0.03);

  Random random(Seed{1});
  const MechanicsOptions& mechanics = disk.mechanics().options();
  const auto cylinders = disk.mechanics().PositionOf(Offset((size - 512_B).count())).cylinder;
  double seek = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto a = static_cast<std::uint32_t>(random.Below(cylinders));
    const auto b = static_cast<std::uint32_t>(random.Below(cylinders));
    seek += static_cast<double>(mechanics.seek.Time(a > b ? a - b : b - a).count()) / 1e6 / 1e5;
  }
  EXPECT_NEAR(seek / expected.seek_read_ms, 1.0, 0.03);
  EXPECT_NEAR(seek + static_cast<double>(mechanics.write_settle_ns) / 1e6, expected.seek_write_ms,
              0.15);

  const Load outer{.count = 2000, .length = 64_KiB, .random = false};
  EXPECT_NEAR(Rate(made, outer) / 1e6 / expected.outer_mb, 1.0, 0.05);
  Load inner = outer;
  inner.from = Offset((size - 130_MiB).count() / 65'536 * 65'536);
  EXPECT_NEAR(Rate(made, inner) / 1e6 / expected.inner_mb, 1.0, 0.05);
}

INSTANTIATE_TEST_SUITE_P(All, RotatingPreset,
                         testing::Values(Rotating{"e450-7200", 18.3, 7.2, 7.3, 20.5, 13.0},
                                         Rotating{"e450-10k", 17.4, 5.6, 6.1, 23.5, 16.1},
                                         Rotating{"fc15k-73", 73.4, 3.6, 4.0, 75, 50},
                                         Rotating{"ide-120", 120, 8.5, 9.5, 58, 32},
                                         Rotating{"sata-hdd", 12'000, 8.0, 8.5, 260, 120}),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::erase(name, '-');
                           return name;
                         });

double MicrosecondsEach(std::string_view name, Load load) {
  Made made(name);
  return Seconds(RunLoad(made.reactor, made.disk(), load)) * 1e6 / load.count;
}

TEST(FlashPresets, HaveTheFiguresOfTheirSource) {
  const Load read{.count = 2000};
  const Load write{.count = 2000, .write = true};
  EXPECT_NEAR(MicrosecondsEach("sata-ssd", read), 90, 10);
  EXPECT_NEAR(MicrosecondsEach("sata-ssd", write), 45, 15);
  EXPECT_NEAR(MicrosecondsEach("nvme", read), 80, 10);
  EXPECT_NEAR(MicrosecondsEach("nvme", write), 15, 5);
  for (const bool protected_buffer : {false, true}) {
    Made sata(protected_buffer ? "sata-ssd-plp" : "sata-ssd");
    Load deep{.clients = 32, .count = 10'000};
    EXPECT_NEAR(Rate(sata, deep) / 4096 / 90'000, 1.0, 0.03);
    deep.write = true;
    deep.within = 16_MiB;
    EXPECT_NEAR(Rate(sata, deep) / 4096 / 80'000, 1.0, 0.03);
    Made nvme(protected_buffer ? "nvme-plp" : "nvme");
    EXPECT_NEAR(Rate(nvme, {.clients = 256, .count = 20'000}) / 4096 / 1e6, 1.0, 0.05);
  }
  const Load stream{.clients = 8, .count = 1000, .length = 256_KiB, .random = false};
  Made sata("sata-ssd");
  EXPECT_NEAR(Rate(sata, stream) / 545e6, 1.0, 0.02);
  Made nvme("nvme");
  EXPECT_NEAR(Rate(nvme, stream) / 7e9, 1.0, 0.02);
}

// The buffer first takes writes faster than the flash; then the flash limits.
TEST(FlashPresets, WriteAtTheSpeedOfTheirFlash) {
  const Result<DiskPreset> preset = FindDiskPreset("nvme");
  auto options = std::get<ControllerDiskOptions>(preset->disk);
  options.buffer = 4_MiB;
  SimReactor reactor(Seed{1});
  Bus bus(preset->bus);
  auto disk = ControllerDisk::Create(reactor, options, bus);
  ASSERT_TRUE(disk);
  const Nanoseconds time =
      RunLoad(reactor, **disk,
              {.clients = 8, .count = 256, .length = 256_KiB, .write = true, .random = false});
  EXPECT_NEAR(60.0 * (1 << 20) / Seconds(time) / 5.0e9, 1.0, 0.03) << "4 of 64 MiB are buffered";
}

TEST(FlashPresets, AFlushCostsWhatTheBufferNeeds) {
  const Load write{.write = true};
  for (const auto& [name, microseconds] :
       {std::pair("nvme", 2000.0), std::pair("nvme-plp", 10.0), std::pair("sata-ssd", 2000.0)}) {
    Made made(name);
    RunLoad(made.reactor, made.disk(), write);
    EXPECT_NEAR(Seconds(RunFlush(made.reactor, made.disk())) * 1e6, microseconds,
                0.05 * microseconds + 1100)
        << name;
  }
}

TEST(ArrayPresets, AcknowledgeFromTheirCacheAndReadFromSpindles) {
  for (const std::string_view name : {"cx-lun", "3510-lun"}) {
    SCOPED_TRACE(name);
    EXPECT_NEAR(MicrosecondsEach(name, {.count = 500, .write = true, .within = 16_MiB}), 750, 100);
    const double miss = MicrosecondsEach(name, {.count = 500});
    EXPECT_GT(miss, 4'000) << "seek and half a revolution of a spindle";
    EXPECT_LT(miss, 7'500);
    Made made(name);
    const double stream = Rate(made, {.count = 2000, .length = 64_KiB, .random = false});
    EXPECT_GT(stream, 60e6) << "read ahead over the spindles";
    EXPECT_LT(stream, 190e6);
    Made deep(name);
    const double at_once = Rate(deep, {.clients = 64, .count = 4000}) / 4096;
    EXPECT_GT(at_once, 2.5e6 / miss) << "spindles work side by side";
  }
}

TEST(DiskPresets, AreFoundByName) {
  for (const DiskPreset& preset : DiskPresets()) {
    const Result<DiskPreset> found = FindDiskPreset(preset.name);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, preset.name);
    EXPECT_FALSE(found->summary.empty());
    EXPECT_TRUE(found->bus.Validate());
  }
  const Result<DiskPreset> unknown = FindDiskPreset("floppy");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Errc::kInvalidArgument);
  for (const char* known : {"floppy", "e450-7200", "e450-10k", "fc15k-73", "ide-120", "cx-lun",
                            "3510-lun", "sata-hdd", "sata-ssd", "nvme"}) {
    EXPECT_THAT(unknown.error().ToString(), HasSubstr(known));
  }
}

TEST(DiskPresets, DisksOfAMachineShareBusesAndDoNotTurnInStep) {
  Made made("e450-7200", {.count = 6, .size = 1_GiB, .seed = Seed{5}});
  EXPECT_EQ(made.disks.buses.size(), 2U);
  ASSERT_EQ(made.disks.disks.size(), 6U);
  std::vector<Nanoseconds> times;
  for (auto& disk : made.disks.disks) {
    EXPECT_EQ(disk->geometry().size, 1_GiB);
    times.push_back(RunLoad(made.reactor, *disk, {.within = 512_MiB}));
  }
  EXPECT_NE(times[0], times[1]);
  for (const std::string_view name : {"e450-7200", "nvme"}) {
    Result<DiskPreset> preset = FindDiskPreset(name);
    for (const Bytes size : {1000_B, 10'000_GiB}) {
      const auto wrong = MakeModelledDisks(made.reactor, *preset, {.size = size});
      ASSERT_FALSE(wrong);
      EXPECT_EQ(wrong.error().code(), Errc::kInvalidArgument);
    }
  }
}

TEST(ControllerDiskOptions, SayWhatIsWrong) {
  const Result<DiskPreset> preset = FindDiskPreset("3510-lun");
  const auto good = std::get<ControllerDiskOptions>(preset->disk);
  EXPECT_TRUE(good.Validate());
  for (int fault = 0; fault < 8; ++fault) {
    ControllerDiskOptions options = good;
    if (fault == 0) options.size = 0_B;
    if (fault == 1) options.size = 1000_B;
    if (fault == 2) options.units = 0;
    if (fault == 3) options.chunk = 100_B;
    if (fault == 4) options.chunk_write_ns = -1;
    if (fault == 5) options.segment_size = 0_B;
    if (fault == 6) options.size = 2000_GiB;
    if (fault == 7) options.queue_depth = 0;
    const Result<void> valid = options.Validate();
    ASSERT_FALSE(valid) << fault;
    EXPECT_EQ(valid.error().code(), Errc::kInvalidArgument);
  }
}

}  // namespace
}  // namespace labrack::block
