// Goal: what coroutines of one reactor wait with keeps its promises in every order that a seed
// draws; virtual time is exact; one seed is one execution; a deadlock is told with its waiters.
// Method: small worlds on a SimReactor, over many seeds.
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/sync.h"
#include "storage/runtime/task_group.h"
#include "tests/unit/allocations.h"

namespace labrack::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kSeeds = 200;

Task<void> SleepFor(Reactor& reactor, Nanoseconds time) {
  const TimePoint until = reactor.Now() + time;
  Result<void> slept = co_await reactor.SleepUntil(until, nullptr);
  LABRACK_CHECK(slept.has_value());
}

Task<int> Sum(Reactor& reactor, int n) {
  if (n == 0) co_return 0;
  co_await SleepFor(reactor, milliseconds(1));
  int rest = co_await Sum(reactor, n - 1);
  co_return n + rest;
}

TEST(Reactor, VirtualTimeJumpsFromTimerToTimer) {
  SimReactor reactor(Seed{1});
  EXPECT_EQ(reactor.Run(Sum(reactor, 1000)), 500'500);
  EXPECT_EQ(reactor.Now().time_since_epoch(), milliseconds(1000));
}

Task<void> Note(Reactor& reactor, Nanoseconds time, int number, std::vector<int>& order) {
  co_await SleepFor(reactor, time);
  order.push_back(number);
}

Task<std::vector<int>> Sleepers(Reactor& reactor, std::vector<Nanoseconds> times) {
  std::vector<int> order;
  TaskGroup group(reactor);
  for (std::size_t i = 0; i < times.size(); ++i) {
    group.Spawn(Note(reactor, times[i], static_cast<int>(i), order));
  }
  co_await group.Join();
  co_return order;
}

TEST(Reactor, TimersGoOffInOrder) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimReactor reactor(Seed{static_cast<std::uint64_t>(seed)});
    Random random(Seed{static_cast<std::uint64_t>(seed)});
    std::vector<Nanoseconds> times;
    for (int i = 0; i < 50; ++i) times.push_back(nanoseconds(1 + random.Below(1'000'000)));
    const std::vector<int> order = reactor.Run(Sleepers(reactor, times));
    ASSERT_EQ(order.size(), times.size());
    for (std::size_t i = 1; i < order.size(); ++i) {
      EXPECT_LE(times[static_cast<std::size_t>(order[i - 1])],
                times[static_cast<std::size_t>(order[i])]);
    }
  }
}

TEST(Reactor, TheSameSeedGivesTheSameTraceAndOthersGiveOthers) {
  const auto trace = [](std::uint64_t seed) {
    SimReactor reactor(Seed{seed});
    reactor.Run(Sleepers(reactor, std::vector<Nanoseconds>(20, milliseconds(1))));
    return reactor.trace_hash();
  };
  EXPECT_EQ(trace(7), trace(7));
  const auto order = [](std::uint64_t seed) {
    SimReactor reactor(Seed{seed});
    return reactor.Run(Sleepers(reactor, std::vector<Nanoseconds>(20, milliseconds(1))));
  };
  EXPECT_EQ(order(7), order(7));
  EXPECT_NE(order(7), order(8)) << "ties are broken by the seed";
}

Task<Errc> SleepCancellable(Reactor& reactor, const CancelToken& cancel) {
  const TimePoint until = reactor.Now() + std::chrono::hours(1);
  Result<void> slept = co_await reactor.SleepUntil(until, &cancel);
  co_return slept ? Errc::kInternal : slept.error().code();
}

Task<void> CancelAfter(Reactor& reactor, Nanoseconds time, CancelToken& cancel) {
  co_await SleepFor(reactor, time);
  cancel.Cancel();
}

Task<Errc> SleepAndBeCancelled(Reactor& reactor, CancelToken& cancel) {
  TaskGroup group(reactor);
  group.Spawn(CancelAfter(reactor, milliseconds(3), cancel));
  Errc how = co_await SleepCancellable(reactor, cancel);
  co_await group.Join();
  co_return how;
}

TEST(Reactor, ACancelledSleepCompletesAtOnceWithThatError) {
  SimReactor reactor(Seed{1});
  CancelToken cancel;
  EXPECT_EQ(reactor.Run(SleepAndBeCancelled(reactor, cancel)), Errc::kCancelled);
  EXPECT_EQ(reactor.Now().time_since_epoch(), milliseconds(3));
  EXPECT_EQ(reactor.Run(SleepCancellable(reactor, cancel)), Errc::kCancelled) << "one set before";
}

struct Watched : CancelWatch {
  Watched(int own_number, std::vector<int>& all, const CancelToken& watched_token)
      : number(own_number), told(all) {
    token = &watched_token;
    cancelled = [](CancelWatch& watch) {
      Watched& self = static_cast<Watched&>(watch);
      self.told.push_back(self.number);
    };
  }
  int number;
  std::vector<int>& told;
};

