// Goal: sets of stacked volumes assemble from disks in any order and keep what was flushed through
// power cuts and lost disks; a disk that was away never brings old data back; half a set is read
// and not written; what cannot be made or assembled says so once and changes nothing.
// Method: drawn topologies with seeded clients against a model of versions; each refusal on disks
// whose content is compared byte for byte.
#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "storage/volume/volume_set.h"
#include "tests/sim/seeds.h"
#include "tests/sim/volume_client.h"

namespace labrack::volume {
namespace {

using runtime::SimReactor;
using runtime::TaskGroup;
using sim::BlockModel;
using sim::SimDisk;
using testing::HasSubstr;
using Devices = std::vector<block::BlockDevice*>;

constexpr std::size_t kSeeds = 800;
constexpr Bytes kSector{512};

ChildEntry OnDisk(std::uint32_t index) {
  return {.source = ChildEntry::Source::kDisk, .index = index};
}
ChildEntry OnVolume(std::uint32_t index) {
  return {.source = ChildEntry::Source::kVolume, .index = index};
}
VolumeEntry Make(Kind kind, std::vector<ChildEntry> children) {
  return {.kind = kind, .interlace = 2_KiB, .children = std::move(children)};
}

// The last volume is the one that is used.
std::vector<VolumeEntry> MirrorOfStripes() {
  return {Make(Kind::kStripe, {OnDisk(0), OnDisk(1)}), Make(Kind::kStripe, {OnDisk(2), OnDisk(3)}),
          Make(Kind::kMirror, {OnVolume(0), OnVolume(1)})};
}
std::vector<VolumeEntry> StripeOfMirrors() {
  return {Make(Kind::kMirror, {OnDisk(0), OnDisk(1)}), Make(Kind::kMirror, {OnDisk(2), OnDisk(3)}),
          Make(Kind::kStripe, {OnVolume(0), OnVolume(1)})};
}
std::vector<VolumeEntry> MirrorOfMirrors() {
  return {Make(Kind::kMirror, {OnDisk(0), OnDisk(1)}), Make(Kind::kConcat, {OnDisk(2), OnDisk(3)}),
          Make(Kind::kMirror, {OnVolume(0), OnVolume(1)})};
}
std::vector<VolumeEntry> FourWayMirror() {
  return {Make(Kind::kMirror, {OnDisk(0), OnDisk(1), OnDisk(2), OnDisk(3)})};
}

std::vector<VolumeEntry> Parity(ParityLogMode mode) {
  VolumeEntry raid5 = Make(Kind::kRaid5, {OnDisk(0), OnDisk(1), OnDisk(2), OnDisk(3)});
  raid5.parity_log = mode;
  return {raid5};
}
std::vector<VolumeEntry> MirrorOfParity() {
  return {Make(Kind::kRaid5, {OnDisk(0), OnDisk(1), OnDisk(2)}), Make(Kind::kConcat, {OnDisk(3)}),
          Make(Kind::kMirror, {OnVolume(0), OnVolume(1)})};
}

struct World {
  explicit World(Seed seed, std::size_t count = 5)
      : random(Derive(seed, "world")), reactor(Derive(seed, "reactor")), model(0) {
    for (std::size_t i = 0; i < count; ++i) Add(seed);
  }
  SimDisk& Add(Seed seed, std::uint64_t sectors = 700, Bytes sector = kSector) {
    const SimDisk::Options options{.geometry = {.size = sector * sectors, .block_size = sector}};
    disks.push_back(std::make_unique<SimDisk>(reactor, options, Derive(seed, disks.size())));
    return *disks.back();
  }
  Devices All() const {
    Devices all;
    for (const auto& disk : disks) all.push_back(disk.get());
    return all;
  }
  Devices Only(std::initializer_list<std::size_t> which) const {
    Devices some;
    for (const std::size_t index : which) some.push_back(disks[index].get());
    return some;
  }
  Devices Shuffled(Devices devices) {
    for (std::size_t i = devices.size(); i > 1; --i) {
      std::swap(devices[i - 1], devices[random.Below(i)]);
    }
    return devices;
  }
  void PowerOn() {
    for (const auto& disk : disks) {
      disk->PowerOn(sim::DrawCut(random));
      disk->Return();
    }
    model.Crash();
  }
  Result<void> Create(Devices devices, SetSpec spec) {
    return reactor.Run(VolumeSet::Create(&reactor, std::move(devices), std::move(spec)));
  }
  Result<std::unique_ptr<VolumeSet>> Assemble(Devices devices, AssembleOptions options = {}) {
    return reactor.Run(VolumeSet::Assemble(&reactor, std::move(devices), options));
  }

