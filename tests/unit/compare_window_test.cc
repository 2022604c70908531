// Goal: the fleet's rate is what all hosts did while all were measuring, and nothing that does not
// change what happened changes it. Method: windows computed by hand; seeded random hosts whose
// intervals are split and whose order is shuffled.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "controller/compare/window.h"
#include "storage/base/random.h"

namespace labrack::compare {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

void AddInterval(v1::StepResult& step, std::int64_t begin_ns, std::int64_t end_ns,
                 std::uint64_t count) {
  v1::Interval& interval = *step.add_intervals();
  interval.set_begin_mono_ns(begin_ns);
  interval.set_end_mono_ns(end_ns);
  v1::IntervalOperation& operation = *interval.add_operations();
  operation.set_operation("write");
  operation.set_count(count);
  operation.set_bytes(count * 4096);
  if (step.operations().empty()) step.add_operations()->set_operation("write");
  v1::OperationResult& total = *step.mutable_operations(0);
  total.set_count(total.count() + count);
  total.set_bytes(total.bytes() + count * 4096);
}

v1::StepResult Step(std::int64_t begin_ns, std::int64_t end_ns) {
  v1::StepResult step;
  step.set_step("write");
  step.set_primary(v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND);
  step.set_measure_begin_mono_ns(begin_ns);
  step.set_measure_end_mono_ns(end_ns);
  step.add_counted("write");
  return step;
}

HostStep Host(const v1::StepResult& step, std::int64_t offset_ns = 0) {
  return {.host_name = "st",
          .result = &step,
          .started_mono_ns = step.measure_begin_mono_ns(),
          .clock_offset_ns = offset_ns};
}

// A measures 0..10 s at 100/s; B measures 2..12 s on the controller's clock at 50/s, its own clock
// 1000 s behind. Common window: 2..10 s. A did 800 there, B 400.
struct TwoHosts {
  v1::StepResult a = Step(0, 10 * kSecond);
  v1::StepResult b = Step(-998 * kSecond, -988 * kSecond);
  TwoHosts() {
    AddInterval(a, 0, 5 * kSecond, 500);
    AddInterval(a, 5 * kSecond, 10 * kSecond, 500);
    AddInterval(b, -998 * kSecond, -988 * kSecond, 500);
  }
  std::vector<HostStep> hosts() const { return {Host(a), Host(b, 1000 * kSecond)}; }
};

TEST(CompareWindowTest, CommonWindowIsTheIntersectionOnTheControllersClock) {
  TwoHosts fleet;
  const std::vector<HostStep> hosts = fleet.hosts();
  Result<FleetTiming> timing = TimeFleet(hosts);
  ASSERT_TRUE(timing.has_value()) << timing.error().ToString();
  EXPECT_EQ(timing->common_ns, 8 * kSecond);
  EXPECT_DOUBLE_EQ(timing->overlap, 0.8);
  EXPECT_EQ(timing->start_spread_ns, 2 * kSecond);
  EXPECT_EQ(timing->wall_max_ns, 10 * kSecond);

  const FleetRates rates = RateFleet(hosts, Work::kOperations, Spread::kIntervals);
  EXPECT_DOUBLE_EQ(rates.common, 150);      // 800 + 400 in 8 s
  EXPECT_DOUBLE_EQ(rates.first_done, 140);  // 1000 + 400 in 10 s
  EXPECT_DOUBLE_EQ(rates.last_done, 125);   // 1500 in 12 s
  EXPECT_DOUBLE_EQ(rates.whole, 150);       // 100 + 50
  EXPECT_DOUBLE_EQ(RateFleet(hosts, Work::kBytes, Spread::kIntervals).common, 150 * 4096);
}

TEST(CompareWindowTest, UnevenIntervalsCountByTheShareInside) {
  v1::StepResult a = Step(0, 10 * kSecond);
  AddInterval(a, 0, 4 * kSecond, 400);
  AddInterval(a, 4 * kSecond, 10 * kSecond, 60);
  v1::StepResult b = Step(3 * kSecond, 7 * kSecond);
  AddInterval(b, 3 * kSecond, 7 * kSecond, 40);
  const std::vector<HostStep> hosts = {Host(a), Host(b)};
  // Window 3..7 s: a quarter of 400, half of 60, all of 40.
  EXPECT_DOUBLE_EQ(RateFleet(hosts, Work::kOperations, Spread::kIntervals).common, 170 / 4.0);
  // Spread evenly, A did 46/s throughout.
  EXPECT_DOUBLE_EQ(RateFleet(hosts, Work::kOperations, Spread::kEven).common, 46 + 10);
}

TEST(CompareWindowTest, OneHostHasItsOwnTotalsAndNoOverlap) {
  v1::StepResult step = Step(0, 3 * kSecond);
  AddInterval(step, 0, 1 * kSecond, 7);
  AddInterval(step, 1 * kSecond, 3 * kSecond, 8);
  const std::vector<HostStep> hosts = {Host(step)};
  Result<FleetTiming> timing = TimeFleet(hosts);
  ASSERT_TRUE(timing.has_value());
  EXPECT_LT(timing->overlap, 0);
  const FleetRates rates = RateFleet(hosts, Work::kOperations, Spread::kIntervals);
  EXPECT_DOUBLE_EQ(rates.common, 5);
  EXPECT_DOUBLE_EQ(rates.first_done, 5);
  EXPECT_DOUBLE_EQ(rates.last_done, 5);
}

TEST(CompareWindowTest, WhatWasDoneAfterTheWindowMakesNoRate) {
  v1::StepResult a = Step(0, 10 * kSecond);
  AddInterval(a, 0, 10 * kSecond, 1000);
  AddInterval(a, 10 * kSecond, 13 * kSecond, 5);  // begun in time, done late
  EXPECT_TRUE(SelfCheck(a).has_value());
  const FleetRates one = RateFleet(std::vector{Host(a)}, Work::kOperations, Spread::kIntervals);
  EXPECT_DOUBLE_EQ(one.common, 100);
  EXPECT_DOUBLE_EQ(one.whole, 100);
  EXPECT_DOUBLE_EQ(one.last_done, 100);
  v1::StepResult b = Step(0, 10 * kSecond);
  AddInterval(b, 0, 10 * kSecond, 500);
  const FleetRates both =
      RateFleet(std::vector{Host(a), Host(b)}, Work::kOperations, Spread::kIntervals);
  EXPECT_DOUBLE_EQ(both.common, 150);
}

TEST(CompareWindowTest, OnlyCountedOperationsMakeTheRate) {
  v1::StepResult step = Step(0, kSecond);
  AddInterval(step, 0, kSecond, 10);
  v1::OperationResult& fsync = *step.add_operations();
  fsync.set_operation("fsync");
  fsync.set_count(5);
  v1::IntervalOperation& part = *step.mutable_intervals(0)->add_operations();
  part.set_operation("fsync");
  part.set_count(5);
  EXPECT_TRUE(SelfCheck(step).has_value());
  EXPECT_DOUBLE_EQ(RateFleet(std::vector{Host(step)}, Work::kOperations, Spread::kIntervals).common,
                   10);
}

TEST(CompareWindowTest, StartSkewIsTheLargestDistanceFromTheBarriersInstant) {
  TwoHosts fleet;
  fleet.a.set_intended_start_mono_ns(-3'000'000);                  // started 3 ms late
  fleet.b.set_intended_start_mono_ns(-998 * kSecond + 5'000'000);  // started 5 ms early
  Result<FleetTiming> timing = TimeFleet(fleet.hosts());
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->start_skew_max_ns, 5'000'000);
}

