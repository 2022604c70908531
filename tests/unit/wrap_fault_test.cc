// Goal: each kind of fault does what it says, to the blocks and in the window that it names and
// nowhere else, and a check above it sees what nobody is told. What the atlas lets a draw plan is
// never more than redundancy can repair.
// Method: single faults on a device in memory in virtual time; drawn plans over groups of disks
// that all get the same writes, where the good copies of each block are counted after every step.
#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/block/wrap/check.h"
#include "storage/block/wrap/fault.h"
#include "storage/block/wrap/fault_atlas.h"
#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "tests/unit/memory_device.h"
#include "tests/unit/seeds.h"

namespace labrack::block {
namespace {

using runtime::CancelToken;
using runtime::Reactor;
using runtime::SimReactor;
using runtime::TaskGroup;
using std::chrono::milliseconds;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

constexpr Bytes kBlock = 4_KiB;
constexpr std::uint64_t kBlocks = 32;
constexpr Geometry kGeometry{kBlocks * kBlock, kBlock};

constexpr Offset AtBlock(std::uint64_t number) { return Offset(number * kBlock.count()); }
constexpr TimePoint At(milliseconds time) { return TimePoint(time); }

Fault OfBlocks(FaultKind kind, std::uint64_t first, std::uint64_t count) {
  Fault fault;
  fault.kind = kind;
  fault.at = AtBlock(first);
  fault.length = count * kBlock;
  return fault;
}

Fault OfDevice(FaultKind kind, milliseconds from, milliseconds until) {
  Fault fault;
  fault.kind = kind;
  fault.from = At(from);
  fault.until = At(until);
  return fault;
}

Task<void> Sleep(Reactor& reactor, TimePoint until) {
  Result<void> slept = co_await reactor.SleepUntil(until, nullptr);
  LABRACK_CHECK(slept.has_value());
}

// A check above faults above memory. Each I/O of the memory takes 1 ms.
struct World {
  explicit World(std::vector<Fault> faults) : reactor(Seed{1}), disk(reactor, kGeometry, Seed{1}) {
    disk.latency_min = disk.latency_max = milliseconds(1);
    auto made = FaultDevice::Create(reactor, disk, {std::move(faults)}, "disk 2");
    LABRACK_CHECK(made.has_value());
    faulty = std::move(*made);
    check = std::make_unique<CheckDevice>(*faulty, "disk 2");
  }

  Result<void> Write(std::uint64_t block, std::uint64_t count, int fill, bool durable = false) {
    IoContext io;
    io.durable = durable;
    const std::vector<std::byte> bytes((count * kBlock).size(), static_cast<std::byte>(fill));
    return reactor.Run(check->Write(io, AtBlock(block), bytes));
  }
  Result<void> Read(std::uint64_t block, std::uint64_t count = 1) {
    read.assign((count * kBlock).size(), std::byte{0xee});
    return reactor.Run(check->Read({}, AtBlock(block), read));
  }
  Errc ReadError(std::uint64_t block, std::uint64_t count = 1) {
    const Result<void> done = Read(block, count);
    return done ? Errc::kInternal : done.error().code();  // which no fault gives
  }
  Result<void> Flush() { return reactor.Run(check->Flush({})); }
  // What the memory holds.
  ConstView Held(std::uint64_t block) const {
    return ConstView(disk.bytes).subspan((block * kBlock).size(), kBlock.size());
  }
  void SleepUntil(milliseconds time) { reactor.Run(Sleep(reactor, At(time))); }

