// Goal: whatever waits, is reordered or goes out with others, every byte arrives where it belongs,
// no limit is exceeded, nobody starves, errors and cancels reach whom they concern, and what need
// not wait allocates nothing.
// Method: seeded clients on a device in memory, in virtual time, against a model of each client's
// blocks; single cases with a device that takes one I/O at a time.
#include "storage/block/queue/io_queue.h"

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/block/null_device.h"
#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "tests/unit/allocations.h"
#include "tests/unit/memory_device.h"
#include "tests/unit/seeds.h"

namespace labrack::block {
namespace {

using runtime::CancelToken;
using runtime::Reactor;
using runtime::SimReactor;
using runtime::TaskGroup;
using std::chrono::milliseconds;
using testing::_;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Bytes kBlock = 512_B;
constexpr std::uint64_t kSeeds = 400;

std::vector<std::byte> Filled(Bytes length, std::uint64_t word) {
  std::vector<std::byte> bytes(length.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(Mix64(word + i / 8) >> (i % 8 * 8));
  }
  return bytes;
}

// --- many clients, one queue ---

// Blocks in groups, dealt out to the clients in turn, so that neighbours belong to others. The last
// block of a group is padding, which only optional writes touch.
struct Swarm {
  static constexpr std::uint64_t kGroup = 4;
  static constexpr std::uint64_t kGroups = 36;
  static constexpr std::byte kPadding{0x77};

  explicit Swarm(Seed seed)
      : random(Derive(seed, "swarm")),
        reactor(seed),
        disk(reactor, {kBlock * kGroup * kGroups, kBlock}, Derive(seed, "disk")),
        model(disk.bytes.size()) {}

  std::uint32_t Draw(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(random.Below(high - low + 1));
  }
  QueueOptions DrawOptions();
  bool Bad(Offset at, Bytes length) const {
    const std::uint64_t first = at.value() / kBlock.count();
    const auto found = disk.bad_blocks.lower_bound(first);
    return found != disk.bad_blocks.end() && *found < first + length / kBlock;
  }

