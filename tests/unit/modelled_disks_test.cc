// Goal: every modelled disk holds what was written, loses in a power cut only what it may lose, and
// is the same in every run of a seed.
// Method: seeded clients, each in a region of its own, against a model that remembers for each
// block what must and what may be there; the power goes at a random instant, under a random policy;
// all presets take turns. LABRACK_SEED=n replays one seed.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "storage/block/disk/presets.h"
#include "tests/unit/model_disk_load.h"

namespace labrack::block {
namespace {

using runtime::SimReactor;

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kRegionBlocks = 64;
constexpr std::uint32_t kClients = 6;

// What a block may hold: values that were written since the last one that is durable for certain.
struct BlockModel {
  std::uint8_t current = 0;
  std::uint8_t durable = 0;                 // the oldest that may be there still
  std::vector<std::uint8_t> since_durable;  // newer ones, in order, completed or not
};

struct World {
  World(Seed seed, const DiskPreset& preset) : random(seed), reactor(Derive(seed, "reactor")) {
    Result<ModelledDisks> made = MakeModelledDisks(reactor, preset, {.size = 4_MiB, .seed = seed});
    EXPECT_TRUE(made) << made.error().ToString();
    disks = std::move(*made);
    disk = disks.disks[0].get();
    // Regions lie apart, so that the heads move.
    for (std::uint32_t i = 0; i < kClients; ++i) bases.push_back(i * (4_MiB / 8));
  }

  Random random;
  SimReactor reactor;
  ModelledDisks disks;
  ModelDisk* disk = nullptr;
  std::vector<Bytes> bases;
  std::array<std::array<BlockModel, kRegionBlocks>, kClients> model;
  std::uint8_t next_value = 1;
  bool stop = false;
};

struct Range {
  std::uint64_t first;
  std::uint64_t count;
};

Task<void> WriteRange(World* world, std::uint32_t client, Range range, bool durable) {
  auto& blocks = world->model[client];
  const std::uint8_t value = world->next_value++;
  for (std::uint64_t i = range.first; i < range.first + range.count; ++i) {
    blocks[i].since_durable.push_back(value);
  }
  std::vector<std::byte> bytes(range.count * kBlock, std::byte{value});
  const Offset at = Offset(range.first * kBlock) + world->bases[client];
  Result<void> written = co_await world->disk->Write({.durable = durable}, at, bytes);
  if (!written) co_return;
  for (std::uint64_t i = range.first; i < range.first + range.count; ++i) {
    blocks[i].current = value;
    if (!durable) continue;
    blocks[i].durable = value;
    blocks[i].since_durable.clear();
  }
}

Task<void> CheckRange(World* world, std::uint32_t client, Range range) {
  std::vector<std::byte> bytes(range.count * kBlock);
  const Offset at = Offset(range.first * kBlock) + world->bases[client];
  Result<void> read = co_await world->disk->Read({}, at, bytes);
  if (!read) co_return;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t expected = world->model[client][range.first + i / kBlock].current;
    if (bytes[i] == std::byte{expected}) continue;
    ADD_FAILURE() << "client " << client << " block " << range.first + i / kBlock;
    break;
  }
}

// All clients' writes that had completed when the flush began are covered by it.
Task<void> FlushAll(World* world) {
  struct Covered {
    BlockModel* block;
    std::uint8_t value;
  };
  std::vector<Covered> covered;
  for (auto& region : world->model) {
    for (BlockModel& block : region) covered.push_back({&block, block.current});
  }
  Result<void> flushed = co_await world->disk->Flush({});
  if (!flushed) co_return;
  for (const Covered& entry : covered) {
    auto& since = entry.block->since_durable;
    const auto found = std::ranges::find(since, entry.value);
    if (found == since.end()) continue;  // a later durable write has come in between
    entry.block->durable = entry.value;
    since.erase(since.begin(), found + 1);
  }
}

Task<void> Client(World* world, std::uint32_t client, std::uint64_t seed) {
  Random random(Seed{seed});
  for (int i = 0; i < 25 && !world->stop; ++i) {
    const std::uint64_t first = random.Below(kRegionBlocks);
    const Range range{first, 1 + random.Below(std::min<std::uint64_t>(16, kRegionBlocks - first))};
    const std::uint64_t what = random.Below(10);
    if (what < 5) {
      co_await WriteRange(world, client, range, random.Chance(0.2));
    } else if (what < 8) {
      co_await CheckRange(world, client, range);
    } else if (what == 8) {
      co_await FlushAll(world);
    } else {
      co_await SleepTask(&world->reactor, Nanoseconds(random.Below(20'000'000)));
    }
  }
}

Task<void> CutAt(World* world, TimePoint at, CutOptions options) {
  co_await world->reactor.SleepUntil(at, nullptr);
  world->stop = true;
  world->disk->CutPower(options, world->random);
  std::vector<std::byte> bytes(kBlock);
  Result<void> read = co_await world->disk->Read({}, Offset(0), bytes);
  EXPECT_FALSE(read);
  if (!read) EXPECT_EQ(read.error().code(), Errc::kIo);
  const TimePoint begin = world->reactor.Now();
  co_await world->disk->PowerOn();
  EXPECT_EQ(world->reactor.Now(), begin) << "commands in flight fail at once";
}

Task<void> RunClients(World* world, bool cut) {
  runtime::TaskGroup group(world->reactor);
  for (std::uint32_t i = 0; i < kClients; ++i) {
    group.Spawn(Client(world, i, world->random.Next()));
  }
  if (cut) {
    const CutOptions options{.policy = static_cast<CutPolicy>(world->random.Below(kCutPolicyCount)),
                             .reorder = world->random.Chance(0.5),
                             .tear_chance = world->random.Unit(),
                             .unit = Bytes(kBlock)};
    const auto at = static_cast<std::int64_t>(world->random.Below(400'000'000));
    group.Spawn(CutAt(world, TimePoint(Nanoseconds(at)), options));
  }
  co_await group.Join();
}

// After a cut: each block holds what was durable, or something newer; never anything else.
Task<void> CheckAfterCut(World* world, bool nothing_may_be_lost) {
  std::vector<std::byte> bytes(kBlock);
  for (std::uint32_t client = 0; client < kClients; ++client) {
    for (std::uint64_t i = 0; i < kRegionBlocks; ++i) {
      const Offset at = Offset(i * kBlock) + world->bases[client];
      Result<void> read = co_await world->disk->Read({}, at, bytes);
      EXPECT_TRUE(read);
      const BlockModel& block = world->model[client][i];
      const auto value = static_cast<std::uint8_t>(bytes[0]);
      const bool newer = std::ranges::count(block.since_durable, value) > 0;
      EXPECT_TRUE(value == block.durable || newer)
          << "client " << client << " block " << i << " holds " << int{value};
      // Only what was in flight may be newer than what was acknowledged.
      const bool last = block.since_durable.empty() || value == block.since_durable.back();
      if (nothing_may_be_lost) EXPECT_TRUE(value == block.current || last);
    }
  }
}

bool KeepsAllThatItAcknowledges(const DiskPreset& preset) {
  if (const auto* controller = std::get_if<ControllerDiskOptions>(&preset.disk)) {
    return controller->buffer_safe;
  }
  return std::get<RotatingDiskOptions>(preset.disk).write_cache != WriteCacheMode::kWriteBack;
}

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t count = 330;
};