  SimReactor reactor;
  MemoryDevice disk;
  std::unique_ptr<FaultDevice> faulty;
  std::unique_ptr<CheckDevice> check;
  std::vector<std::byte> read;
};

// --- faults of blocks ---

TEST(FaultDevice, WithoutFaultsIsTheDeviceBelow) {
  World world({});
  ASSERT_TRUE(world.Write(3, 2, 7, true).has_value());
  ASSERT_TRUE(world.Read(2, 4).has_value());
  ASSERT_TRUE(world.Flush().has_value());
  EXPECT_THAT(world.Held(4), Each(std::byte{7}));
  EXPECT_TRUE(world.disk.done.front().io.durable);
  EXPECT_EQ(world.reactor.Now().time_since_epoch(), milliseconds(3));
}

TEST(FaultDevice, ALatentErrorFailsReadsUntilItsBlockIsRewritten) {
  Fault fault = OfBlocks(FaultKind::kLatentError, 4, 2);
  fault.from = At(milliseconds(2));
  World world({fault});
  EXPECT_TRUE(world.Read(4, 2).has_value()) << "before it begins";
  world.SleepUntil(milliseconds(2));
  EXPECT_TRUE(world.Read(3).has_value());
  EXPECT_TRUE(world.Read(6).has_value());
  const Result<void> read = world.Read(2, 8);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().ToString(), "disk 2: block 4 is unreadable (I/O error)");
  EXPECT_TRUE(world.Write(4, 1, 1).has_value());
  EXPECT_TRUE(world.Read(4).has_value());
  EXPECT_EQ(world.ReadError(5), Errc::kIo);
  EXPECT_EQ(world.faulty->hit_count(FaultKind::kLatentError), 2U);
  world.faulty->SwitchOff();
  EXPECT_TRUE(world.Read(5).has_value());
}

TEST(FaultDevice, BitRotIsSeenByAChecksumOnlyAndHealsWhenRewritten) {
  Fault fault = OfBlocks(FaultKind::kBitRot, 4, 2);
  fault.from = At(milliseconds(2));
  World world({fault});
  ASSERT_TRUE(world.Write(3, 4, 0x11).has_value());
  world.SleepUntil(milliseconds(2));
  EXPECT_EQ(world.ReadError(4), Errc::kDataMismatch);
  const std::vector<std::byte> once = world.read;
  EXPECT_EQ(world.ReadError(4), Errc::kDataMismatch);
  EXPECT_EQ(world.read, once) << "the same bits, at every read";
  EXPECT_EQ(world.ReadError(3, 2), Errc::kDataMismatch);
  EXPECT_TRUE(world.Read(3).has_value());
  EXPECT_TRUE(world.Write(4, 1, 0x22).has_value());
  EXPECT_TRUE(world.Read(4).has_value());
  EXPECT_EQ(world.ReadError(5), Errc::kDataMismatch);
  EXPECT_THAT(world.Held(5), Each(std::byte{0x11})) << "the device below stays pristine";
}

TEST(FaultDevice, ATornWriteArrivesInPart) {
  std::set<std::size_t> arrived;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Fault fault = OfBlocks(FaultKind::kTornWrite, 4, 2);
    fault.seed = Seed{seed};
    World world({fault});
    ASSERT_TRUE(world.Write(3, 4, 0x11).has_value()) << "acknowledged";
    EXPECT_THAT(world.Held(3), Each(std::byte{0x11})) << "what lies outside is whole";
    EXPECT_THAT(world.Held(6), Each(std::byte{0x11}));
    const ConstView torn = ConstView(world.disk.bytes).subspan(4 * kBlock.size(), 8192);
    const auto end = std::ranges::find(torn, std::byte{0});
    arrived.insert(static_cast<std::size_t>(end - torn.begin()));
    EXPECT_THAT(torn.subspan(static_cast<std::size_t>(end - torn.begin())), Each(std::byte{0}));
    EXPECT_EQ(world.ReadError(4, 2), Errc::kDataMismatch);
    ASSERT_TRUE(world.Write(4, 2, 0x22).has_value()) << "one write, and no more";
    EXPECT_TRUE(world.Read(4, 2).has_value());
  }
  EXPECT_GT(arrived.size(), 5U);
  for (const std::size_t length : arrived) EXPECT_EQ(length % 512, 0U);
  EXPECT_GT(*arrived.begin(), 0U);
  EXPECT_LT(*arrived.rbegin(), 8192U);
}

TEST(FaultDevice, ALostWriteIsAcknowledged) {
  Fault fault = OfBlocks(FaultKind::kLostWrite, 4, 2);
  fault.hits_max = 2;
  World world({fault});
  for (const int fill : {1, 2}) {
    ASSERT_TRUE(world.Write(3, 4, fill).has_value());
    EXPECT_THAT(world.Held(3), Each(static_cast<std::byte>(fill)));
    EXPECT_THAT(world.Held(4), Each(std::byte{0}));
    EXPECT_THAT(world.Held(5), Each(std::byte{0}));
    EXPECT_THAT(world.Held(6), Each(static_cast<std::byte>(fill)));
    EXPECT_EQ(world.ReadError(3, 4), Errc::kDataMismatch);
  }
  ASSERT_TRUE(world.Write(3, 4, 3).has_value());
  EXPECT_TRUE(world.Read(3, 4).has_value());
  EXPECT_EQ(world.faulty->hit_count(FaultKind::kLostWrite), 2U);
}