  Random random;
  SimReactor reactor;
  MemoryDevice disk;
  std::vector<std::byte> model;
  std::uint64_t failed_count = 0;
};

QueueOptions Swarm::DrawOptions() {
  QueueOptions options = random.Chance(0.4)
                             ? QueueOptions::Legacy()
                             : QueueOptions::Classes(QueueOptions::Medium::kRotating);
  options.legacy.pending_max = Draw(1, 6);
  options.legacy.pending_min = Draw(1, options.legacy.pending_max);
  options.legacy.ramp_rate = Draw(1, 3);
  options.legacy.tick = milliseconds(Draw(1, 200));
  for (ClassLimits& limits : options.classes.limits) {
    limits.active_max = Draw(1, 4);
    limits.active_min = Draw(1, limits.active_max);
  }
  options.classes.active_max = Draw(1, 12);
  options.classes.background_credit = Draw(1, 6);
  options.classes.bucket = milliseconds(Draw(1, 500));
  options.aggregation.size_max = Draw(0, 40) * kBlock;
  options.aggregation.read_gap = std::min(options.aggregation.size_max, Draw(0, 12) * kBlock);
  options.aggregation.write_gap = std::min(options.aggregation.size_max, Draw(0, 2) * kBlock);
  options.aggregation.buffers_max = Draw(0, 3);
  return options;
}

Task<void> UsePadding(Swarm& swarm, IoQueue& queue, IoContext io, std::uint64_t group) {
  const std::vector<std::byte> padding(kBlock.size(), Swarm::kPadding);
  const Offset at(((group + 1) * Swarm::kGroup - 1) * kBlock.count());
  Result<void> done = co_await queue.WriteOptional(io, at, padding);
  const bool bad = swarm.Bad(at, kBlock);
  EXPECT_TRUE(done.has_value() || bad);
}

Task<void> Step(Swarm& swarm, IoQueue& queue, std::uint64_t group) {
  const std::uint64_t first = swarm.random.Below(Swarm::kGroup - 1);
  const std::uint64_t count = 1 + swarm.random.Below(Swarm::kGroup - 1 - first);
  const Offset at((group * Swarm::kGroup + first) * kBlock.count());
  const Bytes length = count * kBlock;
  IoContext io;
  io.priority = static_cast<PriorityClass>(swarm.random.Below(kPriorityClassCount));
  io.durable = swarm.random.Chance(0.2);
  const bool bad = swarm.Bad(at, length);
  const MutableView model = MutableView(swarm.model).subspan(at.value(), length.size());

  TaskGroup beside(swarm.reactor);
  if (swarm.random.Chance(0.3)) beside.Spawn(UsePadding(swarm, queue, io, group));
  Result<void> done;
  if (swarm.random.Chance(0.4)) {
    std::vector<std::byte> bytes(length.size());
    done = co_await queue.Read(io, at, bytes);
    if (done) EXPECT_TRUE(std::ranges::equal(bytes, model)) << "at " << at.value();
  } else {
    const std::vector<std::byte> bytes = Filled(length, swarm.random.Next());
    done = co_await queue.Write(io, at, bytes);
    if (done) std::ranges::copy(bytes, model.begin());
  }
  EXPECT_EQ(done.has_value(), !bad) << "an error reaches exactly those whose blocks are bad";
  if (!done) ++swarm.failed_count;
  co_await beside.Join();
  if (swarm.random.Chance(0.05)) {
    Result<void> flushed = co_await queue.Flush(io);
    EXPECT_TRUE(flushed.has_value());
  }
}

Task<void> Client(Swarm& swarm, IoQueue& queue, std::uint64_t client, std::uint64_t clients) {
  const std::uint64_t own = (Swarm::kGroups - client + clients - 1) / clients;
  for (int i = 0; i < 16; ++i) {
    const std::uint64_t group = client + clients * swarm.random.Below(own);
    co_await Step(swarm, queue, group);
    if (swarm.random.Chance(0.1)) queue.SetDirtyFraction(swarm.random.Unit());
  }
}

Task<void> Clients(Swarm& swarm, IoQueue& queue, std::uint64_t count) {
  TaskGroup group(swarm.reactor);
  for (std::uint64_t i = 0; i < count; ++i) group.Spawn(Client(swarm, queue, i, count));
  co_await group.Join();
}

void ExpectLimitsKept(const MemoryDevice& disk, const QueueOptions& options) {
  if (options.policy == QueueOptions::Policy::kLegacy) {
    EXPECT_LE(disk.active_max, options.legacy.pending_max);
    return;
  }
  EXPECT_LE(disk.active_max, options.classes.active_max);
  for (std::size_t i = 0; i < kPriorityClassCount; ++i) {
    EXPECT_LE(disk.class_active_max[i], options.classes.limits[i].active_max) << "class " << i;
  }
}

void ExpectBytesRight(Swarm& swarm) {
  for (std::uint64_t block = 0; block < Swarm::kGroup * Swarm::kGroups; ++block) {
    const auto there = ConstView(swarm.disk.bytes).subspan(block * kBlock.size(), kBlock.size());
    if (block % Swarm::kGroup == Swarm::kGroup - 1) {
      const std::vector<std::byte> nothing(kBlock.size());
      const std::vector<std::byte> padding(kBlock.size(), Swarm::kPadding);
      EXPECT_TRUE(std::ranges::equal(there, nothing) || std::ranges::equal(there, padding))
          << "invented data in block " << block;
    } else {
      EXPECT_TRUE(std::ranges::equal(
          there, ConstView(swarm.model).subspan(block * kBlock.size(), kBlock.size())))
          << "block " << block;
    }
  }
}

struct Totals {
  std::uint64_t merged = 0, split = 0, optional_written = 0, optional_dropped = 0, missed = 0;
};

std::uint64_t RunSwarm(Seed seed, double bad_chance, Totals& totals) {
  Swarm swarm(seed);
  const QueueOptions options = swarm.DrawOptions();
  for (std::uint64_t block = 0; block < Swarm::kGroup * Swarm::kGroups; ++block) {
    if (swarm.random.Chance(bad_chance)) swarm.disk.bad_blocks.insert(block);
  }
  auto queue = IoQueue::Create(swarm.reactor, swarm.disk, options);
  EXPECT_TRUE(queue.has_value()) << queue.error().ToString();
  swarm.reactor.Run(Clients(swarm, **queue, 1 + swarm.random.Below(30)));
  ExpectLimitsKept(swarm.disk, options);
  ExpectBytesRight(swarm);
  const QueueStats& stats = (*queue)->stats();
  for (const QueueClassStats& one : stats.classes) totals.merged += one.merged_count;
  totals.split += stats.split_count;
  totals.optional_written += stats.optional_written_count;
  totals.optional_dropped += stats.optional_dropped_count;
  totals.missed += stats.buffer_miss_count;
  return swarm.reactor.trace_hash();
}

TEST(IoQueue, KeepsEveryByteAndEveryLimit) {
  Totals totals;
  for (const Seed seed : SeedsToRun(kSeeds)) {
    SCOPED_TRACE(Replay(seed, "io_queue_test"));
    const std::uint64_t hash = RunSwarm(seed, 0, totals);
    if (seed.value % 50 == 0) EXPECT_EQ(hash, RunSwarm(seed, 0, totals));
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  if (std::getenv("LABRACK_SEED") != nullptr) return;
  EXPECT_GT(totals.merged, 1000U) << "the test must reach what it is about";
  EXPECT_GT(totals.optional_written, 50U);
  EXPECT_GT(totals.optional_dropped, 50U);
  EXPECT_GT(totals.missed, 50U);
}

TEST(IoQueue, SplitsErrorsBackToTheMembersConcerned) {
  Totals totals;
  for (const Seed seed : SeedsToRun(kSeeds)) {
    SCOPED_TRACE(Replay(seed, "io_queue_test"));
    RunSwarm(seed, 0.02, totals);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  if (std::getenv("LABRACK_SEED") == nullptr) EXPECT_GT(totals.split, 100U);
}

// --- single cases: a device that takes one I/O at a time ---

QueueOptions OneAtATime() {
  QueueOptions options = QueueOptions::Classes(QueueOptions::Medium::kRotating);
  options.classes.active_max = 1;
  return options;
}

struct Small {
  explicit Small(const QueueOptions& options, Seed seed = Seed{1})
      : reactor(seed), disk(reactor, {1_MiB, kBlock}, seed) {
    auto made = IoQueue::Create(reactor, disk, options);
    LABRACK_CHECK(made.has_value());
    queue = std::move(*made);
  }
  SimReactor reactor;
  MemoryDevice disk;
  std::unique_ptr<IoQueue> queue;
};

constexpr Offset AtBlock(std::uint64_t number) { return Offset(number * kBlock.count()); }

struct Io {
  enum class What { kRead, kWrite, kOptional, kFlush };
  What what = What::kRead;
  std::uint64_t block = 0;
  std::uint64_t count = 1;
  PriorityClass priority = PriorityClass::kSyncRead;
  bool durable = false;
  const CancelToken* cancel = nullptr;
};

Task<void> DoIo(IoQueue& queue, Io io, std::vector<std::byte>& memory, Result<void>& result) {
  IoContext context;
  context.priority = io.priority;
  context.durable = io.durable;
  context.cancel = io.cancel;
  memory.resize((io.count * kBlock).size(), static_cast<std::byte>(io.block));
  switch (io.what) {
    case Io::What::kRead:
      result = co_await queue.Read(context, AtBlock(io.block), memory);
      break;
    case Io::What::kWrite:
      result = co_await queue.Write(context, AtBlock(io.block), memory);
      break;
    case Io::What::kOptional:
      result = co_await queue.WriteOptional(context, AtBlock(io.block), memory);
      break;
    case Io::What::kFlush:
      result = co_await queue.Flush(context);
      break;
  }
}

// All are asked for in this order, and at once.
Task<std::vector<Result<void>>> DoAll(Reactor& reactor, IoQueue& queue, std::vector<Io> ios,
                                      CancelToken* cancel = nullptr) {
  std::vector<std::vector<std::byte>> memory(ios.size());
  std::vector<Result<void>> results(ios.size());
  TaskGroup group(reactor);
  for (std::size_t i = 0; i < ios.size(); ++i) {
    group.Spawn(DoIo(queue, ios[i], memory[i], results[i]));
  }
  if (cancel != nullptr) cancel->Cancel();
  co_await group.Join();
  co_return results;
}

// "R3+2": blocks 3 and 4 read; W, F likewise.
std::vector<std::string> AtTheDevice(const MemoryDevice& disk) {
  std::vector<std::string> texts;
  for (const MemoryDevice::Done& done : disk.done) {
    if (done.kind == MemoryDevice::Kind::kFlush) {
      texts.push_back("F");
    } else {
      texts.push_back((done.kind == MemoryDevice::Kind::kRead ? "R" : "W") +
                      std::to_string(done.at.value() / kBlock.count()) + "+" +
                      std::to_string(done.length / kBlock));
    }
  }
  return texts;
}

using enum Io::What;

TEST(IoQueue, ReadsOverGapsAndWritesOnlyWhatIsThere) {
  Small reads(OneAtATime());
  reads.reactor.Run(DoAll(reads.reactor, *reads.queue,
                          {{kRead, 900}, {kRead, 0, 2}, {kRead, 66, 1}, {kRead, 132, 1}}));
  EXPECT_THAT(AtTheDevice(reads.disk), ElementsAre("R900+1", "R0+67", "R132+1"))
      << "a gap of 64 blocks is 32 KiB, one of 65 is not";

  Small writes(OneAtATime());
  writes.reactor.Run(DoAll(writes.reactor, *writes.queue,
                           {{kWrite, 900}, {kWrite, 0, 2}, {kWrite, 2}, {kWrite, 4}}));
  EXPECT_THAT(AtTheDevice(writes.disk), ElementsAre("W900+1", "W0+3", "W4+1"));
}

TEST(IoQueue, OptionalWritesCloseGapsAndAreNeverWorthAnIo) {
  Small small(OneAtATime());
  small.reactor.Run(DoAll(small.reactor, *small.queue,
                          {{kWrite, 900},
                           {kWrite, 0},
                           {kOptional, 1},
                           {kOptional, 2},
                           {kWrite, 3},
                           {kOptional, 4},
                           {kWrite, 50},
                           {kOptional, 51, 9},
                           {kWrite, 60}}));
  EXPECT_THAT(AtTheDevice(small.disk), ElementsAre("W900+1", "W0+4", "W50+1", "W60+1"));
  EXPECT_EQ(small.queue->stats().optional_written_count, 2U);
  EXPECT_EQ(small.queue->stats().optional_dropped_count, 2U);
}

TEST(IoQueue, NothingGoesOutTogetherAcrossAFlush) {
  Small apart(OneAtATime());
  apart.reactor.Run(
      DoAll(apart.reactor, *apart.queue, {{kWrite, 900}, {kWrite, 0}, {kFlush}, {kWrite, 1}}));
  EXPECT_THAT(AtTheDevice(apart.disk), Contains("W0+1"));
  EXPECT_THAT(AtTheDevice(apart.disk), Contains("W1+1"));
  Small durable(OneAtATime());
  durable.reactor.Run(
      DoAll(durable.reactor, *durable.queue,
            {{kWrite, 900}, {.what = kWrite, .block = 0, .durable = true}, {kWrite, 1}}));
  EXPECT_THAT(AtTheDevice(durable.disk), ElementsAre("W900+1", "W0+1", "W1+1"));
}

TEST(IoQueue, AFlushDoesNotWaitForWhatHasNotCompleted) {
  Small small(OneAtATime());
  small.disk.latency_max = small.disk.latency_min;
  small.reactor.Run(DoAll(small.reactor, *small.queue, {{kWrite, 900}, {kWrite, 5}, {kFlush}}));
  EXPECT_THAT(AtTheDevice(small.disk), ElementsAre(_, _, "W5+1"));
}

TEST(IoQueue, SyncClassesAreServedInTurnAndOthersByOffset) {
  const auto order = [](PriorityClass priority) {
    QueueOptions options = OneAtATime();
    options.aggregation.size_max = Bytes(0);
    options.aggregation.read_gap = Bytes(0);
    options.aggregation.write_gap = Bytes(0);
    Small small(options);
    std::vector<Io> ios;
    for (const std::uint64_t block : {500U, 700U, 100U, 600U, 300U}) {
      ios.push_back({.what = kRead, .block = block, .priority = priority});
    }
    small.reactor.Run(DoAll(small.reactor, *small.queue, ios));
    return AtTheDevice(small.disk);
  };
  EXPECT_THAT(order(PriorityClass::kSyncRead),
              ElementsAre("R500+1", "R700+1", "R100+1", "R600+1", "R300+1"));
  EXPECT_THAT(order(PriorityClass::kAsyncRead),
              ElementsAre("R500+1", "R600+1", "R700+1", "R100+1", "R300+1"));
}

TEST(IoQueue, ACancelledIoLeavesTheQueueAtOnce) {
  Small small(OneAtATime());
  CancelToken cancel;
  const std::vector<Result<void>> results = small.reactor.Run(
      DoAll(small.reactor, *small.queue,
            {{kRead, 900}, {.what = kRead, .block = 1, .cancel = &cancel}, {kRead, 200}}, &cancel));
  EXPECT_TRUE(results[0].has_value());
  ASSERT_FALSE(results[1].has_value());
  EXPECT_EQ(results[1].error().code(), Errc::kCancelled);
  EXPECT_TRUE(results[2].has_value());
  EXPECT_THAT(AtTheDevice(small.disk), ElementsAre("R900+1", "R200+1"));
  EXPECT_EQ(small.queue->stats().classes[0].cancelled_count, 1U);
}

TEST(IoQueue, ABrokenDeviceIsNotAskedMemberByMember) {
  Small small(OneAtATime());
  small.disk.broken = Errc::kUnavailable;
  const std::vector<Result<void>> results = small.reactor.Run(
      DoAll(small.reactor, *small.queue, {{kRead, 900}, {kRead, 0}, {kRead, 1}, {kRead, 2}}));
  for (const Result<void>& result : results) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), Errc::kUnavailable);
  }
  EXPECT_THAT(AtTheDevice(small.disk), ElementsAre("R900+1", "R0+3"));
}

TEST(IoQueue, LegacyStartsTwoForEachThatEnds) {
  Small small(QueueOptions::Legacy());
  small.disk.latency_min = small.disk.latency_max = milliseconds(1);
  std::vector<Io> ios;
  for (std::uint64_t i = 0; i < 200; ++i) ios.push_back({kRead, i * 8});
  small.reactor.Run(DoAll(small.reactor, *small.queue, ios));
  EXPECT_EQ(small.disk.active_max, 35U);
  // 2, 4, 8, 16, 32, then 35 at a time: 62 in five steps, and four for the other 138.
  EXPECT_EQ(small.reactor.Now().time_since_epoch(), milliseconds(9));
}

TEST(IoQueue, AsynchronousWritesGetMoreAsMemoryFillsUp) {
  const auto active_max = [](double dirty) {
    Small small(QueueOptions::Classes(QueueOptions::Medium::kSolidState));
    small.queue->SetDirtyFraction(dirty);
    std::vector<Io> ios;
    for (std::uint64_t i = 0; i < 100; ++i) {
      ios.push_back({.what = kWrite, .block = i * 2, .priority = PriorityClass::kAsyncWrite});
    }
    small.reactor.Run(DoAll(small.reactor, *small.queue, ios));
    return small.disk.active_max;
  };
  EXPECT_EQ(active_max(0.10), 2U);
  EXPECT_EQ(active_max(0.30), 2U);
  EXPECT_EQ(active_max(0.45), 6U);
  EXPECT_EQ(active_max(0.60), 10U);
  EXPECT_EQ(active_max(1.00), 10U);
}

// --- starvation ---

Task<void> Busy(Reactor& reactor, IoQueue& queue, PriorityClass priority, Seed seed) {
  Random random(seed);
  std::vector<std::byte> memory(kBlock.size());
  IoContext io;
  io.priority = priority;
  const TimePoint until = reactor.Now() + std::chrono::seconds(3);
  while (reactor.Now() < until) {
    const Offset at = AtBlock(2 * random.Below(1000));
    Result<void> done;
    if (priority == PriorityClass::kSyncWrite || priority == PriorityClass::kAsyncWrite) {
      done = co_await queue.Write(io, at, memory);
    } else {
      done = co_await queue.Read(io, at, memory);
    }
    EXPECT_TRUE(done.has_value());
  }
}

Task<void> BusyAll(Reactor& reactor, IoQueue& queue, PerClass<int> clients) {
  TaskGroup group(reactor);
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < kPriorityClassCount; ++i) {
    for (int n = 0; n < clients[i]; ++n) {
      group.Spawn(Busy(reactor, queue, static_cast<PriorityClass>(i), Seed{++seed}));
    }
  }
  co_await group.Join();
}

