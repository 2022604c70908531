// Goal: the engine counts what it should and nothing else: warm-up excluded, stop rules exact, open
// loops honest, sums right, failures named. Method: clients on a device that takes a set time, in
// virtual time, so that every figure is known beforehand; and threads in real time for what they
// share.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/workload/engine.h"
#include "agent/workload/pages.h"
#include "proto/convert/convert.h"
#include "storage/block/null_device.h"
#include "storage/runtime/host_env.h"
#include "storage/runtime/host_launcher.h"
#include "tests/unit/virtual_env.h"

namespace labrack::workload {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// A device on which the n-th operation takes as long, or fails, as the test says.
class FakeDevice final : public block::BlockDevice {
 public:
  explicit FakeDevice(VirtualEnv& env) : env_(env) {}
  std::function<Nanoseconds(std::uint64_t)> takes = [](std::uint64_t) { return milliseconds(1); };
  std::uint64_t fail_at = UINT64_MAX;
  std::uint64_t operations = 0;

  block::Geometry geometry() const override { return {.size = 1_MiB, .block_size = 512_B}; }
  runtime::Task<Result<void>> Read(block::IoContext, Offset, MutableView) override {
    return Operate();
  }
  runtime::Task<Result<void>> Write(block::IoContext, Offset, ConstView) override {
    return Operate();
  }
  runtime::Task<Result<void>> Flush(block::IoContext) override { return Operate(); }

 private:
  runtime::Task<Result<void>> Operate() {
    const std::uint64_t number = operations++;
    std::ignore = co_await env_.SleepUntil(env_.Now() + takes(number), nullptr);
    if (number == fail_at) co_return Fail(Errc::kIo, "disk", "medium error");
    co_return Result<void>();
  }
  VirtualEnv& env_;
};

// What each client of a step over pages writes, as the workloads make it.
struct PageFeeds {
  PageFeeds(runtime::Env& env, const PageWork& work, const StepPlan& plan, FeedShape shape) {
    for (std::uint32_t i = 0; i < plan.clients; ++i) {
      pages.push_back(std::make_unique<PageFeed>(&work, Derive(plan.seed, i), shape));
      data.push_back(std::make_unique<DataFeed>(env, shape, pages.back()->Make()));
    }
  }
  runtime::Task<Result<void>> Body(Client& client, const PageWork& work) {
    return RunPages(&client, &work, pages[client.index()].get(), data[client.index()].get());
  }
  std::vector<std::unique_ptr<PageFeed>> pages;
  std::vector<std::unique_ptr<DataFeed>> data;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    plan_.step = "mix";
    plan_.kinds = {{.name = "read"}};
    plan_.seed = Seed{1};
    context_.start = env_.Now() + milliseconds(100);
    context_.progress = &progress_;
    context_.enter = [this](v1::PhaseKind phase, TimePoint at) {
      phases_.emplace_back(phase, Since(at));
    };
  }

  // Milliseconds since the agreed start.
  double Since(TimePoint at) const {
    return static_cast<double>((at - context_.start).count()) * 1e-6;
  }
  double Begin(const v1::StepResult& result) const {
    return Since(TimePoint(Nanoseconds(result.measure_begin_mono_ns())));
  }
  double End(const v1::StepResult& result) const {
    return Since(TimePoint(Nanoseconds(result.measure_end_mono_ns())));
  }

  StepOutcome Run() {
    const PageWork work{.device = &device_,
                        .name = "random.dat",
                        .page = 4_KiB,
                        .page_count = 256,
                        .read_share = 1,
                        .data = &data_,
                        .file = FileId{0},
                        .table = nullptr};
    Engine engine(env_, env_);
    return engine.Run(plan_, context_, [&](Client& client) { return RunPages(&client, &work); });
  }

  // One operation: client 0 is done after 200 ms, client 1 after a second.
  runtime::Task<Result<void>> Sleeper(Client* client) {
    const Nanoseconds takes = client->index() == 0 ? milliseconds(200) : milliseconds(1000);
    if (!client->Begin()) co_return Result<void>();
    std::ignore = co_await env_.SleepUntil(env_.Now() + takes, nullptr);
    client->End(0, Bytes(1));
    co_return Result<void>();
  }

  static Histogram Service(const v1::OperationResult& operation) {
    return convert::FromMessage(operation.service()).value();
  }