TEST(FaultDevice, AMisdirectedWriteLandsElsewhere) {
  Fault fault = OfBlocks(FaultKind::kMisdirectedWrite, 4, 2);
  fault.elsewhere = AtBlock(20);
  World world({fault});
  ASSERT_TRUE(world.Write(19, 4, 9).has_value());
  ASSERT_TRUE(world.Write(5, 2, 1).has_value());
  EXPECT_THAT(world.Held(5), Each(std::byte{0})) << "keeps what it was";
  EXPECT_THAT(world.Held(6), Each(std::byte{1}));
  EXPECT_THAT(world.Held(20), Each(std::byte{9}));
  EXPECT_THAT(world.Held(21), Each(std::byte{1})) << "the second block, as it was the second";
  EXPECT_EQ(world.ReadError(5), Errc::kDataMismatch);
  EXPECT_EQ(world.ReadError(21), Errc::kDataMismatch);
  EXPECT_TRUE(world.Read(6).has_value());
}

TEST(FaultDevice, AMisdirectedReadGivesWhatStandsElsewhere) {
  Fault fault = OfBlocks(FaultKind::kMisdirectedRead, 4, 2);
  fault.elsewhere = AtBlock(20);
  World world({fault});
  ASSERT_TRUE(world.Write(20, 2, 9).has_value());
  ASSERT_TRUE(world.Write(3, 4, 1).has_value());
  EXPECT_EQ(world.ReadError(3, 2), Errc::kDataMismatch);
  EXPECT_THAT(std::span(world.read).first(4096), Each(std::byte{1}));
  EXPECT_THAT(std::span(world.read).last(4096), Each(std::byte{9}));
  EXPECT_TRUE(world.Read(3, 4).has_value()) << "once";
}

TEST(FaultDevice, AStaleReadGivesWhatWasThereBefore) {
  Fault fault = OfBlocks(FaultKind::kStaleRead, 4, 2);
  fault.from = At(milliseconds(1));
  fault.hits_max = 2;
  World world({fault});
  ASSERT_TRUE(world.Write(3, 4, 1).has_value());
  ASSERT_TRUE(world.Write(3, 4, 2).has_value());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(world.ReadError(4), Errc::kDataMismatch);
    EXPECT_THAT(world.read, Each(std::byte{1}));
  }
  EXPECT_TRUE(world.Read(4).has_value()) << "twice";
  EXPECT_EQ(world.ReadError(5), Errc::kDataMismatch) << "each block for itself";
  ASSERT_TRUE(world.Write(5, 1, 3).has_value());
  EXPECT_TRUE(world.Read(5).has_value());
}

// --- faults of the whole device ---

TEST(FaultDevice, ALyingFlushIsNeverSeenBelow) {
  World world({OfDevice(FaultKind::kLyingFlush, milliseconds(0), milliseconds(10))});
  EXPECT_TRUE(world.Write(1, 1, 1, true).has_value());
  EXPECT_TRUE(world.Flush().has_value());
  ASSERT_EQ(world.disk.done.size(), 1U);
  EXPECT_FALSE(world.disk.done.front().io.durable);
  world.SleepUntil(milliseconds(10));
  EXPECT_TRUE(world.Flush().has_value());
  EXPECT_TRUE(world.Write(1, 1, 1, true).has_value());
  EXPECT_EQ(world.disk.done[1].kind, MemoryDevice::Kind::kFlush);
  EXPECT_TRUE(world.disk.done[2].io.durable);
  EXPECT_EQ(world.faulty->hit_count(FaultKind::kLyingFlush), 2U);
}

TEST(FaultDevice, AFailedFlushFailsAllThatFollowUntilTheDeviceIsOpenedAnew) {
  World world({OfDevice(FaultKind::kFailingFlush, milliseconds(0), milliseconds(1))});
  const Result<void> failed = world.Flush();
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code(), Errc::kIo);
  world.SleepUntil(milliseconds(5));
  const Result<void> again = world.Flush();
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().ToString(), failed.error().ToString());
  EXPECT_FALSE(world.Write(1, 1, 1, true).has_value());
  EXPECT_TRUE(world.Write(1, 1, 1).has_value()) << "only what promises to be durable";
  EXPECT_TRUE(world.Read(1).has_value());
  world.faulty->Reopen();
  EXPECT_TRUE(world.Flush().has_value());
}