TEST(Reactor, TellsThoseWhoWatchATokenOnceAndInOrder) {
  SimReactor reactor(Seed{1});
  CancelToken cancel;
  CancelToken other;
  std::vector<int> told;
  Watched first(1, told, cancel);
  Watched of_the_other(2, told, other);
  Watched ended(3, told, cancel);
  Watched last(4, told, cancel);
  for (Watched* watch : {&first, &of_the_other, &ended, &last}) reactor.Watch(*watch);
  reactor.Unwatch(ended);
  cancel.Cancel();
  reactor.Run(SleepFor(reactor, milliseconds(1)));
  EXPECT_THAT(told, ElementsAre(1, 4));
  reactor.Unwatch(of_the_other);
  other.Cancel();
  reactor.Run(SleepFor(reactor, milliseconds(1)));
  EXPECT_THAT(told, ElementsAre(1, 4));
}

struct Counter {
  explicit Counter(Reactor& reactor) : mutex(reactor) {}
  Mutex mutex;
  int inside = 0;
  int inside_max = 0;
  int total = 0;
};

Task<void> Increment(Reactor& reactor, Counter& counter, int times) {
  for (int i = 0; i < times; ++i) {
    co_await counter.mutex.Lock();
    Mutex::Held held(counter.mutex);
    counter.inside_max = std::max(counter.inside_max, ++counter.inside);
    const int before = counter.total;
    co_await SleepFor(reactor, nanoseconds(10));
    counter.total = before + 1;
    --counter.inside;
  }
}

Task<void> Increments(Reactor& reactor, Counter& counter) {
  TaskGroup group(reactor);
  for (int i = 0; i < 8; ++i) group.Spawn(Increment(reactor, counter, 10));
  co_await group.Join();
}

TEST(Mutex, LetsOneInAtATime) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimReactor reactor(Seed{static_cast<std::uint64_t>(seed)});
    Counter counter(reactor);
    reactor.Run(Increments(reactor, counter));
    EXPECT_EQ(counter.total, 80);
    EXPECT_EQ(counter.inside_max, 1);
    EXPECT_FALSE(counter.mutex.locked());
  }
}

Task<void> UseUnit(Reactor& reactor, Semaphore& units, int& inside, int& inside_max) {
  co_await units.Acquire();
  inside_max = std::max(inside_max, ++inside);
  co_await SleepFor(reactor, milliseconds(1));
  --inside;
  units.Release();
}

Task<int> UseUnits(Reactor& reactor, Semaphore& units) {
  int inside = 0;
  int inside_max = 0;
  TaskGroup group(reactor);
  for (int i = 0; i < 9; ++i) group.Spawn(UseUnit(reactor, units, inside, inside_max));
  co_await group.Join();
  co_return inside_max;
}

TEST(Semaphore, LetsInAsManyAsThereAreUnits) {
  SimReactor reactor(Seed{3});
  Semaphore units(reactor, 3);
  EXPECT_EQ(reactor.Run(UseUnits(reactor, units)), 3);
  EXPECT_EQ(units.free_units(), 3U);
  EXPECT_EQ(reactor.Now().time_since_epoch(), milliseconds(3));
}

Task<void> Produce(Reactor& reactor, Queue<int>& queue, int first, int count) {
  for (int i = 0; i < count; ++i) {
    co_await queue.Push(first + i);
    EXPECT_LE(queue.size(), 4U);
    co_await SleepFor(reactor, nanoseconds(5));
  }
}

Task<std::vector<int>> Consume(Reactor& reactor, Queue<int>& queue) {
  TaskGroup group(reactor);
  group.Spawn(Produce(reactor, queue, 0, 50));
  group.Spawn(Produce(reactor, queue, 1000, 50));
  std::vector<int> values;
  while (values.size() < 100) {
    int value = co_await queue.Pop();
    values.push_back(value);
  }
  co_await group.Join();
  co_return values;
}

TEST(Queue, KeepsOrderAndBound) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimReactor reactor(Seed{static_cast<std::uint64_t>(seed)});
    Queue<int> queue(reactor, 4);
    const std::vector<int> values = reactor.Run(Consume(reactor, queue));
    int last_low = -1;
    int last_high = 999;
    for (const int value : values) {
      int& last = value < 1000 ? last_low : last_high;
      EXPECT_EQ(value, last + 1);
      last = value;
    }
  }
}

Task<Result<int>> Answer(Reactor& reactor, int number) {
  co_await SleepFor(reactor, milliseconds(number));
  if (number == 2) co_return std::unexpected(Error(Errc::kIo));
  co_return number * 10;
}