  VirtualEnv env_;
  FakeDevice device_{env_};
  Data data_{Seed{1}, v1::DATA_KIND_RANDOM};
  Progress progress_;
  StepPlan plan_;
  StepContext context_;
  std::vector<std::pair<v1::PhaseKind, double>> phases_;
};

TEST_F(EngineTest, WhatEndsInTheWarmUpIsNotCounted) {
  plan_.warm_up = milliseconds(100);
  plan_.duration = milliseconds(200);
  device_.takes = [](std::uint64_t) { return milliseconds(30); };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status) << outcome.status.error().ToString();
  // Done at 30, 60, 90 (warm-up), 120, 150, ... 270, and at 300, the end, exactly.
  EXPECT_EQ(device_.operations, 10U);
  EXPECT_EQ(outcome.result.operations(0).count(), 7U);
  EXPECT_EQ(outcome.result.operations(0).bytes(), 7U * 4096);
  EXPECT_EQ(Begin(outcome.result), 100);
  EXPECT_EQ(End(outcome.result), 300);
  EXPECT_THAT(phases_, ElementsAre(Pair(v1::PHASE_WARM_UP, 0), Pair(v1::PHASE_MEASURE, 100),
                                   Pair(v1::PHASE_DRAIN, 300)));
}

TEST_F(EngineTest, ASlowOperationCannotHideBehindTheEnd) {
  plan_.duration = milliseconds(100);
  device_.takes = [](std::uint64_t number) { return number == 5 ? seconds(3) : milliseconds(10); };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(outcome.result.operations(0).count(), 6U);
  EXPECT_EQ(outcome.result.operations(0).service().max_ns(), 3'000'000'000U);
  // Yet it is no part of the window, nor of the rate: five were done in 100 ms.
  EXPECT_EQ(End(outcome.result), 100);
  ASSERT_EQ(outcome.result.intervals_size(), 2);
  EXPECT_EQ(outcome.result.intervals(0).operations(0).count(), 5U);
  EXPECT_EQ(Since(TimePoint(Nanoseconds(outcome.result.intervals(1).begin_mono_ns()))), 100);
  EXPECT_EQ(Since(TimePoint(Nanoseconds(outcome.result.intervals(1).end_mono_ns()))), 3050);
  EXPECT_EQ(outcome.result.intervals(1).operations(0).count(), 1U);
  EXPECT_THAT(phases_, ElementsAre(Pair(v1::PHASE_MEASURE, 0), Pair(v1::PHASE_DRAIN, 100)));
}

// 32 clients of 10 ms in 500 ms, all out of step: the rate is 3200/s, though one has a long tail.
TEST_F(EngineTest, OneSlowOperationIsNotTheThroughputOfAll) {
  plan_.clients = 32;
  plan_.warm_up = milliseconds(50);
  plan_.duration = milliseconds(500);
  device_.takes = [](std::uint64_t number) {
    if (number == 1000) return Nanoseconds(milliseconds(400));
    return Nanoseconds(number < 32 ? microseconds(300 * number) : milliseconds(10));
  };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(End(outcome.result), 550);
  std::uint64_t inside = 0;
  for (const v1::Interval& row : outcome.result.intervals()) {
    if (row.end_mono_ns() > outcome.result.measure_end_mono_ns()) continue;
    for (const v1::IntervalOperation& operation : row.operations()) inside += operation.count();
  }
  EXPECT_NEAR(static_cast<double>(inside) / 0.5, 3200, 3200 * 0.03);
}

TEST_F(EngineTest, MeasureLastsUntilTheLastClientIsDone) {
  plan_.clients = 2;
  Engine engine(env_, env_);
  const StepOutcome outcome =
      engine.Run(plan_, context_,
                 [&](Client& client) -> runtime::Task<Result<void>> { return Sleeper(&client); });
  ASSERT_TRUE(outcome.status);
  EXPECT_THAT(phases_, ElementsAre(Pair(v1::PHASE_MEASURE, 0), Pair(v1::PHASE_DRAIN, 1000)));
}

TEST_F(EngineTest, StopByOperationsIsExactForSeveralClients) {
  plan_.clients = 7;
  plan_.operations = 100;
  plan_.warm_up = milliseconds(10);
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(outcome.result.operations(0).count(), 100U);
  EXPECT_EQ(device_.operations, 100U + 7 * 10);  // those of the warm-up took none of the budget
  EXPECT_EQ(progress_.Get().operations, 100U);
  EXPECT_EQ(progress_.Get().bytes, 100U * 4096);
  EXPECT_EQ(progress_.Get().fraction, 1.0);
}

TEST_F(EngineTest, ThinkTimeIsNotServiceTime) {
  plan_.duration = milliseconds(100);
  plan_.think = milliseconds(9);
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(outcome.result.operations(0).count(), 10U);  // one each 10 ms
  EXPECT_EQ(outcome.result.operations(0).service().max_ns(), 1'000'000U);
  EXPECT_EQ(End(outcome.result), 100);  // though the last one ended at 91
}

TEST_F(EngineTest, AnOpenLoopShowsTheQueueBehindAStall) {
  plan_.rate = 100;  // one each 10 ms
  plan_.duration = seconds(1);
  // The 10th operation stalls for 500 ms; all others take 1 ms.
  device_.takes = [](std::uint64_t number) {
    return number == 10 ? milliseconds(500) : milliseconds(1);
  };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status);
  const v1::OperationResult& reads = outcome.result.operations(0);
  EXPECT_EQ(reads.count(), 100U);
  // Service: one slow operation. Response: those that were due during the stall waited too, about
  // 500 ms / (10 ms - 1 ms) of them.
  const Histogram service = Service(reads);
  const Histogram response = convert::FromMessage(reads.response()).value();
  EXPECT_EQ(service.count() - service.CountAtMost(2'000'000), 1U);
  EXPECT_NEAR(static_cast<double>(response.count() - response.CountAtMost(2'000'000)), 55, 2);
  EXPECT_EQ(response.count(), 100U);
  EXPECT_EQ(response.max_ns(), 500'000'000U);
  EXPECT_NEAR(outcome.result.figures(1).value(), 100, 0.5);  // achieved
}