TEST(FaultDevice, ASlowDiskTakesLonger) {
  Fault fault = OfDevice(FaultKind::kSlow, milliseconds(0), milliseconds(20));
  fault.time = milliseconds(20);
  World world({fault});
  EXPECT_TRUE(world.Read(1).has_value());
  EXPECT_EQ(world.reactor.Now().time_since_epoch(), milliseconds(21));
  EXPECT_TRUE(world.Read(1).has_value());
  EXPECT_EQ(world.reactor.Now().time_since_epoch(), milliseconds(22));
}

TEST(FaultDevice, AHangEndsInATimeOutOrACancel) {
  Fault fault = OfDevice(FaultKind::kHang, milliseconds(0), milliseconds(50));
  fault.time = milliseconds(30);
  World world({fault});
  const Result<void> written = world.Write(1, 1, 1);
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code(), Errc::kTimedOut);
  EXPECT_EQ(world.reactor.Now().time_since_epoch(), milliseconds(30));
  EXPECT_THAT(world.Held(1), Each(std::byte{0}));
  CancelToken cancel;
  cancel.Cancel();
  IoContext io;
  io.cancel = &cancel;
  std::vector<std::byte> block(kBlock.size());
  const Result<void> read = world.reactor.Run(world.faulty->Read(io, AtBlock(1), block));
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code(), Errc::kCancelled);
  EXPECT_EQ(world.reactor.Now().time_since_epoch(), milliseconds(30));
}

TEST(FaultDevice, AGoneDiskMissesWhatIsWrittenMeanwhile) {
  World world({OfDevice(FaultKind::kGone, milliseconds(5), milliseconds(10))});
  ASSERT_TRUE(world.Write(1, 1, 1).has_value());
  world.disk.latency_max = world.disk.latency_min = milliseconds(2);
  world.SleepUntil(milliseconds(4));
  const Result<void> across = world.Write(2, 1, 1);
  ASSERT_FALSE(across.has_value()) << "it went while the write was under way";
  EXPECT_EQ(across.error().code(), Errc::kUnavailable);
  EXPECT_EQ(world.ReadError(1), Errc::kUnavailable);
  EXPECT_FALSE(world.Flush().has_value());
  EXPECT_FALSE(world.Write(1, 1, 2).has_value());
  world.SleepUntil(milliseconds(10));
  ASSERT_TRUE(world.Read(1).has_value());
  EXPECT_THAT(world.read, Each(std::byte{1}));
}

TEST(FaultDevice, AGoneDiskMayComeBackWithOldContent) {
  Fault fault = OfDevice(FaultKind::kGone, milliseconds(20), milliseconds(30));
  fault.time = milliseconds(15);
  World world({fault});
  ASSERT_TRUE(world.Write(1, 4, 1).has_value());
  world.SleepUntil(milliseconds(10));
  ASSERT_TRUE(world.Write(2, 2, 2).has_value());
  ASSERT_TRUE(world.Write(3, 2, 3).has_value());
  ASSERT_TRUE(world.Flush().has_value()) << "flushed, and gone all the same";
  ASSERT_TRUE(world.Read(1, 4).has_value());
  world.SleepUntil(milliseconds(30));
  EXPECT_EQ(world.ReadError(1, 4), Errc::kDataMismatch);
  EXPECT_THAT(world.read, Each(std::byte{1})) << "as it was at 5 ms";
  ASSERT_TRUE(world.Write(2, 1, 4).has_value());
  EXPECT_TRUE(world.Read(2).has_value()) << "and a disk like any other since";
}

TEST(FaultDevice, AFullDiskFailsWritesOnly) {
  World world({OfDevice(FaultKind::kFull, milliseconds(0), milliseconds(5))});
  const Result<void> written = world.Write(1, 1, 1);
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code(), Errc::kNoSpace);
  EXPECT_TRUE(world.Read(1).has_value());
  world.SleepUntil(milliseconds(5));
  EXPECT_TRUE(world.Write(1, 1, 1).has_value());
}

// --- plans ---