  Random random;
  SimReactor reactor;
  std::vector<std::unique_ptr<SimDisk>> disks;
  BlockModel model;
};

Task<void> CutPower(World* world) {
  const auto time = static_cast<std::int64_t>(world->random.Below(60'000'000));
  co_await sim::SleepFor(&world->reactor, Nanoseconds(time));
  for (const auto& disk : world->disks) disk->PowerOff();
}

Task<void> LoseDisk(World* world, std::size_t lost) {
  const auto time = static_cast<std::int64_t>(world->random.Below(20'000'000));
  co_await sim::SleepFor(&world->reactor, Nanoseconds(time));
  world->disks[lost]->Leave();
}

Task<void> LiveUntilCut(World* world, VolumeSet* set, std::optional<std::size_t> lost) {
  block::BlockDevice* top = set->volume(set->volume_count() - 1);
  TaskGroup group(world->reactor);
  for (int i = 0; i < 3; ++i) {
    const Seed seed{world->random.Next()};
    group.Spawn(sim::RunClient(top, &world->model, {}, seed));
  }
  if (lost) group.Spawn(LoseDisk(world, *lost));
  group.Spawn(CutPower(world));
  co_await group.Join();
  Result<void> closed = co_await set->Close();
  static_cast<void>(closed);
}

// A failed column is given back its disk, stale as it is, unless a spare has its place already.
Task<void> MendParity(World* world, VolumeSet* set) {
  for (std::size_t i = 0; i < set->volume_count(); ++i) {
    Raid5* raid5 = set->raid5(i);
    if (raid5 == nullptr) continue;
    for (int tries = 0; raid5->columns().NotOkay() && tries < 10'000; ++tries) {
      const std::size_t slot = *raid5->columns().NotOkay();
      const ChildEntry child = set->record().volumes[i].children[slot];
      if (child.source == ChildEntry::Source::kDisk && child.state == State::kFailed) {
        Result<void> attached = co_await set->Reattach(i, slot);
        EXPECT_TRUE(attached.has_value()) << attached.error().ToString();
      }
      // With automatic rebuilds this waits for the one that runs.
      Result<void> rebuilt;
      if (!set->rebuilding(i)) rebuilt = co_await raid5->Rebuild({});
      EXPECT_TRUE(rebuilt.has_value()) << rebuilt.error().ToString();
      co_await sim::SleepFor(&world->reactor, std::chrono::milliseconds(10));
    }
    EXPECT_FALSE(raid5->columns().NotOkay());
    Result<std::uint64_t> wrong = co_await raid5->CheckParity({}, false);
    EXPECT_TRUE(wrong.has_value()) << wrong.error().ToString();
    if (wrong) {
      EXPECT_EQ(*wrong, 0u);
    }
  }
}

// Mends what can be mended, then compares everything.
Task<void> LiveToTheEnd(World* world, VolumeSet* set) {
  block::BlockDevice* top = set->volume(set->volume_count() - 1);
  co_await sim::ReadAll(top, &world->model);
  for (std::size_t i = 0; i < set->volume_count(); ++i) {
    if (set->mirror(i) == nullptr) continue;
    for (std::size_t slot = 0; slot < set->mirror(i)->slot_count(); ++slot) {
      if (set->mirror(i)->state(slot) != State::kFailed) continue;
      Result<void> attached = co_await set->Reattach(i, slot);
      EXPECT_TRUE(attached.has_value()) << attached.error().ToString();
    }
  }
  co_await MendParity(world, set);
  const Seed seed{world->random.Next()};
  co_await sim::RunClient(top, &world->model, {}, seed);
  for (std::size_t i = 0; i < set->volume_count(); ++i) {
    if (set->mirror(i) == nullptr) continue;
    Result<void> synced = co_await set->mirror(i)->Resync();
    EXPECT_TRUE(synced.has_value()) << synced.error().ToString();
    for (std::size_t slot = 0; slot < set->mirror(i)->slot_count(); ++slot) {
      EXPECT_EQ(set->mirror(i)->state(slot), State::kOkay) << i << "/" << slot;
    }
  }
  co_await sim::ReadAll(top, &world->model);
  Result<void> closed = co_await set->Close();
  EXPECT_TRUE(closed.has_value()) << closed.error().ToString();
}

void LiveAndLoseADisk(Seed seed, std::vector<VolumeEntry> volumes) {
  World world(seed);
  SetSpec spec{.set_id = 7, .volumes = std::move(volumes)};
  if (world.random.Chance(0.3)) spec.spares = {4};
  const Result<void> created = world.Create(world.All(), spec);
  ASSERT_TRUE(created.has_value()) << created.error().ToString();
  const std::size_t lost = world.random.Below(4);  // in any life, always the same one
  const std::uint64_t cuts = 1 + world.random.Below(3);
  bool was_whole = false;  // at the beginning of the life before, and nothing was lost in it
  for (std::uint64_t i = 0; i <= cuts; ++i) {
    const AssembleOptions options{.auto_resync = world.random.Chance(0.8), .resync_chunk = 8_KiB};
    Devices here = world.All();
    // Away for one life, and back in the next with what it held.
    if (was_whole && i < cuts && world.random.Chance(0.3))
      here.erase(here.begin() + static_cast<std::ptrdiff_t>(lost));
    Result<std::unique_ptr<VolumeSet>> set = world.Assemble(world.Shuffled(here), options);
    ASSERT_TRUE(set.has_value()) << set.error().ToString();
    if (i == 0) {
      world.model =
          BlockModel((*set)->volume((*set)->volume_count() - 1)->geometry().size / kSector);
    }
    if (i < cuts) {
      // Who is the only one to hold what readers have seen must not go: no disk is lost before the
      // first resync is over.
      std::optional<std::size_t> leaves;
      bool unsynced = false;
      for (std::size_t v = 0; v < (*set)->volume_count(); ++v) {
        Mirror* mirror = (*set)->mirror(v);
        if (mirror == nullptr) continue;
        const Result<void> synced = world.reactor.Run(mirror->Resync());
        unsynced = unsynced || !synced;
      }
      const bool all_here = here.size() == world.disks.size();
      if (!unsynced && all_here && world.random.Chance(0.7)) leaves = lost;
      was_whole = !unsynced && !leaves && all_here;
      world.reactor.Run(LiveUntilCut(&world, set->get(), leaves));
      set->reset();
      world.PowerOn();
    } else {
      world.reactor.Run(LiveToTheEnd(&world, set->get()));
    }
  }
}

TEST(VolumeSetSim, AMirrorOfStripesKeepsWhatWasFlushed) {
  sim::ForEachSeed(kSeeds, [](Seed seed) { LiveAndLoseADisk(seed, MirrorOfStripes()); });
}
TEST(VolumeSetSim, ARaid5WithPrewritesKeepsWhatWasFlushed) {
  sim::ForEachSeed(kSeeds,
                   [](Seed seed) { LiveAndLoseADisk(seed, Parity(ParityLogMode::kPrewrite)); });
}
TEST(VolumeSetSim, AMirrorOfARaid5KeepsWhatWasFlushed) {
  sim::ForEachSeed(kSeeds, [](Seed seed) { LiveAndLoseADisk(seed, MirrorOfParity()); });
}
TEST(VolumeSetSim, AStripeOfMirrorsKeepsWhatWasFlushed) {
  sim::ForEachSeed(kSeeds, [](Seed seed) { LiveAndLoseADisk(seed, StripeOfMirrors()); });
}
TEST(VolumeSetSim, AMirrorOfAMirrorAndAConcatKeepsWhatWasFlushed) {
  sim::ForEachSeed(kSeeds, [](Seed seed) { LiveAndLoseADisk(seed, MirrorOfMirrors()); });
}
TEST(VolumeSetSim, AFourWayMirrorKeepsWhatWasFlushed) {
  sim::ForEachSeed(kSeeds, [](Seed seed) { LiveAndLoseADisk(seed, FourWayMirror()); });
}

SetSpec TwoWay(std::uint64_t set_id = 7) {
  return {.set_id = set_id, .volumes = {Make(Kind::kMirror, {OnDisk(0), OnDisk(1)})}};
}

Task<void> CloseSet(VolumeSet* set) {
  Result<void> closed = co_await set->Close();
  EXPECT_TRUE(closed.has_value()) << closed.error().ToString();
}

Task<Result<void>> WriteBlock(block::BlockDevice* device, std::byte value) {
  const std::vector<std::byte> data(kSector.size(), value);
  Result<void> written = co_await device->Write({.durable = true}, Offset(0), data);
  co_return written;
}
Task<std::byte> ReadBlock(block::BlockDevice* device) {
  std::vector<std::byte> data(kSector.size());
  Result<void> read = co_await device->Read({}, Offset(0), data);
  EXPECT_TRUE(read.has_value());
  co_return data[0];
}

// A disk leaves, the set goes on without it, and the disks come back in every combination.
TEST(VolumeSet, ADiskThatWasAwayNeverBringsOldDataBack) {
  World world(Seed{1}, 2);
  ASSERT_TRUE(world.Create(world.All(), TwoWay()).has_value());
  auto set = world.Assemble(world.All());
  ASSERT_TRUE(set.has_value());
  ASSERT_TRUE(world.reactor.Run((*set)->mirror(0)->Resync()).has_value());
  ASSERT_TRUE(world.reactor.Run(WriteBlock((*set)->volume(0), std::byte{1})).has_value());
  world.disks[0]->Leave();
  ASSERT_TRUE(world.reactor.Run(WriteBlock((*set)->volume(0), std::byte{2})).has_value());
  world.reactor.Run(CloseSet(set->get()));
  world.disks[0]->Return();

  const auto stale = world.Assemble(world.Only({0}));
  ASSERT_FALSE(stale.has_value());
  EXPECT_THAT(stale.error().ToString(), HasSubstr("1 of 2 disks that count are here"));
  for (const Devices& given : {world.Only({1}), world.Only({0, 1}), world.Only({1, 0})}) {
    auto again = world.Assemble(given);
    ASSERT_TRUE(again.has_value()) << again.error().ToString();
    EXPECT_EQ((*again)->mirror(0)->state(0), State::kFailed);
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_EQ(world.reactor.Run(ReadBlock((*again)->volume(0))), std::byte{2});
    }
    world.reactor.Run(CloseSet(again->get()));
  }
}

std::vector<std::vector<std::byte>> Contents(const World& world) {
  std::vector<std::vector<std::byte>> contents;
  for (const auto& disk : world.disks) {
    contents.push_back(disk->Peek(Offset(0), disk->geometry().size));
  }
  return contents;
}

TEST(VolumeSet, HalfOfTheDisksAreReadAndNotWritten) {
  World world(Seed{1}, 2);
  ASSERT_TRUE(world.Create(world.All(), TwoWay()).has_value());
  auto set = world.Assemble(world.All());
  ASSERT_TRUE(world.reactor.Run((*set)->mirror(0)->Resync()).has_value());
  ASSERT_TRUE(world.reactor.Run(WriteBlock((*set)->volume(0), std::byte{9})).has_value());
  world.reactor.Run(CloseSet(set->get()));
  const auto before = Contents(world);
  const auto refused = world.Assemble(world.Only({1}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Errc::kUnavailable);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("writing needs more than half"));
  EXPECT_THAT(refused.error().ToString(), HasSubstr("missing: 0 (id "));

  auto half = world.Assemble(world.Only({1}), {.read_only = true});
  ASSERT_TRUE(half.has_value()) << half.error().ToString();
  EXPECT_EQ(world.reactor.Run(ReadBlock((*half)->volume(0))), std::byte{9});
  const Result<void> written = world.reactor.Run(WriteBlock((*half)->volume(0), std::byte{8}));
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code(), Errc::kPermissionDenied);
  world.reactor.Run(CloseSet(half->get()));
  EXPECT_TRUE(Contents(world) == before);
}

