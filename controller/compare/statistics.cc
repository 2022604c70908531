#include "controller/compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "storage/base/check.h"

namespace labrack::compare {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kAlpha = 0.05;

double MedianInPlace(std::vector<double>& values) {
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  const double lower =
      *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle));
  return (lower + upper) / 2;
}

std::vector<double> Logs(std::span<const double> values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (double value : values) logs.push_back(std::log(value));
  return logs;
}

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Variance(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

std::vector<double> PairLogs(const Arms& arms) {
  LABRACK_CHECK(arms.base.size() == arms.test.size());
  std::vector<double> logs;
  logs.reserve(arms.base.size());
  for (std::size_t i = 0; i < arms.base.size(); ++i) {
    logs.push_back(std::log(arms.test[i] / arms.base[i]));
  }
  return logs;
}

// Linear between the two nearest of the sorted values (Hyndman and Fan's type 7).
double Quantile(std::span<const double> sorted, double quantile) {
  const double place = quantile * static_cast<double>(sorted.size() - 1);
  const auto index = static_cast<std::size_t>(place);
  if (index + 1 >= sorted.size()) return sorted.back();
  const double share = place - static_cast<double>(index);
  return sorted[index] * (1 - share) + sorted[index + 1] * share;
}

Interval PercentileInterval(std::vector<double>& resampled) {
  std::sort(resampled.begin(), resampled.end());
  return {Quantile(resampled, kAlpha / 2), Quantile(resampled, 1 - kAlpha / 2)};
}

void Resample(std::span<const double> values, Random& random, std::vector<double>& into) {
  for (double& value : into) value = values[random.Below(values.size())];
}

// Mean and standard error of the log ratio, with Welch's degrees of freedom.
struct LogRatio {
  double mean = 0;
  double error = 0;
  double freedom = 0;
};

LogRatio LogRatioOf(const Arms& arms) {
  if (arms.paired) {
    const std::vector<double> logs = PairLogs(arms);
    const auto n = static_cast<double>(logs.size());
    return {Mean(logs), std::sqrt(Variance(logs) / n), n - 1};
  }
  const std::vector<double> base = Logs(arms.base);
  const std::vector<double> test = Logs(arms.test);
  const double base_part = Variance(base) / static_cast<double>(base.size());
  const double test_part = Variance(test) / static_cast<double>(test.size());
  const double sum = base_part + test_part;
  const double denominator = base_part * base_part / static_cast<double>(base.size() - 1) +
                             test_part * test_part / static_cast<double>(test.size() - 1);
  const double freedom = denominator > 0 ? sum * sum / denominator
                                         : static_cast<double>(base.size() + test.size() - 2);
  return {Mean(test) - Mean(base), std::sqrt(sum), freedom};
}

Interval StudentInterval(const Arms& arms, double ratio) {
  const LogRatio log_ratio = LogRatioOf(arms);
  const boost::math::students_t distribution(log_ratio.freedom);
  const double half =
      boost::math::quantile(boost::math::complement(distribution, kAlpha / 2)) * log_ratio.error;
  return {ratio * std::exp(-half), ratio * std::exp(half)};
}

// Twice the midranks of `values`, so that they are whole numbers; and the sum over ties of t^3 - t.
struct DoubledRanks {
  std::vector<std::size_t> ranks;
  double ties = 0;
};

DoubledRanks RanksOf(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t index) { return values[index]; });
  DoubledRanks result{.ranks = std::vector<std::size_t>(values.size())};
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) result.ranks[order[i]] = begin + end + 1;
    const auto tied = static_cast<double>(end - begin);
    result.ties += tied * tied * tied - tied;
    begin = end;
  }
  return result;
}

// Share of `ways` (by doubled sum) at least as far from the middle as `sum`.
double TwoSided(std::span<const double> ways, double middle, double sum) {
  constexpr double kSlack = 1e-9;
  double extreme = 0;
  double all = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    all += ways[i];
    if (std::abs(static_cast<double>(i) - middle) >= std::abs(sum - middle) - kSlack) {
      extreme += ways[i];
    }
  }
  return std::min(1.0, extreme / all);
}

double NormalTwoSided(double distance, double variance, double continuity) {
  if (variance <= 0) return 1;
  const double z = std::max(0.0, distance - continuity) / std::sqrt(variance);
  return std::min(1.0, 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), z)));
}

}  // namespace

double Median(std::span<const double> values) {
  LABRACK_CHECK(!values.empty());
  std::vector<double> copy(values.begin(), values.end());
  return MedianInPlace(copy);
}

double LogDeviation(std::span<const double> values) { return std::sqrt(Variance(Logs(values))); }

Interval RatioInterval(const Arms& arms, Seed seed) {
  const std::size_t fewest = std::min(arms.base.size(), arms.test.size());
  if (fewest < 2) return {kNaN, kNaN};
  if (fewest < kBootstrapTrialsMin) {
    return StudentInterval(arms, Median(arms.test) / Median(arms.base));
  }
  Random random(seed);
  std::vector<double> base(arms.base.size());
  std::vector<double> test(arms.test.size());
  std::vector<double> ratios;
  ratios.reserve(kResamples);
  for (int i = 0; i < kResamples; ++i) {
    if (arms.paired) {
      for (std::size_t k = 0; k < base.size(); ++k) {
        const std::size_t repeat = random.Below(base.size());
        base[k] = arms.base[repeat];
        test[k] = arms.test[repeat];
      }
    } else {
      Resample(arms.base, random, base);
      Resample(arms.test, random, test);
    }
    ratios.push_back(std::log(MedianInPlace(test) / MedianInPlace(base)));
  }
  const Interval logs = PercentileInterval(ratios);
  return {std::exp(logs.low), std::exp(logs.high)};
}