TEST_F(EngineTest, AnOpenLoopDoesWhatWasDueWhenItStallsAtItsEnd) {
  plan_.rate = 1000;
  plan_.clients = 2;
  plan_.duration = seconds(2);
  // The last 500 ms are a stall of both clients.
  device_.takes = [this](std::uint64_t) {
    const double since = Since(env_.Now());
    if (since < 1500 || since >= 2000) return Nanoseconds(microseconds(100));
    return Nanoseconds(std::llround((2000 - since) * 1e6));
  };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status);
  const v1::OperationResult& reads = outcome.result.operations(0);
  EXPECT_EQ(reads.count(), 2000U);
  const Histogram response = convert::FromMessage(reads.response()).value();
  EXPECT_EQ(response.count(), 2000U);
  EXPECT_NEAR(static_cast<double>(response.count() - response.CountAtMost(100'000'000)), 420, 30);
  EXPECT_EQ(End(outcome.result), 2000);
  EXPECT_EQ(outcome.result.figures_size(), 2);  // all have begun
}

TEST_F(EngineTest, WhatAnOpenLoopNeverBeganIsCounted) {
  plan_.rate = 1000;
  plan_.duration = seconds(1);
  device_.takes = [](std::uint64_t) { return milliseconds(4); };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status);
  // 250 in the window, 250 in the drain; the others wait from 500 ms to 2 s on.
  const v1::OperationResult& reads = outcome.result.operations(0);
  EXPECT_EQ(reads.count(), 500U);
  ASSERT_EQ(outcome.result.figures_size(), 3);
  EXPECT_EQ(outcome.result.figures(2).name(), "operations_not_begun");
  EXPECT_EQ(outcome.result.figures(2).value(), 500);
  EXPECT_EQ(convert::FromMessage(reads.response())->count(), 1000U);
  EXPECT_EQ(reads.response().max_ns(), 1'501'000'000U);
}

TEST_F(EngineTest, AnOpenLoopThatFallsBehindSaysSo) {
  plan_.rate = 1000;
  plan_.duration = seconds(1);
  device_.takes = [](std::uint64_t) { return milliseconds(2); };
  const StepOutcome outcome = Run();
  EXPECT_EQ(outcome.result.figures(0).name(), "offered_rate");
  EXPECT_EQ(outcome.result.figures(0).value(), 1000);
  EXPECT_EQ(outcome.result.figures(1).name(), "achieved_rate");
  EXPECT_NEAR(outcome.result.figures(1).value(), 500, 1);
}

