// Goal: the model of a rotating disk gives what closed forms say, and keeps the laws of any disk.
// Method: sequential transfers against the formula of sustained rates; random requests against the
// means of seek and rotation; small synchronous writes against one revolution each; properties over
// seeds.
#include <cmath>

#include <gtest/gtest.h>

#include "storage/base/random.h"
#include "storage/block/disk/mechanics.h"

namespace labrack::block {
namespace {

constexpr std::int64_t kRevolution = 8'333'333;

// Much like an IBM 18ES of 1998 (storage-core reference, extracted by DiskSim's authors).
MechanicsOptions Options() {
  MechanicsOptions options;
  options.revolution_ns = kRevolution;
  options.surfaces = 5;
  options.zones = EvenZones(11'474, 390, 247, 11);
  options.seek = {.knee_cylinders = 700,
                  .near_base_ns = 1'318'000,
                  .near_sqrt_ns = 144'700,
                  .far_base_ns = 4'462'000,
                  .far_linear_ps = 745'000};
  options.head_switch_ns = 62'000;
  options.write_settle_ns = 126'000;
  options.track_skew_ns = 1'360'000;
  options.cylinder_skew_ns = 1'670'000;
  return options;
}

double Mean(double sum, int count) { return sum / count; }

TEST(SeekCurve, FollowsItsTwoBranches) {
  const SeekCurve curve = Options().seek;
  EXPECT_EQ(curve.Time(0).count(), 0);
  EXPECT_NEAR(static_cast<double>(curve.Time(1).count()), 1'318'000 + 144'700, 1000);
  EXPECT_NEAR(static_cast<double>(curve.Time(400).count()), 1'318'000 + 144'700 * 20, 1000);
  EXPECT_EQ(curve.Time(10'000).count(), 4'462'000 + 7'450'000);
  for (std::uint32_t d = 1; d < 11'000; ++d) {
    // The branches were fitted apart and need not meet; nowhere else does a longer way take less.
    if (d + 1 != curve.knee_cylinders) EXPECT_LE(curve.Time(d), curve.Time(d + 1)) << d;
  }
}

TEST(Mechanics, HasTheCapacityOfItsZones) {
  const Mechanics disk(Options());
  std::uint64_t sectors = 0;
  for (const Zone& zone : Options().zones) {
    sectors += std::uint64_t{zone.cylinders} * 5 * zone.sectors_per_track;
  }
  EXPECT_EQ(disk.capacity(), Bytes(sectors * 512));
}

// Sustained rate of a zone: a cylinder's bytes in (surfaces revolutions + its switches).
TEST(Mechanics, ASequentialTransferHasTheRateOfTheClosedForm) {
  const MechanicsOptions options = Options();
  const Mechanics disk(options);
  constexpr std::uint64_t kCylinders = 100;
  const std::uint64_t sectors = kCylinders * options.surfaces * 390;
  Mechanics::Position position;
  const Mechanics::Times times = disk.Serve(position, Offset(0), Bytes(sectors * 512), false, {});
  const std::int64_t each = options.surfaces * kRevolution +
                            (options.surfaces - 1) * options.track_skew_ns +
                            options.cylinder_skew_ns;
  const std::int64_t expected =
      static_cast<std::int64_t>(kCylinders) * each - options.cylinder_skew_ns;
  EXPECT_NEAR(static_cast<double>(times.transfer.count()), static_cast<double>(expected), 1000);
}

// Cut into requests that follow each other at once, it takes no longer: skew hides the moves.
TEST(Mechanics, RequestsThatFollowEachOtherLoseNoRevolution) {
  const Mechanics disk(Options());
  constexpr std::uint64_t kRequests = 2000;
  for (const bool write : {false, true}) {
    Mechanics::Position position;
    TimePoint now{};
    now += disk.Serve(position, Offset(0), 64_KiB, write, now).total();
    const TimePoint begin = now;
    for (std::uint64_t i = 1; i <= kRequests; ++i) {
      now += disk.Serve(position, Offset(i * 65'536), 64_KiB, write, now).total();
    }
    const Nanoseconds at_once = disk.Continuing(Offset(65'536), kRequests * 64_KiB);
    EXPECT_NEAR(static_cast<double>((now - begin).count()), static_cast<double>(at_once.count()),
                5.0 * kRequests);
  }
}

// What has passed after the time that a length takes is that length, to the sector.
TEST(Mechanics, ATransferThatGoesOnPassesWhatItsTimeAllows) {
  const Mechanics disk(Options());
  const std::uint64_t sectors = disk.capacity() / MechanicsOptions::kSector;
  Random random(Seed{4});
  for (int i = 0; i < 2000; ++i) {
    const Bytes length((1 + random.Below(3000)) * 512);
    const Offset at(random.Below(sectors - 10'000) * 512);
    const Nanoseconds time = disk.Continuing(at, length);
    const Bytes passed = disk.PassedAfter(at, length + 100_KiB, time + Nanoseconds(20));
    EXPECT_GE(passed + Bytes(512), length);
    EXPECT_LE(passed, length + Bytes(512));
    EXPECT_EQ(disk.PassedAfter(at, length, std::chrono::hours(1)), length);
    EXPECT_EQ(disk.PassedAfter(at, length, Nanoseconds(0)), Bytes(0));
  }
}

TEST(Mechanics, RandomReadsTakeMeanSeekAndHalfARevolution) {
  const Mechanics disk(Options());
  const std::uint64_t pages = disk.capacity() / 4_KiB;
  Random random(Seed{1});
  Mechanics::Position position;
  TimePoint now{};
  double seek = 0;
  double rotation = 0;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) {
    const Mechanics::Times times =
        disk.Serve(position, Offset(random.Below(pages) * 4096), 4_KiB, false, now);
    seek += static_cast<double>(times.seek.count());
    rotation += static_cast<double>(times.rotation.count());
    now += times.total() + Nanoseconds(random.Below(1'000'000));
  }
  EXPECT_NEAR(Mean(seek, kCount) / 1e6, 7.2, 0.4) << "the drive's average seek";
  EXPECT_NEAR(Mean(rotation, kCount) / (kRevolution / 2.0), 1.0, 0.02);
}

// Post 0's effect: the next block has just gone by when its write is asked for.
TEST(Mechanics, SmallSynchronousWritesInARowTakeARevolutionEach) {
  const Mechanics disk(Options());
  Mechanics::Position position;
  TimePoint now{};
  now += disk.Serve(position, Offset(0), 2_KiB, true, now).total();
  const Nanoseconds overhead(500'000);
  for (std::uint64_t i = 1; i < 90; ++i) {  // within the first track
    const TimePoint begin = now;
    now += overhead;
    now += disk.Serve(position, Offset(i * 2048), 2_KiB, true, now).total();
    EXPECT_NEAR(static_cast<double>((now - begin).count()), kRevolution + kRevolution * 4.0 / 390,
                1000);
  }
}

TEST(Mechanics, KeepsTheLawsOfAnyDisk) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(Seed{seed});
    MechanicsOptions options = Options();
    options.surfaces = static_cast<std::uint32_t>(1 + random.Below(12));
    options.revolution_ns = static_cast<std::int64_t>(4'000'000 + random.Below(8'000'000));
    options.zones = EvenZones(static_cast<std::uint32_t>(100 + random.Below(5000)), 400, 150,
                              static_cast<std::uint32_t>(1 + random.Below(20)));
    const Mechanics disk(options);
    const std::uint64_t sectors = disk.capacity() / MechanicsOptions::kSector;
    Mechanics::Position position;
    TimePoint now{};
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t count = 1 + random.Below(2000);
      const std::uint64_t first = random.Below(sectors - count);
      const Mechanics::Position before = position;
      const bool write = random.Chance(0.5);
      const Mechanics::Times times =
          disk.Serve(position, Offset(first * 512), Bytes(count * 512), write, now);
      EXPECT_GE(times.seek.count(), 0);
      EXPECT_GE(times.rotation.count(), 0);
      EXPECT_LT(times.rotation.count(), options.revolution_ns);
      // Never faster than the surface under the head.
      EXPECT_GE(static_cast<double>(times.transfer.count()) * 1.0001 + 10,
                static_cast<double>(count) * static_cast<double>(options.revolution_ns) / 400);
      EXPECT_EQ(disk.Positioning(before, Offset(first * 512), write, now),
                times.seek + times.rotation);
      now += times.total();
    }
  }
}

TEST(MechanicsOptions, SayWhatIsWrong) {
  EXPECT_TRUE(Options().Validate());
  for (int fault = 0; fault < 6; ++fault) {
    MechanicsOptions options = Options();
    if (fault == 0) options.revolution_ns = 0;
    if (fault == 1) options.surfaces = 0;
    if (fault == 2) options.zones.clear();
    if (fault == 3) options.track_skew_ns = 100'000;
    if (fault == 5) options.cylinder_skew_ns = options.revolution_ns;
    if (fault == 4) options.zones[0].sectors_per_track = 0;
    const Result<void> valid = options.Validate();
    ASSERT_FALSE(valid) << fault;
    EXPECT_EQ(valid.error().code(), Errc::kInvalidArgument);
  }
}

}  // namespace
}  // namespace labrack::block