std::string ErrorOf(const Result<void>& result) {
  return result ? "none" : result.error().ToString();
}

TEST(VolumeSet, WhatCannotBeMadeSaysWhyAndChangesNothing) {
  World world(Seed{1}, 4);
  world.Add(Seed{2}, 200);               // disk 4: too small
  world.Add(Seed{3}, 200, Bytes(4096));  // disk 5: another sector size
  const auto before = Contents(world);
  const auto error = [&](std::vector<VolumeEntry> volumes, Devices devices) {
    return ErrorOf(world.Create(std::move(devices), {.set_id = 7, .volumes = std::move(volumes)}));
  };
  const Devices all = world.All();
  EXPECT_THAT(error({Make(Kind::kMirror, {OnDisk(0), OnDisk(4)})}, all),
              HasSubstr("disk 4: is too small: it holds 100KiB; it needs 135680B"));
  EXPECT_THAT(error({Make(Kind::kMirror, {OnDisk(0), OnDisk(5)})}, all),
              HasSubstr("mixes sector sizes: component 1 has 4KiB, those before it 512B"));
  EXPECT_THAT(error({Make(Kind::kMirror, {OnDisk(0)})}, all), HasSubstr("has 1 submirror(s)"));
  EXPECT_THAT(error({Make(Kind::kStripe, {OnDisk(0)})}, all), HasSubstr("too few"));
  VolumeEntry odd = Make(Kind::kStripe, {OnDisk(0), OnDisk(1)});
  odd.interlace = Bytes(700);
  EXPECT_THAT(error({odd}, all), HasSubstr("700B is no multiple of the sector"));
  EXPECT_THAT(error({Make(Kind::kMirror, {OnDisk(0), OnDisk(9)})}, all),
              HasSubstr("disk 9 is used but not there"));
  EXPECT_THAT(error({Make(Kind::kMirror, {OnDisk(0), OnDisk(0)})}, all),
              HasSubstr("disk 0 is used twice"));
  EXPECT_THAT(error(FourWayMirror(), world.Only({0, 1, 2, 0})),
              HasSubstr("disk 3: was given twice"));
  EXPECT_TRUE(Contents(world) == before);
}