TEST(FaultPlan, NamesAllThatIsWrong) {
  Fault outside = OfBlocks(FaultKind::kBitRot, kBlocks - 1, 2);
  Fault itself = OfBlocks(FaultKind::kMisdirectedWrite, 4, 2);
  itself.elsewhere = AtBlock(5);
  const Fault timeless = OfDevice(FaultKind::kHang, milliseconds(0), milliseconds(5));
  const Fault backwards = OfDevice(FaultKind::kGone, milliseconds(5), milliseconds(5));
  SimReactor reactor(Seed{1});
  MemoryDevice disk(reactor, kGeometry, Seed{1});
  const auto made =
      FaultDevice::Create(reactor, disk, {{outside, itself, timeless, backwards}}, "disk");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), Errc::kInvalidArgument);
  EXPECT_THAT(made.error().note(), HasSubstr("its blocks are not within the device"));
  EXPECT_THAT(made.error().note(), HasSubstr("elsewhere is not elsewhere"));
  EXPECT_THAT(made.error().note(), HasSubstr("hang from 0 ns until 5.00 ms: it needs a time"));
  EXPECT_THAT(made.error().note(), HasSubstr("it ends before it begins"));
}

TEST(FaultAtlas, CountsBadCopiesByZoneAndDisk) {
  FaultAtlas atlas({.disk_count = 3, .bad_max = 1, .zone = 8_KiB, .checksums = true});
  const Fault fourth = OfBlocks(FaultKind::kLatentError, 4, 1);
  const Fault fifth = OfBlocks(FaultKind::kBitRot, 5, 1);
  const Fault sixth = OfBlocks(FaultKind::kBitRot, 6, 1);
  EXPECT_EQ(atlas.Judge(0, fourth), FaultVerdict::kWithin);
  atlas.Add(0, fourth);
  EXPECT_EQ(atlas.Judge(0, fifth), FaultVerdict::kWithin) << "the same disk";
  EXPECT_EQ(atlas.Judge(1, fifth), FaultVerdict::kBeyond) << "the same zone";
  EXPECT_EQ(atlas.Judge(1, sixth), FaultVerdict::kWithin) << "the next zone";
  Fault landing = OfBlocks(FaultKind::kMisdirectedWrite, 20, 1);
  landing.elsewhere = AtBlock(4);
  EXPECT_EQ(atlas.Judge(1, landing), FaultVerdict::kBeyond) << "where it lands counts";
  const Fault gone = OfDevice(FaultKind::kGone, milliseconds(1), milliseconds(2));
  EXPECT_EQ(atlas.Judge(1, gone), FaultVerdict::kBeyond);
  EXPECT_EQ(atlas.Judge(0, gone), FaultVerdict::kWithin);
  atlas.Add(0, gone);
  EXPECT_EQ(atlas.Judge(1, sixth), FaultVerdict::kBeyond);
  Fault slow = OfDevice(FaultKind::kSlow, milliseconds(1), milliseconds(2));
  slow.time = milliseconds(1);
  EXPECT_EQ(atlas.Judge(1, slow), FaultVerdict::kWithin);
  EXPECT_FALSE(atlas.beyond());
  atlas.Repaired(0);
  EXPECT_EQ(atlas.Judge(1, gone), FaultVerdict::kWithin);
  atlas.Add(1, fifth);
  atlas.Add(0, fifth);
  EXPECT_TRUE(atlas.beyond());
}

TEST(FaultAtlas, PlansNothingSilentWhereNothingCouldNotice) {
  const FaultAtlas atlas({.disk_count = 2, .bad_max = 1, .zone = kBlock, .checksums = false});
  for (int i = 0; i < kFaultKindCount; ++i) {
    Fault fault = OfBlocks(static_cast<FaultKind>(i), 1, 1);
    EXPECT_EQ(atlas.Judge(0, fault) == FaultVerdict::kNever, !fault.Reported())
        << FaultKindName(fault.kind);
    fault.time = milliseconds(1);
    if (fault.kind == FaultKind::kGone) {
      EXPECT_EQ(atlas.Judge(0, fault), FaultVerdict::kNever) << "old content that comes back";
    }
  }
}

// --- drawn plans, and what the atlas promises ---

