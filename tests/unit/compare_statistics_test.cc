// Goal: the arithmetic is that of the books. Method: published examples (R's manual pages of
// wilcox.test, t.test and p.adjust; Holm 1979), closed forms, and the coverage of intervals over
// seeded simulations of distributions whose medians are known.
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/compare/statistics.h"
#include "tests/unit/noise.h"

namespace labrack::compare {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

std::vector<double> Exp(std::vector<double> values) {
  for (double& value : values) value = std::exp(value);
  return values;
}

TEST(CompareStatisticsTest, MedianAndLogDeviation) {
  EXPECT_EQ(Median(std::vector{3.0, 1.0, 2.0}), 2);
  EXPECT_EQ(Median(std::vector{4.0, 1.0, 2.0, 10.0}), 3);
  EXPECT_EQ(Median(std::vector{5.0}), 5);
  EXPECT_EQ(LogDeviation(std::vector{5.0}), 0);
  EXPECT_NEAR(LogDeviation(std::vector{std::exp(1.0), std::exp(3.0)}), std::sqrt(2.0), 1e-12);
}

// The smallest p that n against n trials can give is 2 / C(2n, n).
TEST(CompareStatisticsTest, MannWhitneyReachesItsPublishedMinima) {
  const std::pair<std::size_t, double> expected[] = {
      {3, 0.10}, {4, 0.0286}, {5, 0.0079}, {6, 0.0022}};
  for (const auto& [n, p] : expected) {
    std::vector<double> base;
    std::vector<double> test;
    for (std::size_t i = 0; i < n; ++i) {
      base.push_back(1 + static_cast<double>(i));
      test.push_back(100 + static_cast<double>(i));
    }
    EXPECT_NEAR(MannWhitneyP(base, test), p, 5e-5) << "n " << n;
    EXPECT_EQ(MannWhitneyP(base, test), MannWhitneyP(test, base));
  }
}

TEST(CompareStatisticsTest, MannWhitneyAgreesWithRsExample) {
  // Permeability constants of the human chorioamnion (Hollander and Wolfe 1973, 69 f.): one-sided
  // exact p 0.1272.
  const std::vector<double> at_term = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const std::vector<double> early = {1.15, 0.88, 0.90, 0.74, 1.21};
  EXPECT_NEAR(MannWhitneyP(early, at_term), 2 * 0.1272, 1e-4);
}

TEST(CompareStatisticsTest, MannWhitneyOfTiesAndOfManyValues) {
  EXPECT_EQ(MannWhitneyP(std::vector{1.0, 1.0, 1.0}, std::vector{1.0, 1.0, 1.0}), 1);
  // {1,2} against {2,3}: of the 6 choices, sums of midranks 3.5 6 3.5 ... ; two lie as far out.
  EXPECT_NEAR(MannWhitneyP(std::vector{1.0, 2.0}, std::vector{2.0, 3.0}), 4.0 / 6, 1e-12);
  // The approximation joins the exact distribution: 30 against 30, then 31 against 30.
  std::vector<double> base;
  std::vector<double> test;
  for (int i = 0; i < 30; ++i) {
    base.push_back(i);
    test.push_back(i + 6.5);
  }
  const double exact = MannWhitneyP(base, test);
  base.push_back(14.25);
  EXPECT_NEAR(MannWhitneyP(base, test), exact, 0.005);
  EXPECT_LT(exact, 0.05);
}

TEST(CompareStatisticsTest, SignedRankAgreesWithRsExample) {
  // Hamilton depression scores (Hollander and Wolfe 1973, 29 f.): V = 40, one-sided p 0.01953.
  const std::vector<double> before = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const std::vector<double> after = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  std::vector<double> differences;
  for (std::size_t i = 0; i < before.size(); ++i) differences.push_back(before[i] - after[i]);
  EXPECT_NEAR(SignedRankP(differences), 2 * 0.01953, 1e-5);
  EXPECT_EQ(SignedRankP(std::vector{0.0, 0.0}), 1);
  EXPECT_NEAR(SignedRankP(std::vector{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}), 2 / 64.0, 1e-12);
}

TEST(CompareStatisticsTest, StudentAgreesWithRsExample) {
  // Sleep data (Student 1908): Welch p 0.07939, paired p 0.002833.
  Arms arms{.base = Exp({0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}),
            .test = Exp({1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}),
            .paired = false};
  EXPECT_NEAR(StudentP(arms), 0.07939, 1e-5);
  arms.paired = true;
  EXPECT_NEAR(StudentP(arms), 0.002833, 1e-6);
  EXPECT_EQ(StudentP({.base = {1}, .test = {2}}), 1);
  EXPECT_EQ(StudentP({.base = {1, 1}, .test = {2, 2}}), 0);
  EXPECT_EQ(StudentP({.base = {1, 1}, .test = {1, 1}}), 1);
}

TEST(CompareStatisticsTest, HolmAgreesWithRsExample) {
  EXPECT_THAT(Holm(std::vector{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12),
                          DoubleNear(0.02, 1e-12)));
  EXPECT_THAT(Holm(std::vector{0.9, 0.8}), ElementsAre(1, 1));
  EXPECT_TRUE(Holm({}).empty());
}

TEST(CompareStatisticsTest, DetectableEffectIsThatOfThePublishedTable) {
  EXPECT_NEAR(DetectableEffect(0.03, 5, 5), 0.053, 5e-4);
  EXPECT_NEAR(DetectableEffect(0.03, 10, 10), 0.038, 5e-4);
  EXPECT_NEAR(DetectableEffect(0.10, 10, 10), 0.125, 5e-4);
}

TEST(CompareStatisticsTest, PairsTakeOutWhatRepeatsShare) {
  const Arms shared{.base = {100, 200, 50}, .test = {110, 220, 55}, .paired = true};
  EXPECT_NEAR(Variation(shared), 0, 1e-12);
  Arms apart = shared;
  apart.paired = false;
  EXPECT_GT(Variation(apart), 0.5);
}

TEST(CompareStatisticsTest, IntervalsOfFewTrialsAreWideOrAbsent) {
  EXPECT_TRUE(std::isnan(RatioInterval({.base = {1}, .test = {2}}, Seed{1}).low));
  EXPECT_TRUE(std::isnan(MedianInterval(std::vector{1.0, 2.0, 3.0, 4.0, 5.0}).low));
  // Three against three: Student's interval on logarithms, t(4) = 2.776, around the median ratio.
  const Arms three{.base = Exp({-0.1, 0, 0.1}), .test = Exp({0.9, 1, 1.1})};
  const double half = 2.7764 * std::sqrt(2 * 0.01 / 3);
  const Interval interval = RatioInterval(three, Seed{1});
  EXPECT_NEAR(std::log(interval.low), 1 - half, 1e-4);
  EXPECT_NEAR(std::log(interval.high), 1 + half, 1e-4);
}

TEST(CompareStatisticsTest, OneSeedGivesOneInterval) {
  const Arms arms{.base = {1, 2, 3, 4, 5}, .test = {2, 3, 4, 5, 6}};
  EXPECT_EQ(RatioInterval(arms, Seed{5}).low, RatioInterval(arms, Seed{5}).low);
  const Arms same{.base = {2, 2, 2, 2}, .test = {4, 4, 4, 4}};
  EXPECT_EQ(RatioInterval(same, Seed{5}).low, 2);
  EXPECT_EQ(RatioInterval(same, Seed{5}).high, 2);
}

// Share of 300 simulated comparisons whose interval holds the true ratio.
double Coverage(std::size_t n, bool paired, double drift,
                const std::function<double(Random&)>& noise, double true_ratio) {
  constexpr int kComparisons = 300;
  Random random(Seed{n * 7 + (paired ? 1 : 0)});
  int held = 0;
  for (int i = 0; i < kComparisons; ++i) {
    Arms arms{.base = {}, .test = {}, .paired = paired};
    for (std::size_t k = 0; k < n; ++k) {
      const double shared = std::exp(drift * StandardNormal(random));
      arms.base.push_back(shared * noise(random));
      arms.test.push_back(shared * noise(random) * true_ratio);
    }
    const Interval interval = RatioInterval(arms, Seed{static_cast<std::uint64_t>(i)});
    held += interval.low <= true_ratio && true_ratio <= interval.high ? 1 : 0;
  }
  return static_cast<double>(held) / kComparisons;
}

// 300 draws of 95 % have a standard deviation of 1.3 points.
TEST(CompareStatisticsTest, IntervalsCoverTheTruthAboutNineteenTimesInTwenty) {
  const auto normal = [](Random& random) { return std::exp(0.03 * StandardNormal(random)); };
  const auto skewed = [](Random& random) {
    return std::exp(-0.05 * std::exp(0.8 * StandardNormal(random)));
  };
  for (const auto& noise : {std::function<double(Random&)>(normal), {skewed}}) {
    EXPECT_GT(Coverage(4, false, 0, noise, 1.2), 0.90);
    EXPECT_GT(Coverage(6, true, 0, noise, 1.2), 0.91);
    EXPECT_GT(Coverage(10, true, 0, noise, 1.2), 0.93);
    EXPECT_GT(Coverage(10, true, 0.10, noise, 1.2), 0.93);
    EXPECT_GT(Coverage(10, false, 0.10, noise, 1.2), 0.98);  // why repeats are paired
  }
}

// Conover, Practical Nonparametric Statistics: from 6 to 8 values the outermost, from 9 to 11 the
// second from either end, at 12 the third.
TEST(CompareStatisticsTest, MedianIntervalEndsAtTheBinomialRanks) {
  const std::pair<int, double> lowest[] = {{6, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3}, {20, 6}};
  for (const auto& [n, low] : lowest) {
    std::vector<double> values;
    for (int i = n; i >= 1; --i) values.push_back(i);
    EXPECT_EQ(MedianInterval(values).low, low) << n << " values";
    EXPECT_EQ(MedianInterval(values).high, n + 1 - low) << n << " values";
  }
}

// Of a skewed distribution, as latencies are. 3,000 draws of 95 % have a deviation of 0.4 points.
TEST(CompareStatisticsTest, MedianIntervalCoversTheTruthNineteenTimesInTwenty) {
  constexpr int kDraws = 3000;
  for (std::size_t n : {6u, 8u, 10u, 20u}) {
    Random random(Seed{n});
    int held = 0;
    for (int i = 0; i < kDraws; ++i) {
      std::vector<double> values;
      for (std::size_t k = 0; k < n; ++k) values.push_back(std::exp(StandardNormal(random)));
      const Interval interval = MedianInterval(values);
      held += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
    }
    EXPECT_GT(static_cast<double>(held) / kDraws, 0.94) << n << " trials";
  }
}

}  // namespace
}  // namespace labrack::compare