TEST(VolumeSet, WhatCannotBeAssembledSaysWhyAndChangesNothing) {
  World world(Seed{1}, 6);
  SetSpec spec{.set_id = 7, .volumes = {Make(Kind::kStripe, {OnDisk(0), OnDisk(1), OnDisk(2)})}};
  ASSERT_TRUE(world.Create(world.Only({0, 1, 2}), spec).has_value());
  ASSERT_TRUE(world.Create(world.Only({3, 4}), TwoWay(8)).has_value());
  const auto before = Contents(world);
  const auto error = [&](Devices devices, AssembleOptions options = {}) {
    const auto set = world.Assemble(std::move(devices), options);
    return set ? std::string("none") : set.error().ToString();
  };
  EXPECT_THAT(
      error(world.Only({0, 1, 3})),
      HasSubstr("disk 2: belongs to set 0000000000000008, but disk 0 to set 0000000000000007"));
  EXPECT_THAT(error(world.Only({3, 4}), {.set_id = 7}),
              HasSubstr("disk 0: belongs to set 0000000000000008, not to set 0000000000000007"));
  EXPECT_THAT(error(world.Only({0, 1, 5})), HasSubstr("disk 2: belongs to no set"));
  EXPECT_THAT(error(world.Only({0, 2})),
              HasSubstr("volume 0 (stripe): needs disk 1, which is missing; it has no redundancy"));
  EXPECT_THAT(error(world.Only({0, 1, 2, 1})), HasSubstr("disk 3: was given twice"));
  EXPECT_THAT(error({}), HasSubstr("no disk was given"));
  EXPECT_THAT(ErrorOf(world.Create(world.Only({5, 4}), TwoWay(9))),
              HasSubstr("disk 1: belongs to set 0000000000000008"));
  EXPECT_TRUE(Contents(world) == before);
}