TEST(IoQueue, NoClassStarvesHoweverBusyTheOthersAre) {
  for (const std::uint32_t device_max : {1U, 3U, 1000U}) {
    QueueOptions options = QueueOptions::Classes(QueueOptions::Medium::kRotating);
    options.classes.active_max = device_max;
    options.aggregation = {};
    Small small(options);
    small.reactor.Run(BusyAll(small.reactor, *small.queue, {40, 40, 5, 20, 5}));
    for (std::size_t i = 0; i < kPriorityClassCount; ++i) {
      const QueueClassStats& stats = small.queue->stats().classes[i];
      EXPECT_GT(stats.waiting_max, 0U);
      EXPECT_LE(stats.starvation_max, 2 * kPriorityClassCount * small.disk.latency_max)
          << PriorityClassName(static_cast<PriorityClass>(i)) << " with " << device_max;
    }
  }
}

// 25 reads at a time and a write behind them: the write goes out at the latest when its deadline
// has passed, and all that was before it.
TEST(IoQueue, LegacyServesLateWritesByTheirDeadline) {
  QueueOptions options = QueueOptions::Legacy();
  options.aggregation = {};
  options.legacy.pending_max = 3;
  Small small(options);
  small.reactor.Run(BusyAll(small.reactor, *small.queue, {25, 0, 0, 2, 0}));
  const QueueClassStats& writes = small.queue->stats().classes[3];
  EXPECT_GT(Nanoseconds(writes.waits.max_ns()), milliseconds(400)) << "reads do go first";
  EXPECT_LE(Nanoseconds(writes.waits.max_ns()), milliseconds(160 * 5 + 30));
}

