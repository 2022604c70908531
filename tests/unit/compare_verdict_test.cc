// Goal: verdicts are right as often as they say. Method: the rule on intervals by hand, then
// simulated streams of comparisons: identical arms must not alarm, a planted slowdown must be
// found.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/compare/verdict.h"
#include "tests/unit/noise.h"

namespace labrack::compare {
namespace {

using ::testing::HasSubstr;

Judgement With(double low, double ratio, double high, std::size_t trials = 6) {
  Judgement judgement;
  judgement.ratio = ratio;
  judgement.interval = {low, high};
  judgement.base_trials = judgement.trials = trials;
  judgement.chance = {.test = {.p = 0.002, .separated = true}, .student_p = 0.001};
  return judgement;
}

Chance ByChance(double p, double student_p, bool separated = true) {
  return {.test = {.p = p, .separated = separated}, .student_p = student_p};
}

v1::ComparisonVerdict VerdictBy(const Judgement& judgement, bool lower_is_better = false) {
  return VerdictOf(Rule(judgement, RowClaim(0.03), ByChance(0.01, 0.01), 1).place, lower_is_better);
}

TEST(CompareVerdictTest, TheIntervalAndTheMarginDecide) {
  EXPECT_EQ(VerdictBy(With(1.04, 1.10, 1.2)), v1::COMPARISON_VERDICT_BETTER);
  EXPECT_EQ(VerdictBy(With(1.04, 1.10, 1.2), true), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(VerdictBy(With(0.8, 0.9, 0.96)), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(VerdictBy(With(0.8, 0.9, 0.96), true), v1::COMPARISON_VERDICT_BETTER);
  EXPECT_EQ(VerdictBy(With(0.98, 1.00, 1.02)), v1::COMPARISON_VERDICT_SAME);
  EXPECT_EQ(VerdictBy(With(1.01, 1.02, 1.025)), v1::COMPARISON_VERDICT_SAME);
  EXPECT_EQ(VerdictBy(With(1.01, 1.04, 1.08)), v1::COMPARISON_VERDICT_INCONCLUSIVE);
  EXPECT_EQ(VerdictBy(With(0.9, 1.0, 1.1)), v1::COMPARISON_VERDICT_INCONCLUSIVE);
  EXPECT_EQ(VerdictBy(With(1.03, 1.1, 1.2)), v1::COMPARISON_VERDICT_INCONCLUSIVE);  // not beyond
}

TEST(CompareVerdictTest, FewerThanFourTrialsNeverDecide) {
  for (std::size_t trials : {1u, 2u, 3u}) {
    const Ruling ruling = Rule(With(2, 3, 4, trials), RowClaim(0.03), ByChance(0.001, 0.001), 1);
    EXPECT_EQ(ruling.place, Place::kUnclear);
    EXPECT_THAT(ruling.reason, HasSubstr("smoke test only"));
    EXPECT_EQ(ruling.trials_needed, 6u);
  }
  EXPECT_EQ(Rule(With(2, 3, 4, 4), RowClaim(0.03), ByChance(0.001, 0.001), 1).place, Place::kAbove);
}

TEST(CompareVerdictTest, AmongManyTestsChanceIsNoFinding) {
  const Judgement judgement = With(1.04, 1.1, 1.2);
  const Ruling ruling = Rule(judgement, RowClaim(0.03), ByChance(0.3, 0.2, false), 24);
  EXPECT_EQ(ruling.place, Place::kUnclear);
  EXPECT_THAT(ruling.reason, HasSubstr("among 24 tests"));
  EXPECT_EQ(Rule(judgement, RowClaim(0.03), ByChance(0.3, 0.001, false), 24).place,
            Place::kUnclear);
  // Separated arms: the ranks can say no more, the distance can.
  EXPECT_EQ(Rule(judgement, RowClaim(0.03), ByChance(0.3, 0.001), 24).place, Place::kAbove);
  EXPECT_EQ(Rule(judgement, RowClaim(0.03), ByChance(0.3, 0.2), 24).place, Place::kUnclear);
  // So with a gate; a range with two ends holds by its interval.
  EXPECT_EQ(Rule(judgement, GateClaim(1.02, INFINITY), ByChance(0.3, 0.2), 1).place,
            Place::kUnclear);
  EXPECT_EQ(Rule(judgement, GateClaim(1.02, INFINITY), ByChance(0.03, 0.2), 1).place,
            Place::kInside);
  EXPECT_EQ(Rule(judgement, GateClaim(1.5, INFINITY), ByChance(0.3, 0.2), 1).place,
            Place::kUnclear);
  EXPECT_EQ(Rule(judgement, GateClaim(1.5, INFINITY), ByChance(0.03, 0.2), 1).place, Place::kBelow);
  EXPECT_EQ(Rule(judgement, GateClaim(0.8, 1.25), ByChance(0.3, 0.2), 1).place, Place::kInside);
}

TEST(CompareVerdictTest, ChanceIsMeasuredAgainstTheRatioClaimed) {
  const Arms arms{.base = {100, 101, 102, 103, 104, 105}, .test = {150, 151, 152, 153, 154, 155}};
  EXPECT_TRUE(ChanceAt(arms, 1).test.separated);
  EXPECT_NEAR(ChanceAt(arms, 1).test.p, 0.0022, 1e-4);
  EXPECT_FALSE(ChanceAt(arms, 1.48).test.separated);
  EXPECT_GT(ChanceAt(arms, 1.48).test.p, 0.3);
  EXPECT_GT(ChanceAt(arms, 1.48).student_p, 0.3);
}

TEST(CompareVerdictTest, HolmAdjustsBothKindsOfP) {
  const std::vector<Chance> adjusted =
      HolmAdjusted({ByChance(0.01, 0.04), ByChance(0.04, 0.01, false), ByChance(0.9, 0.9)});
  EXPECT_DOUBLE_EQ(adjusted[0].test.p, 0.03);
  EXPECT_DOUBLE_EQ(adjusted[0].student_p, 0.08);
  EXPECT_DOUBLE_EQ(adjusted[1].test.p, 0.08);
  EXPECT_DOUBLE_EQ(adjusted[1].student_p, 0.03);
  EXPECT_FALSE(adjusted[1].test.separated);
}

TEST(CompareVerdictTest, SaysWhatIsMissingAndHowManyTrialsThatTakes) {
  const Ruling ruling = Rule(With(1.01, 1.05, 1.09), RowClaim(0.03), ByChance(0.01, 0.01), 1);
  EXPECT_THAT(ruling.reason, HasSubstr("crosses the 3 % margin"));
  // Half width 0.0381 on logs, 0.0192 from the margin: 6 * (0.0381 * 1.4286 / 0.0192)^2 = 48.
  EXPECT_NEAR(ruling.trials_needed, 48, 2);
  EXPECT_EQ(TrialsNeeded(With(0.5, 1.0301, 2), 1.03), kTrialsNeededMax);
  EXPECT_EQ(TrialsNeeded(With(1, 1, 1), 1.03), 0u);
}

TEST(CompareVerdictTest, RepeatsArePairedFromSixOn) {
  Series base;
  Series test;
  for (std::uint32_t repeat = 0; repeat < 6; ++repeat) {
    base.push_back({repeat, 100.0 + repeat});
    test.push_back({5 - repeat, 205.0 - repeat});
  }
  Arms arms = MakeArms(base, test, Repeats::kShared);
  EXPECT_TRUE(arms.paired);
  EXPECT_EQ(arms.test[0], 200);  // of repeat 0
  // Two runs have no repeats in common, whatever their numbers; and no trial is thrown away.
  base.push_back({6, 106.0});
  arms = MakeArms(base, test, Repeats::kApart);
  EXPECT_FALSE(arms.paired);
  EXPECT_EQ(arms.base.size(), 7u);
  EXPECT_EQ(MakeArms(base, test, Repeats::kShared).base.size(), 6u);
  base.resize(5);
  arms = MakeArms(base, test, Repeats::kShared);
  EXPECT_FALSE(arms.paired);
  EXPECT_EQ(arms.base.size(), 5u);
  EXPECT_EQ(arms.test.size(), 6u);
}

struct Stream {
  std::size_t trials = 10;
  double variation = 0.03;
  double drift = 0;   // deviation of what a repeat's trials share
  double effect = 1;  // test / base
  double margin = 0;
  std::size_t tests = 1;  // of a report
};

struct Tally {
  int better = 0;
  int worse = 0;
  int same = 0;
  int reports_with_alarm = 0;
  int alarms() const { return better + worse; }
};

Tally Simulate(const Stream& stream, int reports, Seed seed) {
  Random random(seed);
  Tally tally;
  for (int i = 0; i < reports; ++i) {
    std::vector<Judgement> judgements;
    std::vector<Chance> chances;
    for (std::size_t k = 0; k < stream.tests; ++k) {
      Series base;
      Series test;
      for (std::uint32_t repeat = 0; repeat < stream.trials; ++repeat) {
        const double shared = 1000 * std::exp(stream.drift * StandardNormal(random));
        base.push_back({repeat, shared * std::exp(stream.variation * StandardNormal(random))});
        test.push_back(
            {repeat, shared * std::exp(stream.variation * StandardNormal(random)) * stream.effect});
      }
      judgements.push_back(Judge(base, test, Repeats::kShared, Seed{random.Next()}));
      chances.push_back(judgements.back().chance);
    }
    chances = HolmAdjusted(std::move(chances));
    const int before = tally.alarms();
    for (std::size_t k = 0; k < stream.tests; ++k) {
      const v1::ComparisonVerdict verdict = VerdictOf(
          Rule(judgements[k], RowClaim(stream.margin), chances[k], stream.tests).place, false);
      tally.better += verdict == v1::COMPARISON_VERDICT_BETTER ? 1 : 0;
      tally.worse += verdict == v1::COMPARISON_VERDICT_WORSE ? 1 : 0;
      tally.same += verdict == v1::COMPARISON_VERDICT_SAME ? 1 : 0;
    }
    tally.reports_with_alarm += tally.alarms() > before ? 1 : 0;
  }
  return tally;
}

// The hardest setting: margin 0, where nothing but the interval and the ranks hold an alarm back.
TEST(CompareCalibrationTest, IdenticalArmsAlarmInAtMostFivePercentOf400) {
  for (std::size_t trials : {4u, 6u, 10u}) {
    for (double drift : {0.0, 0.05}) {
      const Stream stream{.trials = trials, .drift = drift};
      const Tally tally = Simulate(stream, 400, Seed{trials});
      EXPECT_LE(tally.alarms(), 20) << trials << " trials, drift " << drift;
      RecordProperty("alarms_of_400_at_" + std::to_string(trials) + (drift > 0 ? "_drift" : ""),
                     tally.alarms());
    }
  }
}

TEST(CompareCalibrationTest, TheMarginSilencesIdenticalArms) {
  EXPECT_LE(Simulate({.margin = 0.03}, 400, Seed{3}).alarms(), 2);
}

TEST(CompareCalibrationTest, ReportsOfManyNoisyTestsStayQuiet) {
  const Stream stream{.trials = 6, .variation = 0.10, .margin = 0.03, .tests = 24};
  EXPECT_LE(Simulate(stream, 20, Seed{4}).reports_with_alarm, 2);
}

// A 5 % slowdown at 3 % noise and 10 trials. Detection is asked of margin 0: with the default
// margin of 3 % the question is another, namely whether the slowdown is surely larger than 3 %.
TEST(CompareCalibrationTest, PlantedSlowdownIsFound) {
  const Tally detected = Simulate({.effect = 0.95}, 400, Seed{5});
  EXPECT_GE(detected.worse, 320);
  EXPECT_EQ(detected.better, 0);
  RecordProperty("found_of_400_margin_0", detected.worse);

  const Tally beyond = Simulate({.effect = 0.95, .margin = 0.03}, 400, Seed{5});
  EXPECT_GT(beyond.worse, 60);  // what remains is INCONCLUSIVE, with the trials needed,
  EXPECT_LE(beyond.same, 4);    // and hardly ever called the same
  RecordProperty("found_of_400_margin_3_percent", beyond.worse);
  EXPECT_GE(Simulate({.effect = 0.90, .margin = 0.03}, 400, Seed{6}).worse, 380);
}

TEST(CompareCalibrationTest, PairingFindsWhatDriftHides) {
  const Tally tally = Simulate({.drift = 0.10, .effect = 0.90}, 200, Seed{7});
  EXPECT_GE(tally.worse, 150);
}

}  // namespace
}  // namespace labrack::compare