TEST(CompareWindowTest, RefusesWindowsThatDoNotOverlapOrCannotBeLaidOverEachOther) {
  v1::StepResult a = Step(0, kSecond);
  v1::StepResult b = Step(2 * kSecond, 3 * kSecond);
  EXPECT_FALSE(TimeFleet(std::vector{Host(a), Host(b)}).has_value());
  EXPECT_FALSE(TimeFleet({}).has_value());
  v1::StepResult empty = Step(kSecond, kSecond);
  EXPECT_FALSE(TimeFleet(std::vector{Host(empty)}).has_value());

  std::vector<HostStep> uncertain = {Host(a), Host(a)};
  uncertain[1].clock_uncertainty_ns = kSecond / 10;
  EXPECT_FALSE(TimeFleet(uncertain).has_value());
  uncertain[1].clock_uncertainty_ns = kSecond / 100;
  EXPECT_TRUE(TimeFleet(uncertain).has_value());
}

TEST(CompareWindowTest, SelfCheckSeesPartsThatDoNotMakeTheWhole) {
  TwoHosts fleet;
  EXPECT_TRUE(SelfCheck(fleet.a).has_value());
  fleet.a.mutable_operations(0)->set_count(1001);
  Result<void> checked = SelfCheck(fleet.a);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code(), Errc::kCorrupt);
  EXPECT_NE(checked.error().note().find("1000 operations"), std::string::npos);

  fleet.b.mutable_intervals(0)->mutable_operations(0)->set_operation("read");
  EXPECT_FALSE(SelfCheck(fleet.b).has_value());
}

