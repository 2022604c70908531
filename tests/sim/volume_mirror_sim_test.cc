// Goal: on a mirror, what was acknowledged and flushed survives power cuts at any instant, while
// submirrors leave, come back, go offline and are replaced; a block never goes back to an older
// content once a newer one was read; after a resync all submirrors are equal.
// Method: seeded clients against a model of versions, on disks that lose what was not durable.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "storage/volume/mirror.h"
#include "tests/sim/seeds.h"
#include "tests/sim/volume_client.h"

namespace labrack::volume {
namespace {

using runtime::SimReactor;
using runtime::TaskGroup;
using sim::BlockModel;
using sim::SimDisk;

constexpr std::size_t kSeeds = 400;

struct World {
  explicit World(Seed seed)
      : random(Derive(seed, "world")),
        reactor(Derive(seed, "reactor")),
        legs(2 + random.Below(2)),
        blocks(210 + random.Below(600)),
        model(blocks),
        ledger(reactor, legs, Derive(seed, "ledger")),
        solid(random.Below(legs)) {
    options.read_policy = static_cast<ReadPolicy>(random.Below(kReadPolicyCount));
    options.write_mode = static_cast<WriteMode>(random.Below(kWriteModeCount));
    options.resync_chunk = Bytes(std::uint64_t{512} << random.Below(8));
    options.auto_resync = random.Chance(0.8);
    const bool cached = random.Chance(0.8);
    for (std::size_t i = 0; i <= legs; ++i) {  // the last is a spare
      const SimDisk::Options disk{
          .geometry = {.size = Bytes((blocks + 16 + random.Below(8)) * BlockModel::kBlock),
                       .block_size = Bytes(BlockModel::kBlock)},
          .volatile_cache = cached};
      disks.push_back(std::make_unique<SimDisk>(reactor, disk, Derive(seed, i)));
      parts.push_back(
          *PlaceComponent(*disks[i], Bytes(0), Mirror::kLogSize, Bytes(BlockModel::kBlock)));
    }
    options.size = Bytes(blocks * BlockModel::kBlock);
    if (random.Chance(0.5)) ledger.spare = parts.back();
    parts.pop_back();
  }

  void PowerOff() {
    for (const auto& disk : disks) disk->PowerOff();
    ledger.off = true;
    cut = true;
  }
  void PowerOn() {
    for (const auto& disk : disks) {
      disk->PowerOn(sim::DrawCut(random));
      disk->Return();
    }
    model.Crash();
    ForgetProcess();
  }
  // What a new process finds.
  void ForgetProcess() {
    ledger.off = false;
    cut = false;
    if (ledger.spare_slot) {
      parts[*ledger.spare_slot] =
          *PlaceComponent(*disks.back(), Bytes(0), Mirror::kLogSize, Bytes(BlockModel::kBlock));
      ledger.spare_slot.reset();
    }
    for (std::size_t slot = 0; slot < legs; ++slot) parts[slot].state = ledger.states[slot];
  }