TEST(VolumeSet, AStripeGrowsAndAssemblesAsItGrew) {
  World world(Seed{1}, 4);
  SetSpec spec{.set_id = 7, .volumes = {Make(Kind::kStripe, {OnDisk(0), OnDisk(1)})}};
  ASSERT_TRUE(world.Create(world.Only({0, 1}), spec).has_value());
  auto set = world.Assemble(world.Only({0, 1}));
  ASSERT_TRUE(set.has_value());
  block::BlockDevice* stripe = (*set)->volume(0);
  const Bytes before = stripe->geometry().size;
  world.model = BlockModel(before / kSector);
  world.reactor.Run(sim::RunClient(stripe, &world.model, {.ops = 80}, Seed{4}));
  const Result<void> grown = world.reactor.Run((*set)->Grow(0, world.Only({2, 3})));
  ASSERT_TRUE(grown.has_value()) << grown.error().ToString();
  EXPECT_EQ(stripe->geometry().size, before * 2);
  world.reactor.Run(sim::ReadAll(stripe, &world.model));
  world.reactor.Run(CloseSet(set->get()));

  auto again = world.Assemble(world.Only({3, 1, 0, 2}));
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ((*again)->volume(0)->geometry().size, before * 2);
  world.reactor.Run(sim::ReadAll((*again)->volume(0), &world.model));
  world.reactor.Run(CloseSet(again->get()));
}