v1::StepResult RandomStep(Random& random) {
  const auto begin = static_cast<std::int64_t>(random.Below(kSecond));
  v1::StepResult step = Step(begin, 0);
  std::int64_t at = begin;
  for (int i = 0; i < 5; ++i) {
    const auto end = at + 1 + static_cast<std::int64_t>(random.Below(2 * kSecond));
    AddInterval(step, at, end, random.Below(1'000'000));
    at = end;
  }
  step.set_measure_end_mono_ns(std::max(at, 2 * kSecond));
  return step;
}

// The same step with each interval cut in two, its counts in proportion.
v1::StepResult Split(const v1::StepResult& step) {
  v1::StepResult split = step;
  split.clear_intervals();
  split.clear_operations();
  for (const v1::Interval& interval : step.intervals()) {
    const std::int64_t length = interval.end_mono_ns() - interval.begin_mono_ns();
    const std::uint64_t count = interval.operations(0).count();
    const std::int64_t cut = interval.begin_mono_ns() + length / 2;
    const auto first = static_cast<std::uint64_t>(
        static_cast<double>(count) * static_cast<double>(length / 2) / static_cast<double>(length));
    AddInterval(split, interval.begin_mono_ns(), cut, first);
    AddInterval(split, cut, interval.end_mono_ns(), count - first);
  }
  return split;
}

TEST(CompareWindowTest, SplittingIntervalsAndPermutingHostsChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random{Seed{seed}};
    std::vector<v1::StepResult> steps;
    for (int i = 0; i < 3; ++i) steps.push_back(RandomStep(random));
    std::vector<v1::StepResult> split;
    for (const v1::StepResult& step : steps) split.push_back(Split(step));
    std::vector<HostStep> hosts;
    std::vector<HostStep> reversed;
    for (const v1::StepResult& step : steps) hosts.push_back(Host(step));
    for (const v1::StepResult& step : split) reversed.insert(reversed.begin(), Host(step));
    if (!TimeFleet(hosts)) continue;
    const FleetRates expected = RateFleet(hosts, Work::kOperations, Spread::kIntervals);
    const FleetRates got = RateFleet(reversed, Work::kOperations, Spread::kIntervals);
    // Counts are whole numbers: a cut may move one operation an interval.
    EXPECT_NEAR(got.common, expected.common, 1e-4 * expected.whole) << "seed " << seed;
    EXPECT_NEAR(got.first_done, expected.first_done, 1e-4 * expected.whole) << "seed " << seed;
    EXPECT_NEAR(got.last_done, expected.last_done, 1e-9 * expected.whole) << "seed " << seed;
    EXPECT_NEAR(got.whole, expected.whole, 1e-9 * expected.whole) << "seed " << seed;
  }
}

}  // namespace
}  // namespace labrack::compare