  Random random;
  SimReactor reactor;
  std::size_t legs;
  std::size_t blocks;
  BlockModel model;
  sim::SimLedger ledger;
  std::size_t solid;  // no fault ever comes to this one
  MirrorOptions options;
  std::vector<std::unique_ptr<SimDisk>> disks;
  std::vector<Component> parts;
  bool cut = false;
};

SimDisk& DiskOf(World& world, const Mirror& mirror, std::size_t slot) {
  for (const auto& disk : world.disks) {
    if (disk.get() == mirror.component(slot).device) return *disk;
  }
  LABRACK_CHECK(false);
}

// Brings a failed submirror back as a new one, unless a spare is about to take its place.
Task<void> Replace(World* world, Mirror* mirror, std::size_t slot) {
  if (world->ledger.spare) co_return;
  DiskOf(*world, *mirror, slot).Return();
  const Component part = mirror->component(slot);
  Result<void> detached = co_await mirror->Detach(slot);
  EXPECT_TRUE(detached.has_value() || world->cut) << detached.error().ToString();
  if (!detached) co_return;
  Result<void> recorded =
      co_await world->ledger.Record(block::IoContext{}, slot, State::kResyncing);
  if (!recorded) co_return;
  Result<void> attached = co_await mirror->Attach(slot, part);
  EXPECT_TRUE(attached.has_value()) << attached.error().ToString();
}

// One fault or command at a time, on any submirror but the solid one.
Task<void> DisturbOnce(World* world, Mirror* mirror) {
  const std::size_t slot = world->random.Below(world->legs);
  const std::uint64_t kind = world->random.Below(4);
  // While regions are unsynced, who holds the content that readers have seen must not go.
  if (slot == world->solid || mirror->empty(slot) || mirror->unsynced_count() > 0) co_return;
  SimDisk& disk = DiskOf(*world, *mirror, slot);
  switch (mirror->state(slot)) {
    case State::kOkay:
    case State::kResyncing:
      if (kind == 0) disk.Leave();
      if (kind == 1) disk.FailNextFlush();
      if (kind == 2) {
        const Offset at(world->random.Below(world->blocks) * BlockModel::kBlock);
        disk.MakeUnreadable(mirror->component(slot).data_at + Bytes(at.value()),
                            Bytes(BlockModel::kBlock));
      }
      if (kind == 3 && mirror->state(slot) == State::kOkay) {
        Result<void> offline = co_await mirror->Offline(slot);
        static_cast<void>(offline);  // the power, or its state, may have changed meanwhile
      }
      break;
    case State::kOffline: {
      Result<void> online = co_await mirror->Online(slot);
      EXPECT_TRUE(online.has_value());
      break;
    }
    case State::kFailed:
      co_await Replace(world, mirror, slot);
      break;
  }
}

Task<void> Disturb(World* world, Mirror* mirror, std::size_t count) {
  for (std::size_t i = 0; i < count && !world->cut; ++i) {
    const auto time = static_cast<std::int64_t>(world->random.Below(8'000'000));
    co_await sim::SleepFor(&world->reactor, Nanoseconds(time));
    if (!world->cut) co_await DisturbOnce(world, mirror);
  }
}

Task<void> CutPower(World* world) {
  const auto time = static_cast<std::int64_t>(world->random.Below(30'000'000));
  co_await sim::SleepFor(&world->reactor, Nanoseconds(time));
  world->PowerOff();
}

// All okay submirrors hold the same.
void ExpectEqual(World& world, const Mirror& mirror) {
  std::vector<std::byte> first;
  for (std::size_t slot = 0; slot < mirror.slot_count(); ++slot) {
    if (mirror.empty(slot) || mirror.state(slot) != State::kOkay) continue;
    const Component& part = mirror.component(slot);
    std::vector<std::byte> held =
        DiskOf(world, mirror, slot).Peek(part.data_at, mirror.geometry().size);
    if (first.empty()) {
      first = std::move(held);
    } else {
      EXPECT_TRUE(held == first) << "submirror " << slot << " differs";
    }
  }
  EXPECT_FALSE(first.empty());
}

Task<void> LiveUntilCut(World* world, bool disturbed) {
  Result<std::unique_ptr<Mirror>> opened =
      co_await Mirror::Open(&world->reactor, world->parts, world->options, &world->ledger);
  EXPECT_TRUE(opened.has_value()) << opened.error().ToString();
  if (!opened) co_return;
  Mirror* mirror = opened->get();
  if (world->random.Chance(0.5)) co_await sim::ReadAll(mirror, &world->model);
  TaskGroup group(world->reactor);
  const std::size_t clients = 1 + world->random.Below(4);
  for (std::size_t i = 0; i < clients; ++i) {
    const Seed seed{world->random.Next()};
    group.Spawn(sim::RunClient(mirror, &world->model, {}, seed));
  }
  if (disturbed) group.Spawn(Disturb(world, mirror, 6));
  group.Spawn(CutPower(world));
  co_await group.Join();
  Result<void> closed = co_await mirror->Close();
  static_cast<void>(closed);
}

Task<void> LiveToTheEnd(World* world) {
  Result<std::unique_ptr<Mirror>> opened =
      co_await Mirror::Open(&world->reactor, world->parts, world->options, &world->ledger);
  EXPECT_TRUE(opened.has_value()) << opened.error().ToString();
  if (!opened) co_return;
  Mirror* mirror = opened->get();
  co_await sim::ReadAll(mirror, &world->model);
  co_await sim::ReadAll(mirror, &world->model);
  TaskGroup group(world->reactor);
  const Seed seed{world->random.Next()};
  group.Spawn(sim::RunClient(mirror, &world->model, {}, seed));
  Result<void> synced = co_await mirror->Resync();
  EXPECT_TRUE(synced.has_value()) << synced.error().ToString();
  co_await group.Join();
  synced = co_await mirror->Resync();
  EXPECT_TRUE(synced.has_value()) << synced.error().ToString();
  EXPECT_EQ(mirror->unsynced_count(), 0U);
  co_await sim::ReadAll(mirror, &world->model);
  Result<void> closed = co_await mirror->Close();
  EXPECT_TRUE(closed.has_value()) << closed.error().ToString();
  ExpectEqual(*world, *mirror);
  for (std::size_t region = 0; region < mirror->dirty().shape().count; ++region) {
    bool offline = false;
    for (std::size_t slot = 0; slot < world->legs; ++slot) {
      offline = offline || mirror->state(slot) == State::kOffline;
    }
    EXPECT_TRUE(offline || !mirror->dirty().marked(region)) << region;
  }
}

Task<void> Format(World* world) {
  Result<void> formatted = co_await Mirror::Format(&world->reactor, world->parts);
  EXPECT_TRUE(formatted.has_value()) << formatted.error().ToString();
}

TEST(MirrorSim, AcknowledgedWritesSurvivePowerCuts) {
  sim::ForEachSeed(kSeeds, [](Seed seed) {
    World world(seed);
    world.reactor.Run(Format(&world));
    const std::uint64_t cuts = world.random.Below(4);
    for (std::uint64_t i = 0; i < cuts; ++i) {
      world.reactor.Run(LiveUntilCut(&world, false));
      world.PowerOn();
    }
    world.reactor.Run(LiveToTheEnd(&world));
  });
}

TEST(MirrorSim, AcknowledgedWritesSurviveFaultsAndPowerCuts) {
  sim::ForEachSeed(kSeeds, [](Seed seed) {
    World world(seed);
    world.reactor.Run(Format(&world));
    const std::uint64_t cuts = 1 + world.random.Below(4);
    for (std::uint64_t i = 0; i < cuts; ++i) {
      world.reactor.Run(LiveUntilCut(&world, true));
      world.PowerOn();
    }
    world.reactor.Run(LiveToTheEnd(&world));
  });
}

TEST(MirrorSim, OneSeedIsOneExecution) {
  const auto trace = [](Seed seed) {
    World world(seed);
    world.reactor.Run(Format(&world));
    world.reactor.Run(LiveUntilCut(&world, true));
    return world.reactor.trace_hash();
  };
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(trace(Seed{seed}), trace(Seed{seed})) << seed;
  }
  EXPECT_NE(trace(Seed{1}), trace(Seed{2}));
}

}  // namespace
}  // namespace labrack::volume