TEST_F(EngineTest, IntervalsSumUpAndGrowWithTheStep) {
  plan_.clients = 3;
  plan_.duration = seconds(2 * 3600);
  device_.takes = [](std::uint64_t number) { return milliseconds(700 + number % 100); };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status) << outcome.status.error().ToString();
  const v1::StepResult& result = outcome.result;
  EXPECT_LE(result.intervals_size(), 600);
  EXPECT_EQ(result.intervals(0).end_mono_ns() - result.intervals(0).begin_mono_ns(),
            20'000'000'000);
  std::uint64_t count = 0;
  Histogram sum;
  std::int64_t previous_end = result.measure_begin_mono_ns();
  for (const v1::Interval& interval : result.intervals()) {
    EXPECT_EQ(interval.begin_mono_ns(), previous_end);
    previous_end = interval.end_mono_ns();
    for (const v1::IntervalOperation& operation : interval.operations()) {
      count += operation.count();
      sum.Merge(convert::FromMessage(operation.service()).value());
    }
  }
  EXPECT_GT(previous_end, result.measure_end_mono_ns());  // three were late
  EXPECT_EQ(result.intervals(result.intervals_size() - 1).begin_mono_ns(),
            result.measure_end_mono_ns());
  EXPECT_EQ(count, result.operations(0).count());
  EXPECT_EQ(sum.NonEmpty(), Service(result.operations(0)).NonEmpty());
  EXPECT_EQ(sum.sum_ns(), Service(result.operations(0)).sum_ns());
}

TEST_F(EngineTest, AnOperationBelongsToTheIntervalInWhichItEnds) {
  plan_.operations = 4;
  device_.takes = [](std::uint64_t) { return milliseconds(50); };
  const StepOutcome outcome = Run();
  ASSERT_EQ(outcome.result.intervals_size(), 2);  // ends at 50 and 100, then at 150 and 200
  EXPECT_EQ(outcome.result.intervals(0).operations(0).count(), 2U);
  EXPECT_EQ(outcome.result.intervals(1).operations(0).count(), 2U);
}

TEST_F(EngineTest, ClientsThatWakeLateLeaveNoIntervalsThatRunBackwards) {
  context_.start = env_.Now() - milliseconds(350);
  plan_.duration = milliseconds(600);
  device_.takes = [](std::uint64_t) { return milliseconds(10); };
  const StepOutcome outcome = Run();
  ASSERT_TRUE(outcome.status) << outcome.status.error().ToString();
  EXPECT_NEAR(Begin(outcome.result), 350, 1);
  std::int64_t end = outcome.result.measure_begin_mono_ns();
  for (const v1::Interval& interval : outcome.result.intervals()) {
    EXPECT_EQ(interval.begin_mono_ns(), end);
    EXPECT_GT(interval.end_mono_ns(), interval.begin_mono_ns());
    end = interval.end_mono_ns();
  }
  EXPECT_EQ(end, outcome.result.measure_end_mono_ns());
}

TEST_F(EngineTest, AFailedOperationFailsTheStepAndIsNamed) {
  plan_.clients = 2;
  plan_.duration = seconds(60);
  device_.fail_at = 21;
  const StepOutcome outcome = Run();
  ASSERT_FALSE(outcome.status);
  EXPECT_EQ(outcome.status.error().code(), Errc::kIo);
  EXPECT_THAT(outcome.status.error().ToString(),
              ::testing::AllOf(HasSubstr("read of random.dat at byte "), HasSubstr("client 1"),
                               HasSubstr("medium error")));
  // The counts are kept (21 before it, and the other client's, which was under way), and the other
  // client has stopped long before the minute is over.
  EXPECT_EQ(outcome.result.operations(0).count(), 22U);
  EXPECT_EQ(outcome.result.operations(0).error_count(), 1U);
  EXPECT_THAT(outcome.result.operations(0).first_error(), HasSubstr("medium error"));
  EXPECT_LT(End(outcome.result), 100);
}

TEST_F(EngineTest, CancelEndsTheStep) {
  plan_.duration = seconds(60);
  runtime::CancelToken cancel;
  context_.cancel = &cancel;
  device_.takes = [&](std::uint64_t number) {
    if (number == 100) cancel.Cancel();
    return milliseconds(1);
  };
  const StepOutcome outcome = Run();
  ASSERT_FALSE(outcome.status);
  EXPECT_EQ(outcome.status.error().code(), Errc::kCancelled);
  EXPECT_LT(End(outcome.result), 200);
}

