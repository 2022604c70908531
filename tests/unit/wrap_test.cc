// Goal: decorators say what happened. Statistics add up by purpose and depth and fill tallies in; a
// trace shows each I/O and makes equal runs equal; a check finds wrong data, says where, and never
// cries wolf, however reads and writes overlap.
// Method: a device in memory in virtual time; for the check also seeded clients on the same blocks.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/block/wrap/check.h"
#include "storage/block/wrap/stats.h"
#include "storage/block/wrap/trace.h"
#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "tests/unit/memory_device.h"
#include "tests/unit/seeds.h"

namespace labrack::block {
namespace {

using runtime::SimReactor;
using runtime::TaskGroup;
using std::chrono::milliseconds;
using testing::ElementsAre;

constexpr Bytes kBlock = 512_B;
constexpr std::uint64_t kBlocks = 64;
constexpr std::uint64_t kSeeds = 200;

struct World {
  explicit World(Seed seed = Seed{1})
      : random(Derive(seed, "world")),
        reactor(seed),
        disk(reactor, {kBlocks * kBlock, kBlock}, seed) {
    disk.latency_min = disk.latency_max = milliseconds(1);
  }
  Result<void> Read(BlockDevice& device, Offset at, MutableView into, IoContext io = {}) {
    return reactor.Run(device.Read(io, at, into));
  }
  Result<void> Write(BlockDevice& device, Offset at, ConstView from, IoContext io = {}) {
    return reactor.Run(device.Write(io, at, from));
  }
  Random random;
  SimReactor reactor;
  MemoryDevice disk;
};

constexpr Offset AtBlock(std::uint64_t number) { return Offset(number * kBlock.count()); }

std::vector<std::byte> Blocks(std::uint64_t count, int fill = 0) {
  return std::vector<std::byte>((count * kBlock).size(), static_cast<std::byte>(fill));
}

// --- statistics ---

TEST(StatsDevice, SumsByPurposeAndDepthAndFillsInTheTally) {
  World world;
  StatsDevice stats(world.reactor, world.disk);
  IoTally tally;
  IoContext io;
  io.tally = &tally;
  std::vector<std::byte> two = Blocks(2);
  ASSERT_TRUE(world.Read(stats, AtBlock(0), two, io.For(Purpose::kOldData)).has_value());
  ASSERT_TRUE(world.Read(stats, AtBlock(8), two, io.For(Purpose::kOldParity)).has_value());
  IoContext prewrite = io.After().For(Purpose::kPrewrite);
  prewrite.durable = true;
  ASSERT_TRUE(world.Write(stats, AtBlock(4), two, prewrite).has_value());
  ASSERT_TRUE(world.reactor.Run(stats.Flush(io.After().After())).has_value());
  ASSERT_TRUE(world.Read(stats, AtBlock(12), two, io.For(Purpose::kMetadata)).has_value());
  const IoContext behind = io.After().After().Behind(PriorityClass::kAsyncWrite);
  world.disk.bad_blocks = {0};
  ASSERT_FALSE(world.Write(stats, AtBlock(0), two, behind).has_value());

  const auto of = [&](Purpose purpose) {
    return tally.by_purpose[static_cast<std::size_t>(purpose)];
  };
  EXPECT_EQ(of(Purpose::kOldData).reads, 1U);
  EXPECT_EQ(of(Purpose::kOldParity).reads, 1U);
  EXPECT_EQ(of(Purpose::kPrewrite).writes, 1U);
  EXPECT_EQ(of(Purpose::kPrewrite).bytes, 1024U);
  EXPECT_EQ(of(Purpose::kUserData).writes, 0U) << "what goes on behind is nobody's";
  EXPECT_EQ(tally.flushes, 1U);
  EXPECT_EQ(tally.depth_max, 3);

  const DeviceStats& seen = stats.stats();
  EXPECT_EQ(seen.OfPurpose(Purpose::kOldData).read, 1_KiB);
  EXPECT_EQ(seen.OfPurpose(Purpose::kUserData).behind, 1U);
  EXPECT_EQ(seen.OfPurpose(Purpose::kUserData).failed, 1U);
  EXPECT_EQ(seen.OfDepth(1).reads, 3U);
  EXPECT_EQ(seen.OfDepth(2).writes, 1U);
  EXPECT_EQ(seen.OfDepth(3).writes, 1U);
  EXPECT_EQ(seen.Total().written, 2_KiB);
  EXPECT_EQ(seen.durable_writes, 1U);
  EXPECT_EQ(seen.flushes, 1U);
  EXPECT_EQ(seen.read_times.count(), 3U);
  EXPECT_EQ(seen.read_times.sum_ns(), 3'000'000U);
  EXPECT_EQ(seen.flush_times.count(), 1U);
}

TEST(StatsDevice, SumsMergeAndSubtract) {
  World world;
  StatsDevice one(world.reactor, world.disk);
  std::vector<std::byte> block = Blocks(1);
  ASSERT_TRUE(world.Read(one, AtBlock(0), block).has_value());
  const DeviceStats before = one.stats();
  ASSERT_TRUE(world.Read(one, AtBlock(0), block).has_value());
  ASSERT_TRUE(world.Write(one, AtBlock(0), block).has_value());
  ASSERT_TRUE(world.reactor.Run(one.Flush({})).has_value());
  DeviceStats since = one.stats().Since(before);
  EXPECT_EQ(since.Total().reads, 1U);
  EXPECT_EQ(since.Total().writes, 1U);
  EXPECT_EQ(since.flushes, 1U);
  EXPECT_EQ(since.read_times.count(), 1U);
  since.Merge(before);
  EXPECT_EQ(since.Total().reads, 2U);
  EXPECT_EQ(since.read_times.count(), 2U);
  IoContext deep;
  deep.depth = 200;
  ASSERT_TRUE(world.Read(one, AtBlock(0), block, deep).has_value());
  EXPECT_EQ(one.stats().OfDepth(DeviceStats::kDepthMax).reads, 1U);
}

// --- traces ---

TEST(TraceDevice, KeepsTheLastIosAndSaysWhatTheyWere) {
  World world;
  TraceDevice trace(world.reactor, world.disk, 7, 3);
  std::vector<std::byte> two = Blocks(2);
  IoContext durable;
  durable.durable = true;
  durable.purpose = Purpose::kLog;
  ASSERT_TRUE(world.Read(trace, AtBlock(0), two).has_value());
  ASSERT_TRUE(world.Write(trace, AtBlock(2), two, durable.After()).has_value());
  ASSERT_TRUE(world.reactor.Run(trace.Flush({})).has_value());
  world.disk.bad_blocks = {5};
  ASSERT_FALSE(world.Read(trace, AtBlock(4), two).has_value());
  std::vector<std::string> texts;
  for (const TraceRecord& record : trace.Records()) texts.push_back(record.ToString());
  EXPECT_THAT(texts,
              ElementsAre("1.00 ms +1.00 ms durable write 1024 at 1024, log, depth 2: done",
                          "2.00 ms +1.00 ms flush, user data, depth 1: done",
                          "3.00 ms +1.00 ms read 1024 at 2048, user data, depth 1: I/O error"));
  EXPECT_EQ(trace.overwritten_count(), 1U);
}

TEST(TraceDevice, IosArePartOfTheTraceHash) {
  const auto hash = [](std::uint64_t block, std::uint32_t number, bool bad) {
    World world;
    if (bad) world.disk.bad_blocks = {block};
    TraceDevice trace(world.reactor, world.disk, number, 1);
    std::vector<std::byte> bytes = Blocks(1);
    (void)world.Read(trace, AtBlock(block), bytes);
    return world.reactor.trace_hash();
  };
  EXPECT_EQ(hash(1, 0, false), hash(1, 0, false));
  EXPECT_NE(hash(1, 0, false), hash(2, 0, false));
  EXPECT_NE(hash(1, 0, false), hash(1, 1, false));
  EXPECT_NE(hash(1, 0, false), hash(1, 0, true));
}

// --- checks ---

TEST(CheckDevice, SaysWhereTheFirstDifferenceIs) {
  World world;
  CheckDevice check(world.disk, "disk 3");
  std::vector<std::byte> bytes = Blocks(4, 0x5a);
  ASSERT_TRUE(world.Write(check, AtBlock(2), bytes).has_value());
  ASSERT_TRUE(world.Read(check, AtBlock(0), bytes).has_value()) << "blocks 0 and 1 are adopted";
  world.disk.bytes[1200] = std::byte{0x07};
  world.disk.bytes[1900] = std::byte{0x08};
  Result<void> read = world.Read(check, AtBlock(0), bytes);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code(), Errc::kDataMismatch);
  EXPECT_EQ(read.error().subject(), "disk 3");
  EXPECT_EQ(read.error().note(),
            "read of 2048 bytes at 0: the first difference is at 1200, where 0x07 stands and "
            "0x5a was written");
  EXPECT_EQ(check.mismatch_count(), 1U);
  world.disk.bytes[3] = std::byte{1};
  EXPECT_FALSE(world.Read(check, AtBlock(0), bytes).has_value()) << "what was read is known too";
  check.Forget();
  EXPECT_TRUE(world.Read(check, AtBlock(0), bytes).has_value());
}

TEST(CheckDevice, AFailedWriteLeavesItsBlocksOpen) {
  World world;
  CheckDevice check(world.disk, "disk");
  std::vector<std::byte> old = Blocks(2, 1);
  ASSERT_TRUE(world.Write(check, AtBlock(0), old).has_value());
  world.disk.bad_blocks = {1};
  const std::vector<std::byte> newer = Blocks(2, 2);
  ASSERT_FALSE(world.Write(check, AtBlock(0), newer).has_value());
  world.disk.bad_blocks = {};
  std::ranges::fill(std::span(world.disk.bytes).first(512), std::byte{2});
  EXPECT_TRUE(world.Read(check, AtBlock(0), old).has_value()) << "one block new, one old";
  world.disk.bytes[0] = std::byte{9};
  EXPECT_FALSE(world.Read(check, AtBlock(0), old).has_value()) << "known again since";
}

Task<void> WriteInto(BlockDevice& device, std::vector<std::byte>& bytes) {
  Result<void> written = co_await device.Write({}, AtBlock(0), bytes);
  EXPECT_TRUE(written.has_value());
}

Task<void> WriteAtOnce(World& world, BlockDevice& device, std::vector<std::byte>& one,
                       std::vector<std::byte>& other) {
  TaskGroup group(world.reactor);
  group.Spawn(WriteInto(device, one));
  group.Spawn(WriteInto(device, other));
  co_await group.Join();
}

TEST(CheckDevice, WritesAtOnceLeaveTheirBlocksOpenUntilTheNextWrite) {
  World world;
  CheckDevice check(world.disk, "disk");
  std::vector<std::byte> ones = Blocks(1, 1);
  std::vector<std::byte> twos = Blocks(1, 2);
  world.reactor.Run(WriteAtOnce(world, check, ones, twos));
  ASSERT_TRUE(world.Write(check, AtBlock(0), ones).has_value());
  world.disk.bytes[0] = std::byte{9};
  EXPECT_FALSE(world.Read(check, AtBlock(0), twos).has_value());
}

// On the same blocks as all others.
Task<void> Client(World& world, BlockDevice& device, Seed seed) {
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t first = random.Below(kBlocks);
    const std::uint64_t count = 1 + random.Below(std::min<std::uint64_t>(kBlocks - first, 6));
    std::vector<std::byte> bytes = Blocks(count, static_cast<int>(random.Below(256)));
    Result<void> done;
    if (random.Chance(0.5)) {
      done = co_await device.Read({}, AtBlock(first), bytes);
    } else {
      done = co_await device.Write({}, AtBlock(first), bytes);
    }
    EXPECT_TRUE(done.has_value() || done.error().code() == Errc::kIo) << done.error().ToString();
    if (random.Chance(0.1)) world.disk.bad_blocks = {random.Below(kBlocks)};
  }
}