SeedRange Seeds() {
  const char* text = std::getenv("LABRACK_SEED");
  if (text == nullptr) return {};
  return {.first = std::strtoull(text, nullptr, 10), .count = 1};
}

const DiskPreset& PresetOf(std::uint64_t seed) {
  return DiskPresets()[seed % DiskPresets().size()];
}

std::string Replay(std::uint64_t seed) {
  return std::string(PresetOf(seed).name) + "; replay: LABRACK_SEED=" + std::to_string(seed) +
         " modelled_disks_test";
}

TEST(ModelledDisks, HoldWhatWasWrittenAndLoseOnlyWhatTheyMay) {
  const SeedRange seeds = Seeds();
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE(Replay(seed));
    World world(Seed{seed}, PresetOf(seed));
    const bool cut = seed % 5 != 0;
    world.reactor.Run(RunClients(&world, cut));
    world.reactor.Run(CheckAfterCut(&world, KeepsAllThatItAcknowledges(PresetOf(seed))));
    if (!cut) {
      for (std::uint32_t i = 0; i < kClients; ++i) {
        world.reactor.Run(CheckRange(&world, i, {0, kRegionBlocks}));
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ModelledDisks, OneSeedIsOneExecution) {
  const SeedRange seeds = Seeds();
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = seeds.first;
       seed < seeds.first + std::min<std::uint64_t>(55, seeds.count); ++seed) {
    SCOPED_TRACE(Replay(seed));
    std::array<std::uint64_t, 2> hash{};
    for (std::uint64_t& one : hash) {
      World world(Seed{seed}, PresetOf(seed));
      world.reactor.Run(RunClients(&world, seed % 2 == 0));
      one = world.reactor.trace_hash();
    }
    EXPECT_EQ(hash[0], hash[1]);
    hashes.insert(hash[0]);
  }
  EXPECT_EQ(hashes.size(), std::min<std::uint64_t>(55, seeds.count)) << "seeds differ";
}

// What a volatile cache is: acknowledged, and gone.
TEST(ModelledDisks, AVolatileCacheLosesWhatWasNotFlushed) {
  for (const DiskPreset& preset : DiskPresets()) {
    SCOPED_TRACE(preset.name);
    SimReactor reactor(Seed{1});
    Result<ModelledDisks> made = MakeModelledDisks(reactor, preset, {.size = 4_MiB});
    ASSERT_TRUE(made);
    ModelDisk& disk = *made->disks[0];
    RunLoad(reactor, disk, {.length = Bytes(kBlock), .write = true, .random = false});
    Random random(Seed{1});
    disk.CutPower({.policy = CutPolicy::kDropAll}, random);
    EXPECT_FALSE(disk.powered());
    reactor.Run(disk.PowerOn());
    std::vector<std::byte> bytes(kBlock);
    ASSERT_TRUE(reactor.Run(disk.Read({}, Offset(0), bytes)));
    EXPECT_EQ(bytes[0] == std::byte{0x5a}, KeepsAllThatItAcknowledges(preset));
  }
}

}  // namespace
}  // namespace labrack::block