// Disks that all get the same writes, and a model of what each block should be.
struct Group {
  explicit Group(Seed seed) : random(Derive(seed, "group")), reactor(seed) {
    options = {.disk_count = 2 + static_cast<std::uint32_t>(random.Below(3)),
               .zone = (1 + random.Below(3)) * kBlock,
               .checksums = random.Chance(0.8)};
    options.bad_max = static_cast<std::uint32_t>(random.Below(options.disk_count));
    model.resize(kGeometry.size.size());
  }
  void Build(FaultAtlas& atlas, double beyond_chance) {
    FaultDraw draw{.disk_count = options.disk_count,
                   .geometry = kGeometry,
                   .until = At(milliseconds(400)),
                   .faults_max = 12,
                   .blocks_max = 4,
                   .time_max = milliseconds(40),
                   .beyond_chance = beyond_chance};
    plans = DrawFaults(draw, atlas, random);
    for (std::uint32_t i = 0; i < options.disk_count; ++i) {
      disks.push_back(std::make_unique<MemoryDevice>(reactor, kGeometry, Seed{i}));
      auto made = FaultDevice::Create(reactor, *disks[i], plans[i], "disk " + std::to_string(i));
      LABRACK_CHECK(made.has_value());
      faulty.push_back(std::move(*made));
    }
  }
  std::string Plan() const {
    std::string text;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      for (const Fault& fault : plans[i].faults) {
        text += "disk " + std::to_string(i) + ": " + fault.ToString() + "\n";
      }
    }
    return text;
  }

  Random random;
  SimReactor reactor;
  FaultAtlas::Options options;
  std::vector<std::byte> model;
  std::vector<FaultPlan> plans;
  std::vector<std::unique_ptr<MemoryDevice>> disks;
  std::vector<std::unique_ptr<FaultDevice>> faulty;
};

Task<void> WriteToAll(Group& group) {
  const std::uint64_t first = group.random.Below(kBlocks);
  const std::uint64_t count = 1 + group.random.Below(std::min<std::uint64_t>(kBlocks - first, 6));
  std::vector<std::byte> bytes((count * kBlock).size());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(group.random.Next());
  IoContext io;
  io.durable = group.random.Chance(0.3);
  std::ranges::copy(bytes,
                    group.model.begin() + static_cast<std::ptrdiff_t>(first * kBlock.size()));
  for (const auto& disk : group.faulty) {
    Result<void> written = co_await disk->Write(io, AtBlock(first), bytes);
    (void)written;  // a disk that failed it has an old copy, which is what is counted
    Result<void> flushed = co_await disk->Flush(io);
    (void)flushed;
  }
}

// How many copies of each block cannot be used: the most of any block.
Task<std::uint32_t> BadCopiesMax(Group& group) {
  std::array<std::uint32_t, kBlocks> bad = {};
  std::vector<std::byte> block(kBlock.size());
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    for (const auto& disk : group.faulty) {
      Result<void> read = co_await disk->Read({}, AtBlock(i), block);
      const auto model = ConstView(group.model).subspan(i * kBlock.size(), kBlock.size());
      if (!read || !std::ranges::equal(block, model)) ++bad[i];
    }
  }
  co_return *std::ranges::max_element(bad);
}

Task<std::uint32_t> RunGroup(Group& group) {
  std::uint32_t bad_max = 0;
  while (group.reactor.Now() < At(milliseconds(450))) {
    co_await WriteToAll(group);
    co_await Sleep(group.reactor, group.reactor.Now() + milliseconds(1));
    if (!group.random.Chance(0.15)) continue;
    std::uint32_t bad = co_await BadCopiesMax(group);
    bad_max = std::max(bad_max, bad);
  }
  std::uint32_t bad = co_await BadCopiesMax(group);
  co_return std::max(bad_max, bad);
}

TEST(FaultAtlas, WhatItLetsBePlannedIsNeverBeyondRepair) {
  std::array<std::uint64_t, kFaultKindCount> hits = {};
  std::uint64_t as_bad_as_may_be = 0;
  for (const Seed seed : SeedsToRun(150)) {
    SCOPED_TRACE(Replay(seed, "wrap_fault_test"));
    Group group(seed);
    FaultAtlas atlas(group.options);
    group.Build(atlas, 0);
    EXPECT_FALSE(atlas.beyond());
    const std::uint32_t bad = group.reactor.Run(RunGroup(group));
    ASSERT_LE(bad, group.options.bad_max) << group.Plan();
    if (bad > 0 && bad == group.options.bad_max) ++as_bad_as_may_be;
    for (const auto& disk : group.faulty) {
      for (std::size_t i = 0; i < hits.size(); ++i) {
        hits[i] += disk->hit_count(static_cast<FaultKind>(i));
      }
    }
  }
  if (std::getenv("LABRACK_SEED") != nullptr) return;
  EXPECT_GT(as_bad_as_may_be, 10U) << "the atlas must not forbid what may be";
  for (std::size_t i = 0; i < hits.size(); ++i) {
    EXPECT_GT(hits[i], 0U) << FaultKindName(static_cast<FaultKind>(i)) << " never came true";
  }
}