// --- what it costs, and what it counts ---

Task<void> ReadMany(IoQueue& queue, MutableView into, int count) {
  for (int i = 0; i < count; ++i) {
    Result<void> done = co_await queue.Read(IoContext(), AtBlock(8), into);
    LABRACK_CHECK(done.has_value());
  }
}

Task<void> ReadSideBySide(Reactor& reactor, IoQueue& queue, std::span<MutableView> into) {
  TaskGroup group(reactor);
  for (std::size_t i = 0; i < into.size(); ++i) group.Spawn(ReadMany(queue, into[i], 50));
  co_await group.Join();
}

TEST(IoQueue, AllocatesNothingAfterWarmUp) {
  SimReactor reactor(Seed{1});
  NullDevice null({1_MiB, kBlock});
  auto plain = IoQueue::Create(reactor, null, QueueOptions::Legacy());
  std::vector<std::byte> memory(kBlock.size());
  reactor.Run(ReadMany(**plain, memory, 10));
  std::size_t before = AllocationCount();
  reactor.Run(ReadMany(**plain, memory, 1000));
  EXPECT_EQ(AllocationCount(), before) << "a read that need not wait";

  QueueOptions options = OneAtATime();
  options.classes.limits[0] = {1, 1};
  Small small(options);
  small.disk.done.reserve(100'000);
  std::vector<std::vector<std::byte>> blocks(8, memory);
  std::vector<MutableView> views(blocks.begin(), blocks.end());
  small.reactor.Run(ReadSideBySide(small.reactor, *small.queue, views));
  before = AllocationCount();
  small.reactor.Run(ReadSideBySide(small.reactor, *small.queue, views));
  EXPECT_EQ(AllocationCount(), before) << "reads that wait";
}

TEST(IoQueue, CountsWhatWaitedAndHowLong) {
  Small small(OneAtATime());
  small.disk.latency_min = small.disk.latency_max = milliseconds(2);
  small.reactor.Run(DoAll(small.reactor, *small.queue, {{kRead, 900}, {kRead, 0}, {kRead, 1}}));
  const QueueClassStats& stats = small.queue->stats().classes[0];
  EXPECT_EQ(stats.started_count, 2U);
  EXPECT_EQ(stats.merged_count, 1U);
  EXPECT_EQ(stats.waits.count(), 3U);
  EXPECT_EQ(stats.waits.max_ns(), 2'000'000U);
  EXPECT_EQ(stats.waits.sum_ns(), 4'000'000U);
  EXPECT_EQ(stats.starvation_max, milliseconds(2));
  EXPECT_EQ(stats.waiting_max, 2U);
  EXPECT_EQ(stats.depths[1], 2U);
  EXPECT_EQ(stats.active, 0U);
}

// --- options ---

TEST(QueueOptions, NamesAllThatIsWrongWithItsRange) {
  EXPECT_THAT(QueueOptions::Legacy().Validate(), IsEmpty());
  EXPECT_THAT(QueueOptions::Classes(QueueOptions::Medium::kRotating).Validate(), IsEmpty());

  QueueOptions classes = QueueOptions::Classes(QueueOptions::Medium::kRotating);
  classes.classes.limits[3] = {4, 2};
  classes.classes.active_max = 0;
  classes.classes.dirty_low = 0.7;
  classes.aggregation.read_gap = 2_MiB;
  std::string text;
  for (const Error& problem : classes.Validate()) text += problem.ToString() + "\n";
  EXPECT_THAT(text, HasSubstr("classes.async write.active_min: it is more than active_max; write "
                              "1 to 2"));
  EXPECT_THAT(text, HasSubstr("classes.active_max: 0 is out of range; write 1 to 65536"));
  EXPECT_THAT(text, HasSubstr("classes.dirty_low: it is not below dirty_high"));
  EXPECT_THAT(text, HasSubstr("aggregation.read_gap: 2MiB is out of range; write 0B to 1MiB"));

  SimReactor reactor(Seed{1});
  NullDevice null({1_MiB, kBlock});
  QueueOptions legacy = QueueOptions::Legacy();
  legacy.legacy.pending_max = 0;
  legacy.legacy.ramp_rate = 0;
  const auto made = IoQueue::Create(reactor, null, legacy);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().note(), HasSubstr("legacy.pending_max: 0 is out of range"));
  EXPECT_THAT(made.error().note(), HasSubstr("legacy.ramp_rate: 0 is out of range"));
}

}  // namespace
}  // namespace labrack::block