Interval MedianInterval(std::span<const double> values) {
  if (values.size() < kMedianTrialsMin) return {kNaN, kNaN};
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  // The median lies below the k-th value (from 0) with P(at most k of n lie below it).
  const boost::math::binomial distribution(static_cast<double>(sorted.size()), 0.5);
  std::size_t k = 0;
  while (boost::math::cdf(distribution, static_cast<double>(k + 1)) <= kAlpha / 2) ++k;
  return {sorted[k], sorted[sorted.size() - 1 - k]};
}

double MannWhitneyP(std::span<const double> base, std::span<const double> test) {
  std::vector<double> all(base.begin(), base.end());
  all.insert(all.end(), test.begin(), test.end());
  const DoubledRanks ranked = RanksOf(all);
  const std::size_t n = all.size();
  const auto total = static_cast<double>(n);
  const auto test_count = static_cast<double>(test.size());
  double sum = 0;
  for (std::size_t i = base.size(); i < n; ++i) sum += static_cast<double>(ranked.ranks[i]);
  const double middle = test_count * (total + 1);  // doubled
  if (n > kExactMax) {
    const double base_count = static_cast<double>(base.size());
    const double variance =
        base_count * test_count / 12 * ((total + 1) - ranked.ties / (total * (total - 1)));
    return NormalTwoSided(std::abs(sum - middle) / 2, variance, 0.5);
  }
  // ways[k][s]: choices of k of the values seen so far with doubled rank sum s.
  const std::size_t sums = n * (n + 1) + 1;
  std::vector<std::vector<double>> ways(test.size() + 1, std::vector<double>(sums, 0.0));
  ways[0][0] = 1;
  for (std::size_t rank : ranked.ranks) {
    for (std::size_t k = test.size(); k >= 1; --k) {
      for (std::size_t s = rank; s < sums; ++s) ways[k][s] += ways[k - 1][s - rank];
    }
  }
  return TwoSided(ways[test.size()], middle, sum);
}

double SignedRankP(std::span<const double> differences) {
  std::vector<double> sizes;
  std::vector<bool> positive;
  for (double difference : differences) {
    if (difference == 0) continue;
    sizes.push_back(std::abs(difference));
    positive.push_back(difference > 0);
  }
  if (sizes.empty()) return 1;
  const DoubledRanks ranked = RanksOf(sizes);
  double sum = 0;
  double all = 0;
  double squares = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto rank = static_cast<double>(ranked.ranks[i]);
    all += rank;
    squares += rank * rank;
    if (positive[i]) sum += rank;
  }
  if (sizes.size() > kExactMax) {
    return NormalTwoSided(std::abs(sum - all / 2) / 2, squares / 16, 0.5);
  }
  std::vector<double> ways(static_cast<std::size_t>(all) + 1, 0.0);
  ways[0] = 1;
  for (std::size_t rank : ranked.ranks) {
    for (std::size_t s = ways.size() - 1; s >= rank; --s) ways[s] += ways[s - rank];
  }
  return TwoSided(ways, all / 2, sum);
}

double StudentP(const Arms& arms) {
  if (std::min(arms.base.size(), arms.test.size()) < 2) return 1;
  const LogRatio log_ratio = LogRatioOf(arms);
  if (log_ratio.error <= 0) return log_ratio.mean == 0 ? 1 : 0;
  const boost::math::students_t distribution(log_ratio.freedom);
  const double t = std::abs(log_ratio.mean) / log_ratio.error;
  return std::min(1.0, 2 * boost::math::cdf(boost::math::complement(distribution, t)));
}

Test RankTest(const Arms& arms) {
  if (arms.paired) {
    const std::vector<double> logs = PairLogs(arms);
    const auto [least, most] = std::ranges::minmax(logs);
    return {.p = SignedRankP(logs), .separated = least > 0 || most < 0};
  }
  const auto [base_least, base_most] = std::ranges::minmax(arms.base);
  const auto [test_least, test_most] = std::ranges::minmax(arms.test);
  return {.p = MannWhitneyP(arms.base, arms.test),
          .separated = test_least > base_most || test_most < base_least};
}

std::vector<double> Holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Equal ones by place, so that the result does not hang on the sort.
  std::ranges::sort(order, {},
                    [&](std::size_t index) { return std::pair(p_values[index], index); });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double factor = static_cast<double>(p_values.size() - i);
    largest = std::max(largest, std::min(1.0, factor * p_values[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

double DetectableEffect(double variation, std::size_t base_trials, std::size_t test_trials) {
  constexpr double kPowerFactor = 2.8;  // 1.96 for 5 %, two-sided, and 0.84 for 80 % power
  return kPowerFactor * variation *
         std::sqrt(1.0 / static_cast<double>(base_trials) + 1.0 / static_cast<double>(test_trials));
}

double Variation(const Arms& arms) {
  if (arms.paired) return std::sqrt(Variance(PairLogs(arms)) / 2);
  const double base = Variance(Logs(arms.base));
  const double test = Variance(Logs(arms.test));
  const double base_freedom = static_cast<double>(arms.base.size()) - 1;
  const double test_freedom = static_cast<double>(arms.test.size()) - 1;
  if (base_freedom + test_freedom <= 0) return 0;
  return std::sqrt((base * base_freedom + test * test_freedom) / (base_freedom + test_freedom));
}

}  // namespace labrack::compare