TEST(FaultAtlas, WhatIsDrawnBeyondItIsSaidToBe) {
  std::uint64_t beyond = 0;
  for (const Seed seed : SeedsToRun(60)) {
    SCOPED_TRACE(Replay(seed, "wrap_fault_test"));
    Group group(seed);
    FaultAtlas atlas(group.options);
    group.Build(atlas, 0.7);
    const std::uint32_t bad = group.reactor.Run(RunGroup(group));
    if (bad > group.options.bad_max) {
      ++beyond;
      EXPECT_TRUE(atlas.beyond()) << group.Plan();
    }
  }
  if (std::getenv("LABRACK_SEED") == nullptr) EXPECT_GT(beyond, 5U);
}

// Several clients at once, each on blocks of its own.
Task<void> Client(Group& group, BlockDevice& device, std::uint64_t client, std::uint64_t clients) {
  std::vector<std::byte> block(kBlock.size(), static_cast<std::byte>(client));
  while (group.reactor.Now() < At(milliseconds(450))) {
    const std::uint64_t own = (kBlocks - client + clients - 1) / clients;
    const Offset at = AtBlock(client + clients * group.random.Below(own));
    IoContext io;
    io.durable = group.random.Chance(0.2);
    Result<void> done;
    if (group.random.Chance(0.1)) {
      done = co_await device.Flush(io);
    } else if (group.random.Chance(0.5)) {
      done = co_await device.Read(io, at, block);
    } else {
      done = co_await device.Write(io, at, block);
    }
    if (done) continue;
    EXPECT_THAT(done.error().code(),
                AnyOf(Errc::kIo, Errc::kUnavailable, Errc::kTimedOut, Errc::kNoSpace));
    co_await Sleep(group.reactor, group.reactor.Now() + milliseconds(1));
  }
}

Task<void> Clients(Group& group, BlockDevice& device, std::uint64_t count) {
  TaskGroup clients(group.reactor);
  for (std::uint64_t i = 0; i < count; ++i) clients.Spawn(Client(group, device, i, count));
  co_await clients.Join();
}

TEST(FaultDevice, IosAtOnceAllEndAndFaultsCanBeSwitchedOff) {
  for (const Seed seed : SeedsToRun(60)) {
    SCOPED_TRACE(Replay(seed, "wrap_fault_test"));
    Group group(seed);
    FaultAtlas atlas(group.options);
    group.Build(atlas, 1);
    FaultDevice& device = *group.faulty[0];
    group.reactor.Run(Clients(group, device, 2 + group.random.Below(8)));
    device.SwitchOff();
    device.Reopen();
    std::vector<std::byte> all(kGeometry.size.size(), std::byte{0x42});
    IoContext durable;
    durable.durable = true;
    ASSERT_TRUE(group.reactor.Run(device.Write(durable, AtBlock(0), all)).has_value());
    ASSERT_TRUE(group.reactor.Run(device.Flush({})).has_value());
    std::ranges::fill(all, std::byte{0});
    ASSERT_TRUE(group.reactor.Run(device.Read({}, AtBlock(0), all)).has_value());
    EXPECT_EQ(std::ranges::count(all, std::byte{0x42}), std::ssize(all));
    ASSERT_FALSE(testing::Test::HasFailure()) << group.Plan();
  }
}

TEST(FaultDevice, TheSameSeedDrawsAndDoesTheSame) {
  const auto hash = [](Seed seed) {
    Group group(seed);
    FaultAtlas atlas(group.options);
    group.Build(atlas, 0.5);
    group.reactor.Run(RunGroup(group));
    std::uint64_t sum = group.reactor.trace_hash();
    for (const auto& disk : group.disks) {
      for (const std::byte byte : disk->bytes) sum = Mix64(sum ^ static_cast<unsigned>(byte));
    }
    return sum;
  };
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(hash(Seed{i}), hash(Seed{i}));
}

}  // namespace
}  // namespace labrack::block
