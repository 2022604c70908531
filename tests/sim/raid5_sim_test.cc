// Goal: a RAID-5 loses nothing that was acknowledged durably, whatever is written, lost, rebuilt
// and cut; and where it must not go on it says so.
// Method: seeded lives of raid5_world.h. One seed: LABRACK_SEED=N.
#include <gtest/gtest.h>

#include "tests/sim/raid5_world.h"
#include "tests/sim/seeds.h"

namespace labrack::sim {
namespace {

using volume::ParityLogMode;

void ExpectNothingWrong(std::uint64_t seeds, ParityLogMode mode) {
  ForEachSeed(seeds, [mode](Seed seed) {
    const std::optional<std::string> wrong = RunRaid5Seed(seed, mode);
    EXPECT_EQ(wrong, std::nullopt) << *wrong;
  });
}

TEST(Raid5Sim, PrewritesLoseNothing) { ExpectNothingWrong(300, ParityLogMode::kPrewrite); }
TEST(Raid5Sim, PartialParitiesLoseNoUntouchedBlock) {
  ExpectNothingWrong(300, ParityLogMode::kPartialParity);
}
TEST(Raid5Sim, WithoutALogACompleteVolumeLosesNothing) {
  ExpectNothingWrong(300, ParityLogMode::kNone);
}

// What the mode without a log risks, and why its assembly is refused: of a volume that is forced,
// blocks that nobody was writing come back wrong.
Raid5Case WriteHole(ParityLogMode mode) {
  Raid5Case hole;
  hole.options.parity_log = mode;
  hole.options.zeroed = true;
  hole.options.force = true;
  hole.options.interlace = 4_KiB;
  hole.lines = 6;
  hole.durable_writes = true;
  hole.lives = 2;
  hole.lose_disk_after_cut = true;
  return hole;
}

// The seeds whose volume came back wrong.
std::uint64_t HoleCount(ParityLogMode mode) {
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Raid5World world(WriteHole(mode), Seed{seed});
    world.ForgiveInFlight();
    if (world.Run()) ++count;
  }
  return count;
}

TEST(Raid5Sim, TheWriteHoleIsThereWithoutALogAndClosedWithOne) {
  EXPECT_GT(HoleCount(ParityLogMode::kNone), 5U);
  EXPECT_EQ(HoleCount(ParityLogMode::kPartialParity), 0U);
  EXPECT_EQ(HoleCount(ParityLogMode::kPrewrite), 0U);
}

TEST(Raid5Sim, WithoutALogAVolumeThatIsUncleanAndLacksAColumnIsRefused) {
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Raid5Case hole = WriteHole(ParityLogMode::kNone);
    hole.options.force = false;
    Raid5World world(hole, Seed{seed});
    EXPECT_EQ(world.Run(), std::nullopt);
    refused += world.refused_count();
  }
  EXPECT_GT(refused, 10U);
}

TEST(Raid5Sim, ASeedReplaysByteForByte) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::uint64_t> hashes;
    for (int run = 0; run < 2; ++run) {
      Random random(Derive(Seed{seed}, "case"));
      Raid5World world(DrawRaid5Case(random, std::nullopt), Seed{seed});
      EXPECT_EQ(world.Run(), std::nullopt);
      hashes.push_back(world.trace_hash());
    }
    EXPECT_EQ(hashes[0], hashes[1]) << seed;
  }
}

}  // namespace
}  // namespace labrack::sim