TEST_F(EngineTest, NothingCountedIsAnError) {
  plan_.warm_up = milliseconds(100);
  plan_.duration = milliseconds(100);
  device_.takes = [](std::uint64_t) { return seconds(5); };
  const StepOutcome outcome = Run();
  ASSERT_FALSE(outcome.status);
  EXPECT_EQ(outcome.status.error().code(), Errc::kTimedOut);
}

TEST_F(EngineTest, OneSeedReplaysOneExecution) {
  const auto run = [](std::uint64_t seed) {
    VirtualEnv env;
    FakeDevice device(env);
    Random random(Seed{seed});
    device.takes = [&](std::uint64_t) { return microseconds(50 + random.Below(1000)); };
    const Data data(Seed{seed}, v1::DATA_KIND_RANDOM);
    PageTable table(256);
    const PageWork work{.read_kind = 0,
                        .write_kind = 1,
                        .device = &device,
                        .name = "x",
                        .page = 4_KiB,
                        .page_count = 256,
                        .read_share = 0.5,
                        .data = &data,
                        .table = &table};
    StepPlan plan{.step = "mix",
                  .kinds = {{.name = "read"}, {.name = "write"}},
                  .clients = 8,
                  .duration = seconds(2),
                  .seed = Seed{seed}};
    Engine engine(env, env);
    PageFeeds feeds(env, work, plan, {.block = 4_KiB, .slots = 4, .ahead = true});
    const StepOutcome outcome = engine.Run(
        plan, StepContext{}, [&](Client& client) { return feeds.Body(client, work); }, feeds.data);
    return outcome.result.SerializeAsString();
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

// Threads in real time: what is shared among them stays exact.
TEST(EngineThreads, BudgetAndSumsAreExact) {
  runtime::HostEnv env;
  runtime::HostLauncher launcher;
  block::NullDevice device({.size = 1_MiB, .block_size = 512_B});
  const Data data(Seed{1}, v1::DATA_KIND_RANDOM);
  PageTable table(256);
  const PageWork work{.read_kind = 0,
                      .write_kind = 1,
                      .device = &device,
                      .name = "null",
                      .page = 4_KiB,
                      .page_count = 256,
                      .read_share = 0.5,
                      .data = &data,
                      .table = &table};
  StepPlan plan{.step = "mix",
                .kinds = {{.name = "read"}, {.name = "write"}},
                .clients = 8,
                .operations = 200'000,
                .seed = Seed{3}};
  Engine engine(env, launcher);
  PageFeeds feeds(env, work, plan, {.block = 4_KiB, .slots = 4, .ahead = true});
  const StepOutcome outcome = engine.Run(
      plan, StepContext{}, [&](Client& client) { return feeds.Body(client, work); }, feeds.data);
  ASSERT_TRUE(outcome.status) << outcome.status.error().ToString();
  EXPECT_EQ(outcome.result.operations(0).count() + outcome.result.operations(1).count(), 200'000U);
  std::uint64_t written = 0;
  for (std::uint64_t page = 0; page < 256; ++page) written += table.Last(page).value;
  EXPECT_EQ(written, outcome.result.operations(1).count());
}

TEST(EngineThreads, ACancelWakesSleepers) {
  runtime::HostEnv env;
  runtime::HostLauncher launcher;
  block::NullDevice device({.size = 1_MiB, .block_size = 512_B});
  const Data data(Seed{1}, v1::DATA_KIND_RANDOM);
  const PageWork work{.device = &device,
                      .name = "null",
                      .page = 4_KiB,
                      .page_count = 256,
                      .read_share = 1,
                      .data = &data};
  StepPlan plan{.step = "mix",
                .kinds = {{.name = "read"}},
                .clients = 2,
                .duration = seconds(60),
                .think = seconds(30)};
  runtime::CancelToken cancel;
  cancel.Cancel();
  const TimePoint begin = env.Now();
  Engine engine(env, launcher);
  const StepOutcome outcome =
      engine.Run(plan, StepContext{.start = env.Now() + milliseconds(20), .cancel = &cancel},
                 [&](Client& client) { return RunPages(&client, &work); });
  EXPECT_EQ(outcome.status.error().code(), Errc::kCancelled);
  EXPECT_LT(env.Now() - begin, seconds(1));
}

// An endless feed whose blocks are numbered; making one takes a while.
class Numbered {
 public:
  explicit Numbered(Nanoseconds takes) : takes_(takes) {}
  DataFeed::Make Make() {
    return [this](std::size_t, MutableView into) {
      if (takes_ > Nanoseconds(0)) std::this_thread::sleep_for(takes_);
      const std::uint64_t number = made_++;
      std::memcpy(into.data(), &number, sizeof number);
      return std::optional(Bytes(into.size()));
    };
  }
  std::uint64_t made() const { return made_; }

 private:
  Nanoseconds takes_;
  std::atomic<std::uint64_t> made_ = 0;
};

// Takes `count` blocks, each for as long as a write takes; how many came out of turn, and how many
// were made ahead at most.
struct Eater {
  runtime::Env* env;
  DataFeed* feed;
  const Numbered* numbered;
  std::uint64_t count;
  Nanoseconds takes{0};
  std::uint64_t out_of_turn = 0;
  std::uint64_t ahead_max = 0;

  static runtime::Task<Result<void>> Run(Client* client, Eater* eater) {
    for (std::uint64_t expected = 0; expected < eater->count; ++expected) {
      if (!eater->feed->Ready(client)) co_await eater->feed->Wait(client);
      const MutableView data = eater->feed->Take().value().data;
      if (!client->Begin()) break;
      if (eater->takes > Nanoseconds(0)) {
        std::ignore = co_await eater->env->SleepUntil(client->Now() + eater->takes, nullptr);
      }
      std::uint64_t number = 0;
      std::memcpy(&number, data.data(), sizeof number);
      if (number != expected) ++eater->out_of_turn;
      eater->ahead_max = std::max(eater->ahead_max, eater->numbered->made() - expected);
      client->End(0, Bytes(data.size()));
    }
    co_return Result<void>();
  }
};

struct Eaten {
  StepOutcome outcome;
  Eater eater;
  std::uint64_t made = 0;
  std::size_t untaken = 0;
};

Eaten EatNumbered(FeedShape shape, std::uint64_t count, Nanoseconds making, Nanoseconds writing) {
  runtime::HostEnv env;
  runtime::HostLauncher launcher;
  Numbered numbered(making);
  std::vector<std::unique_ptr<DataFeed>> feeds;
  feeds.push_back(std::make_unique<DataFeed>(env, shape, numbered.Make()));
  Eater eater{&env, feeds[0].get(), &numbered, count, writing};
  const StepPlan plan{.step = "write", .kinds = {{.name = "write"}}};
  const StepContext context{.start = env.Now() + milliseconds(20)};
  Engine engine(env, launcher);
  StepOutcome outcome =
      engine.Run(plan, context, [&](Client& client) { return Eater::Run(&client, &eater); }, feeds);
  EXPECT_TRUE(outcome.status) << outcome.status.error().ToString();
  return {std::move(outcome), eater, numbered.made(), feeds[0]->Untaken().size()};
}

TEST(DataFeed, BlocksComeInTurnAndNoMoreAreMadeThanFit) {
  for (const std::size_t slots : {std::size_t{2}, std::size_t{3}, std::size_t{64}}) {
    const Eaten eaten = EatNumbered({.block = 8_B, .slots = slots, .ahead = true}, 20'000,
                                    Nanoseconds(0), Nanoseconds(0));
    EXPECT_EQ(eaten.eater.out_of_turn, 0U) << slots;
    EXPECT_LE(eaten.eater.ahead_max, slots) << slots;
    EXPECT_EQ(eaten.made, 20'000 + eaten.untaken) << slots;
  }
  const Eaten eaten =
      EatNumbered({.block = 8_B}, 1'000, Nanoseconds(0), Nanoseconds(0));  // no maker
  EXPECT_EQ(eaten.eater.out_of_turn, 0U);
  EXPECT_EQ(eaten.made, 1'000U);
}

double Seconds(const v1::StepResult& result) {
  return static_cast<double>(result.measure_end_mono_ns() - result.measure_begin_mono_ns()) * 1e-9;
}

// 50 blocks of 2 ms to make and 4 ms to write: 0.2 s beside each other, 0.3 s one after the other.
TEST(DataFeed, WhatIsMadeBesideTheClientTakesNoTimeOfIts) {
  const Eaten beside = EatNumbered({.block = 4_KiB, .slots = 4, .ahead = true}, 50, milliseconds(2),
                                   milliseconds(4));
  EXPECT_LT(beside.outcome.waiting_share, 0.1);
  EXPECT_GE(beside.outcome.making, milliseconds(80));
  EXPECT_LT(Seconds(beside.outcome.result), 0.28);

  const Eaten alone = EatNumbered({.block = 4_KiB}, 50, milliseconds(2), milliseconds(4));
  EXPECT_GT(alone.outcome.waiting_share, 0.25);
  EXPECT_GE(alone.outcome.making, milliseconds(90));
  EXPECT_GT(Seconds(alone.outcome.result), 0.29);
}

// A maker that is slower than the stack is waited for, and the result says so.
TEST(DataFeed, WaitsForASlowMakerAreMeasured) {
  const Eaten eaten = EatNumbered({.block = 4_KiB, .slots = 4, .ahead = true}, 40, milliseconds(4),
                                  milliseconds(1));
  EXPECT_GT(eaten.outcome.waiting_share, 0.4);
}

TEST(DataFeed, AMakerTakesAProcessorThatIsThere) {
  EXPECT_FALSE(FeedShape::For(4_KiB, 1, 0).ahead);  // not known
  EXPECT_FALSE(FeedShape::For(4_KiB, 2, 3).ahead);
  EXPECT_EQ(FeedShape::For(4_KiB, 2, 3).memory(), 4_KiB);
  EXPECT_TRUE(FeedShape::For(4_KiB, 2, 4).ahead);
  EXPECT_EQ(FeedShape::For(4_KiB, 2, 4).slots, 64U);
  EXPECT_EQ(FeedShape::For(128_KiB, 2, 4).slots, 8U);
  EXPECT_EQ(FeedShape::For(64_MiB, 2, 4).memory(), 128_MiB);
}

// In virtual time: 300 ms for data, within the operation, then 100 ms for the stack.
runtime::Task<Result<void>> WaitWithin(Client* client, VirtualEnv* env) {
  if (!client->Begin()) co_return Result<void>();
  const TimePoint from = client->Now();
  std::ignore = co_await env->SleepUntil(from + milliseconds(300), nullptr);
  client->Made(from);
  std::ignore = co_await env->SleepUntil(env->Now() + milliseconds(100), nullptr);
  client->Part(1, Bytes(1));
  client->EndAtPart(0, Bytes(1));
  co_return Result<void>();
}

TEST_F(EngineTest, AWaitForDataIsInNoLatency) {
  plan_.kinds = {{.name = "create"}, {.name = "write", .counted = false}};
  Engine engine(env_, env_);
  const StepOutcome outcome =
      engine.Run(plan_, context_, [this](Client& client) { return WaitWithin(&client, &env_); });
  ASSERT_TRUE(outcome.status) << outcome.status.error().ToString();
  for (const v1::OperationResult& operation : outcome.result.operations()) {
    EXPECT_EQ(Service(operation).max_ns(), 100'000'000U) << operation.operation();
  }
  EXPECT_DOUBLE_EQ(outcome.waiting_share, 0.75);
}

// As nobody, who may have one task: the exit code is 0 when all is as it should be.
void RunClientsWithoutThreads() {
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
  const rlimit one{.rlim_cur = 1, .rlim_max = 1};
  if (setrlimit(RLIMIT_NPROC, &one) != 0) _exit(3);
  runtime::HostEnv env;
  runtime::HostLauncher launcher;
  const StepPlan plan{.step = "mix", .kinds = {{.name = "read"}}, .clients = 8};
  bool begun = false;
  Engine engine(env, launcher);
  const StepOutcome outcome =
      engine.Run(plan, StepContext{}, [&](Client&) -> runtime::Task<Result<void>> {
        begun = true;
        return {};
      });
  if (outcome.status || begun) _exit(4);
  const std::string text = outcome.status.error().ToString();
  std::fputs(text.c_str(), stderr);
  _exit(outcome.status.error().code() == Errc::kExhausted ? 0 : 5);
}

TEST(EngineThreadsDeathTest, AHostWithoutRoomForThreadsFailsTheStepAndSaysSo) {
  EXPECT_EXIT(RunClientsWithoutThreads(), ::testing::ExitedWithCode(0),
              "thread 1 of 8: could not be started .* ask for fewer `clients`, or raise");
}

}  // namespace
}  // namespace labrack::workload
