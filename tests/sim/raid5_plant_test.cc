// Goal: the simulation of raid5_world.h would notice real mistakes.
// Method: each planted fault of storage/base/plant.h that is a RAID-5's, one at a time, over seeds
// until one is wrong. README.md has the seeds that it took.
#include <iostream>

#include <gtest/gtest.h>

#include "storage/base/plant.h"
#include "tests/sim/raid5_world.h"

namespace labrack {
Plant planted = Plant::kNone;
}

namespace labrack::sim {
namespace {

using volume::ParityLogMode;

struct Planted {
  Plant plant;
  const char* name;
  ParityLogMode mode;  // in which it can show
};

class Raid5Plant : public testing::TestWithParam<Planted> {};

constexpr std::uint64_t kSeedsMax = 2000;

TEST_P(Raid5Plant, IsFound) {
  planted = GetParam().plant;
  std::optional<std::string> wrong;
  std::uint64_t seed = 0;
  for (; seed < kSeedsMax && !wrong; ++seed) wrong = RunRaid5Seed(Seed{seed}, GetParam().mode);
  planted = Plant::kNone;
  ASSERT_TRUE(wrong) << GetParam().name << " is not found in " << kSeedsMax << " seeds";
  std::cout << GetParam().name << ": " << seed << " seeds: " << *wrong << '\n';
}

constexpr ParityLogMode kNone = ParityLogMode::kNone;
constexpr ParityLogMode kPpl = ParityLogMode::kPartialParity;
constexpr ParityLogMode kPrewrite = ParityLogMode::kPrewrite;

INSTANTIATE_TEST_SUITE_P(
    All, Raid5Plant,
    testing::Values(Planted{Plant::kPrewriteNotDurable, "PrewriteNotDurable", kPrewrite},
                    Planted{Plant::kSlotFreedEarly, "SlotFreedEarly", kPrewrite},
                    Planted{Plant::kFloorNotWritten, "FloorNotWritten", kPrewrite},
                    Planted{Plant::kReplayIncomplete, "ReplayIncomplete", kPrewrite},
                    Planted{Plant::kReplayUnsorted, "ReplayUnsorted", kPrewrite},
                    Planted{Plant::kReplayBelowFloor, "ReplayBelowFloor", kPrewrite},
                    Planted{Plant::kPartialParityLate, "PartialParityLate", kPpl},
                    Planted{Plant::kPartialParityWhole, "PartialParityWhole", kPpl},
                    Planted{Plant::kFailureNotRecorded, "FailureNotRecorded", kPrewrite},
                    Planted{Plant::kSpareReadEarly, "SpareReadEarly", kPrewrite},
                    Planted{Plant::kSpareWritesSkipped, "SpareWritesSkipped", kPrewrite},
                    Planted{Plant::kRebuildUnlocked, "RebuildUnlocked", kPrewrite},
                    Planted{Plant::kDirtyDegradedStarted, "DirtyDegradedStarted", kNone},
                    Planted{Plant::kParityOfOldData, "ParityOfOldData", kPpl},
                    Planted{Plant::kDegradedFullLine, "DegradedFullLine", kPrewrite}),
    [](const testing::TestParamInfo<Planted>& one) { return one.param.name; });

}  // namespace
}  // namespace labrack::sim
