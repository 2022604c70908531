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
  judgement.test = {.p = 0.002, .separated = true};
  judgement.student_p = 0.001;
  return judgement;
}

v1::ComparisonVerdict VerdictOf(const Judgement& judgement, bool lower_is_better = false) {
  return Rule(judgement, {.lower_is_better = lower_is_better, .margin = 0.03}, 0.01, 0.01, 1)
      .verdict;
}

TEST(CompareVerdictTest, TheIntervalAndTheMarginDecide) {
  EXPECT_EQ(VerdictOf(With(1.04, 1.10, 1.2)), v1::COMPARISON_VERDICT_BETTER);
  EXPECT_EQ(VerdictOf(With(1.04, 1.10, 1.2), true), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(VerdictOf(With(0.8, 0.9, 0.96)), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(VerdictOf(With(0.8, 0.9, 0.96), true), v1::COMPARISON_VERDICT_BETTER);
  EXPECT_EQ(VerdictOf(With(0.98, 1.00, 1.02)), v1::COMPARISON_VERDICT_SAME);
  EXPECT_EQ(VerdictOf(With(1.01, 1.02, 1.025)), v1::COMPARISON_VERDICT_SAME);
  EXPECT_EQ(VerdictOf(With(1.01, 1.04, 1.08)), v1::COMPARISON_VERDICT_INCONCLUSIVE);
  EXPECT_EQ(VerdictOf(With(0.9, 1.0, 1.1)), v1::COMPARISON_VERDICT_INCONCLUSIVE);
  EXPECT_EQ(VerdictOf(With(1.03, 1.1, 1.2)), v1::COMPARISON_VERDICT_INCONCLUSIVE);  // not beyond
}

TEST(CompareVerdictTest, FewerThanFourTrialsNeverDecide) {
  for (std::size_t trials : {1u, 2u, 3u}) {
    const Ruling ruling = Rule(With(2, 3, 4, trials), {.margin = 0.03}, 0.001, 0.001, 1);
    EXPECT_EQ(ruling.verdict, v1::COMPARISON_VERDICT_INCONCLUSIVE);
    EXPECT_THAT(ruling.reason, HasSubstr("smoke test only"));
    EXPECT_EQ(ruling.trials_needed, 6u);
  }
  EXPECT_EQ(Rule(With(2, 3, 4, 4), {.margin = 0.03}, 0.001, 0.001, 1).verdict,
            v1::COMPARISON_VERDICT_BETTER);
}

TEST(CompareVerdictTest, AmongManyTestsChanceIsNoFinding) {
  Judgement judgement = With(1.04, 1.1, 1.2);
  judgement.test.separated = false;
  const Ruling ruling = Rule(judgement, {.margin = 0.03}, 0.3, 0.2, 24);
  EXPECT_EQ(ruling.verdict, v1::COMPARISON_VERDICT_INCONCLUSIVE);
  EXPECT_THAT(ruling.reason, HasSubstr("among 24 tests"));
  // Separated arms: the ranks can say no more, the distance can.
  judgement.test.separated = true;
  EXPECT_EQ(Rule(judgement, {.margin = 0.03}, 0.3, 0.001, 24).verdict,
            v1::COMPARISON_VERDICT_BETTER);
  EXPECT_EQ(Rule(judgement, {.margin = 0.03}, 0.3, 0.2, 24).verdict,
            v1::COMPARISON_VERDICT_INCONCLUSIVE);
}

TEST(CompareVerdictTest, SaysWhatIsMissingAndHowManyTrialsThatTakes) {
  const Ruling ruling = Rule(With(1.01, 1.05, 1.09), {.margin = 0.03}, 0.01, 0.01, 1);
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
  Arms arms = MakeArms(base, test);
  EXPECT_TRUE(arms.paired);
  EXPECT_EQ(arms.test[0], 200);  // of repeat 0
  base.pop_back();
  arms = MakeArms(base, test);
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
    std::vector<double> p;
    std::vector<double> student;
    for (std::size_t k = 0; k < stream.tests; ++k) {
      Series base;
      Series test;
      for (std::uint32_t repeat = 0; repeat < stream.trials; ++repeat) {
        const double shared = 1000 * std::exp(stream.drift * StandardNormal(random));
        base.push_back({repeat, shared * std::exp(stream.variation * StandardNormal(random))});
        test.push_back(
            {repeat, shared * std::exp(stream.variation * StandardNormal(random)) * stream.effect});
      }
      judgements.push_back(Judge(base, test, Seed{random.Next()}));
      p.push_back(judgements.back().test.p);
      student.push_back(judgements.back().student_p);
    }
    p = Holm(p);
    student = Holm(student);
    const int before = tally.alarms();
    for (std::size_t k = 0; k < stream.tests; ++k) {
      const Ruling ruling =
          Rule(judgements[k], {.margin = stream.margin}, p[k], student[k], stream.tests);
      tally.better += ruling.verdict == v1::COMPARISON_VERDICT_BETTER ? 1 : 0;
      tally.worse += ruling.verdict == v1::COMPARISON_VERDICT_WORSE ? 1 : 0;
      tally.same += ruling.verdict == v1::COMPARISON_VERDICT_SAME ? 1 : 0;
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
