// The arithmetic of comparisons, on plain numbers. One number is one trial: seconds and operations
// within a trial share a host, a layout and a minute, and are no replicates.
//
// All functions are pure; those that resample take a seed. Values must be finite and positive, and
// spans not empty, unless said otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/base/random.h"

namespace labrack::compare {

double Median(std::span<const double> values);

// Sample standard deviation of the logarithms: the coefficient of variation, to second order, and
// the same for a rate and for its inverse. 0 for fewer than two values.
double LogDeviation(std::span<const double> values);

struct Interval {
  double low = 0;
  double high = 0;
};

// Two arms. Paired: base[i] and test[i] come from the same repeat, and the arms are of one length.
struct Arms {
  std::vector<double> base;
  std::vector<double> test;
  bool paired = false;
};

// 95 % interval of median(test) / median(base), by the percentile bootstrap over whole trials
// (paired arms: over repeats, both values of a repeat together). Below kBootstrapTrialsMin trials
// an arm the bootstrap has too few different resamples to be honest, and Student's t on the
// logarithms is used instead. Nothing can be said below two trials: then both ends are NaN.
Interval RatioInterval(const Arms& arms, Seed seed);
constexpr std::size_t kBootstrapTrialsMin = 4;
constexpr int kResamples = 2000;

// Interval of one arm's median between two of its own values (the k-th from either end, k by the
// binomial distribution), which covers at least 95 % whatever the distribution: 96.9 % at 6 trials,
// where it is [least, most]. NaN below kMedianTrialsMin, where no two values are far enough apart;
// a bootstrap would give an interval there that covers 87 % at 4 trials.
Interval MedianInterval(std::span<const double> values);
constexpr std::size_t kMedianTrialsMin = 6;

// Exact two-sided p of the rank-sum test (Mann and Whitney 1947), ties by midranks; by the normal
// approximation with ties and continuity corrected above kExactMax values in all.
double MannWhitneyP(std::span<const double> base, std::span<const double> test);
// Exact two-sided p of the signed-rank test (Wilcoxon 1945) on differences, zeros dropped; 1 when
// nothing is left. By the normal approximation above kExactMax.
double SignedRankP(std::span<const double> differences);
constexpr std::size_t kExactMax = 60;

// Two-sided p of Student's t on the logarithms: Welch's for independent arms, of the pairs
// otherwise. 1 below two trials an arm. 0 when there is no noise at all and the arms differ.
double StudentP(const Arms& arms);

struct Test {
  double p = 1;
  // Every trial of one arm beats every trial of the other (its partner, when paired): the ranks can
  // say no more, however large the distance is.
  bool separated = false;
};
// Signed rank for paired arms, rank sum otherwise.
Test RankTest(const Arms& arms);

// Holm's step-down adjustment (1979), in the order given; at most 1, never below p.
std::vector<double> Holm(std::span<const double> p_values);

// The smallest effect, as a share, that so many trials an arm find with 80 % power at 5 %:
// 2.8 * cv * sqrt(1/n + 1/m), which is 2.8 * cv * sqrt(2/n) for equal arms.
double DetectableEffect(double variation, std::size_t base_trials, std::size_t test_trials);

// Noise between trials, comparable to a coefficient of variation: of the arms, pooled; for paired
// arms without what the two trials of a repeat have in common (deviation of the pairs / sqrt 2).
double Variation(const Arms& arms);

}  // namespace labrack::compare