Task<void> Clients(World& world, BlockDevice& device, std::uint64_t count, Seed seed) {
  TaskGroup group(world.reactor);
  for (std::uint64_t i = 0; i < count; ++i) {
    group.Spawn(Client(world, device, Derive(seed, i)));
  }
  co_await group.Join();
}

// And whatever has changed in the end is found, wherever it is.
TEST(CheckDevice, NeverCriesWolfAndFindsEveryChangedByte) {
  std::uint64_t compared = 0;
  for (const Seed seed : SeedsToRun(kSeeds)) {
    SCOPED_TRACE(Replay(seed, "wrap_test"));
    World world(seed);
    world.disk.latency_min = Nanoseconds(1000);
    CheckDevice check(world.disk, "disk");
    world.reactor.Run(Clients(world, check, 1 + world.random.Below(6), seed));
    EXPECT_EQ(check.mismatch_count(), 0U);
    world.disk.bad_blocks = {};
    std::vector<std::byte> all = Blocks(kBlocks);
    EXPECT_TRUE(world.Read(check, AtBlock(0), all).has_value());
    const std::uint64_t place = world.random.Below(all.size());
    world.disk.bytes[place] ^= std::byte{1};
    Result<void> read = world.Read(check, AtBlock(0), all);
    ASSERT_FALSE(read.has_value());
    EXPECT_THAT(read.error().note(), testing::HasSubstr("is at " + std::to_string(place) + ","));
    compared += check.compared_count();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(compared, 10U * kBlocks);
}

}  // namespace
}  // namespace labrack::block
