// Goal: a power cut keeps what was made durable, loses nothing else by itself, and never invents a
// byte: each unit that was not durable holds its last durable bytes or those of a write that was
// pending.
// Method: seeded writes over few blocks, against a model that remembers every candidate of a unit.
#include "storage/block/disk/disk_image.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace labrack::block {
namespace {

constexpr std::size_t kUnit = 512;
constexpr std::size_t kUnits = 24;

std::vector<std::byte> Pattern(std::size_t units, std::uint8_t value) {
  return std::vector<std::byte>(units * kUnit, std::byte{value});
}

std::uint8_t UnitOf(const DiskImage& image, std::size_t unit) {
  std::array<std::byte, kUnit> bytes{};
  image.Read(Offset(unit * kUnit), bytes);
  for (const std::byte byte : bytes) EXPECT_EQ(byte, bytes[0]) << "a unit is written whole";
  return static_cast<std::uint8_t>(bytes[0]);
}

TEST(SparseBytes, ReadsZerosWhereNothingWasWritten) {
  SparseBytes bytes;
  bytes.Write(Offset(4000), Pattern(1, 7));
  std::vector<std::byte> read(1024, std::byte{1});
  bytes.Read(Offset(3600), read);
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i], std::byte(i >= 400 && i < 912 ? 7 : 0)) << i;
  }
  EXPECT_EQ(bytes.page_count(), 2U);
}

struct Model {
  std::array<std::uint8_t, kUnits> current{};
  std::array<std::uint8_t, kUnits> durable{};
  std::array<DiskImage::WriteId, kUnits> durable_by{};  // older writes of the unit are over
  struct Pending {
    DiskImage::WriteId id;
    std::size_t first;
    std::size_t count;
    std::uint8_t value;
  };
  std::vector<Pending> pending;

  // What the unit may hold after a cut.
  std::set<std::uint8_t> Candidates(std::size_t unit) const {
    std::set<std::uint8_t> candidates{durable[unit]};
    for (const Pending& write : pending) {
      const bool covers = unit >= write.first && unit < write.first + write.count;
      if (covers && write.id > durable_by[unit]) candidates.insert(write.value);
    }
    return candidates;
  }
};

void RandomStep(DiskImage& image, Model& model, Random& random, std::uint8_t value) {
  const std::uint64_t what = random.Below(10);
  if (what == 0) {
    image.PersistAll();
    model.durable = model.current;
    model.pending.clear();
    return;
  }
  if (what < 4 && !model.pending.empty()) {
    const std::size_t index = random.Below(model.pending.size());
    const Model::Pending write = model.pending[index];
    image.Persist(write.id);
    for (std::size_t unit = write.first; unit < write.first + write.count; ++unit) {
      if (write.id < model.durable_by[unit]) continue;
      model.durable[unit] = write.value;
      model.durable_by[unit] = write.id;
    }
    model.pending.erase(model.pending.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  const std::size_t first = random.Below(kUnits);
  const std::size_t count = 1 + random.Below(kUnits - first);
  const DiskImage::WriteId id = image.Write(Offset(first * kUnit), Pattern(count, value));
  for (std::size_t unit = first; unit < first + count; ++unit) model.current[unit] = value;
  model.pending.push_back({id, first, count, value});
}

TEST(DiskImage, ACutKeepsWhatIsDurableAndInventsNothing) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(Seed{seed});
    DiskImage image;
    Model model;
    for (int step = 0; step < 40; ++step) {
      RandomStep(image, model, random, static_cast<std::uint8_t>(step + 1));
    }
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      ASSERT_EQ(UnitOf(image, unit), model.current[unit]);
    }
    const CutOptions options{.policy = static_cast<CutPolicy>(random.Below(kCutPolicyCount)),
                             .reorder = random.Chance(0.5),
                             .tear_chance = random.Unit(),
                             .unit = Bytes(kUnit)};
    image.Cut(options, random);
    EXPECT_EQ(image.pending_count(), 0U);
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      const std::uint8_t value = UnitOf(image, unit);
      EXPECT_TRUE(model.Candidates(unit).contains(value)) << "unit " << unit << ": " << int{value};
      if (options.policy == CutPolicy::kDropAll) EXPECT_EQ(value, model.durable[unit]);
    }
  }
}

// A later write that is durable stays, whatever becomes of an earlier one that was pending.
TEST(DiskImage, AnEarlierWriteDoesNotComeBackOverALaterDurableOne) {
  DiskImage image;
  image.Write(Offset(0), Pattern(2, 1));
  const DiskImage::WriteId later = image.Write(Offset(512), Pattern(2, 2));
  image.Persist(later);
  Random random(Seed{1});
  image.Cut({.policy = CutPolicy::kKeepAll, .reorder = true, .tear_chance = 0}, random);
  EXPECT_EQ(UnitOf(image, 0), 1);
  EXPECT_EQ(UnitOf(image, 1), 2);
  EXPECT_EQ(UnitOf(image, 2), 2);
}

TEST(DiskImage, EveryPolicyDoesWhatItsNameSays) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (int policy = 0; policy < kCutPolicyCount; ++policy) {
      DiskImage image;
      for (std::size_t unit = 0; unit < 8; ++unit) {
        image.Write(Offset(unit * kUnit), Pattern(1, 9));
      }
      EXPECT_EQ(image.pending_bytes(), Bytes(8 * kUnit));
      Random random(Seed{seed});
      image.Cut({.policy = static_cast<CutPolicy>(policy), .tear_chance = 0}, random);
      int kept = 0;
      bool gap = false;
      bool after_gap = false;
      for (std::size_t unit = 0; unit < 8; ++unit) {
        const bool here = UnitOf(image, unit) == 9;
        kept += here;
        after_gap = after_gap || (gap && here);
        gap = gap || !here;
      }
      switch (static_cast<CutPolicy>(policy)) {
        case CutPolicy::kKeepAll:
          EXPECT_EQ(kept, 8);
          break;
        case CutPolicy::kDropAll:
          EXPECT_EQ(kept, 0);
          break;
        case CutPolicy::kPrefix:
          EXPECT_FALSE(after_gap);
          break;
        case CutPolicy::kRandomSubset:
          break;
        case CutPolicy::kSingleMissing:
          EXPECT_EQ(kept, 7);
          break;
        case CutPolicy::kSingleKept:
          EXPECT_EQ(kept, 1);
          break;
      }
    }
  }
}

}  // namespace
}  // namespace labrack::block