Task<std::vector<int>> AskAll(Reactor& reactor) {
  WhenAll<Result<int>> answers(reactor, 4);
  for (int i = 4; i > 0; --i) answers.Add(static_cast<std::size_t>(i), Answer(reactor, i));
  co_await answers.Join();
  std::vector<int> values;
  for (std::size_t i = 0; i < answers.count(); ++i) {
    values.push_back(answers.result(i).value_or(-static_cast<int>(answers.slot(i))));
  }
  co_return values;
}

TEST(WhenAll, WaitsForAllAlsoAfterAnErrorAndKeepsTheOrder) {
  SimReactor reactor(Seed{1});
  EXPECT_THAT(reactor.Run(AskAll(reactor)), ElementsAre(40, 30, -2, 10));
  EXPECT_EQ(reactor.Now().time_since_epoch(), milliseconds(4));
}

Task<void> WaitFor(Event& event) { co_await event.Wait(); }

Task<void> SetThem(Reactor& reactor, Event& event) {
  TaskGroup group(reactor);
  group.Spawn(WaitFor(event));
  group.Spawn(WaitFor(event));
  event.Set();
  co_await group.Join();
  co_await event.Wait();
}

TEST(Event, WakesAllAndStaysSet) {
  SimReactor reactor(Seed{1});
  Event event(reactor);
  reactor.Run(SetThem(reactor, event));
  EXPECT_EQ(reactor.waiter_count(), 0U);
}

// A maker and a taker with one bell each way, as a feed of data has them.
Task<void> Make(Reactor& reactor, std::size_t& made, std::size_t& taken, Bell& is_made,
                Bell& is_taken) {
  while (made < 100) {
    while (made - taken == 3) co_await reactor.WaitFor(&is_taken);
    co_await SleepFor(reactor, milliseconds(1));
    ++made;
    is_made.Ring();
  }
}

Task<void> TakeAll(Reactor& reactor, std::size_t& made, std::size_t& taken, Bell& is_made,
                   Bell& is_taken) {
  while (taken < 100) {
    while (made == taken) co_await reactor.WaitFor(&is_made);
    ++taken;
    is_taken.Ring();
  }
}

Task<std::size_t> HandOver(Reactor& reactor) {
  std::size_t made = 0;
  std::size_t taken = 0;
  Bell is_made;
  Bell is_taken;
  TaskGroup group(reactor);
  group.Spawn(TakeAll(reactor, made, taken, is_made, is_taken));
  group.Spawn(Make(reactor, made, taken, is_made, is_taken));
  co_await group.Join();
  co_return taken;
}

TEST(Bell, NoRingIsLost) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimReactor reactor(Seed{seed});
    EXPECT_EQ(reactor.Run(HandOver(reactor)), 100U) << "seed " << seed;
    EXPECT_EQ(reactor.waiter_count(), 0U);
  }
}

Task<void> WaitInVain(Reactor& reactor) {
  Bell bell;
  co_await reactor.WaitFor(&bell);
}

TEST(ReactorDeathTest, ABellThatNobodyRingsIsADeadlock) {
  EXPECT_DEATH(
      {
        SimReactor reactor(Seed{1});
        reactor.Run(WaitInVain(reactor));
      },
      "a bell at ");
}

TEST(ReactorDeathTest, ADeadlockIsToldWithItsWaiters) {
  EXPECT_DEATH(
      {
        SimReactor reactor(Seed{1});
        Event event(reactor);
        reactor.Run(WaitFor(event));
      },
      "deadlock: nothing can run, and 1 coroutines wait:\nan event at .*runtime_sync_test.cc");
}

TEST(ReactorDeathTest, AGroupThatIsLeftWithWorkIsAFault) {
  EXPECT_DEATH(
      {
        SimReactor reactor(Seed{1});
        Event event(reactor);
        TaskGroup group(reactor);
        group.Spawn(WaitFor(event));
      },
      "running_ == 0");
}

Task<std::size_t> AllocationsOf(Reactor& reactor, int rounds) {
  Semaphore units(reactor, 2);
  const std::size_t before = AllocationCount();
  for (int i = 0; i < rounds; ++i) {
    WhenAll<Result<int>> answers(reactor, 3);
    for (std::size_t k = 1; k <= 3; ++k) answers.Add(k, Answer(reactor, 1));
    co_await answers.Join();
    co_await units.Acquire();
    units.Release();
  }
  co_return AllocationCount() - before;
}

TEST(FramePool, NothingIsAllocatedAfterWarmUp) {
  SimReactor reactor(Seed{1});
  reactor.Run(AllocationsOf(reactor, 10));
  EXPECT_EQ(reactor.Run(AllocationsOf(reactor, 1000)), 0U);
}

}  // namespace
}  // namespace labrack::runtime