TEST(VolumeSet, AHotSpareTakesThePlaceOfAFailedSubmirror) {
  World world(Seed{1}, 3);
  SetSpec spec = TwoWay();
  spec.spares = {2};
  ASSERT_TRUE(world.Create(world.All(), spec).has_value());
  auto set = world.Assemble(world.All());
  ASSERT_TRUE(set.has_value());
  Mirror* mirror = (*set)->mirror(0);
  ASSERT_TRUE(world.reactor.Run(mirror->Resync()).has_value());
  world.disks[0]->Leave();
  ASSERT_TRUE(world.reactor.Run(WriteBlock(mirror, std::byte{5})).has_value());
  ASSERT_TRUE(world.reactor.Run(mirror->Resync()).has_value());
  EXPECT_EQ(mirror->component(0).device, world.disks[2].get());
  EXPECT_EQ(mirror->state(0), State::kOkay);
  EXPECT_TRUE((*set)->record().spares.empty());
  world.reactor.Run(CloseSet(set->get()));

  auto again = world.Assemble(world.Only({2, 1}));
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  world.disks[1]->Leave();
  EXPECT_EQ(world.reactor.Run(ReadBlock((*again)->volume(0))), std::byte{5});
  Result<void> closed = world.reactor.Run((*again)->Close());
  EXPECT_TRUE(closed.has_value());
}

}  // namespace
}  // namespace labrack::volume
