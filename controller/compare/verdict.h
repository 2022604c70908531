// From two arms of trials to a verdict.
//
//              1-margin   1   1+margin
//                  |      |      |
//                  |      |      |   [---#---]      BETTER   wholly beyond the margin
//        [--#--]   |      |      |                  WORSE
//                  |  [---#--]   |                  SAME     wholly inside
//                  |   [--|--#---|--]               INCONCLUSIVE: more trials would tell
//
// (of a metric that is better when higher; mirrored otherwise). BETTER and WORSE must also hold
// among all tests of the report (Holm): either by ranks, or, where the arms are separated and ranks
// have no more to say, by the distance (Student's t on the logarithms). With fewer than
// kVerdictTrialsMin trials an arm the verdict is always INCONCLUSIVE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/compare/statistics.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

constexpr std::size_t kVerdictTrialsMin = 4;
// Repeats that both arms have, from which on they are resampled together. With fewer, the interval
// of pairs is too narrow (it covers 88 % at 4; measured, see README.md).
constexpr std::size_t kPairsMin = 6;
constexpr std::uint32_t kTrialsNeededMax = 1000;  // beyond it, the estimate says only "many"

// One value a trial, with the repeat it belongs to.
struct TrialValue {
  std::uint32_t repeat = 0;
  double value = 0;
};
using Series = std::vector<TrialValue>;

// Paired when at least kPairsMin repeats have a trial in both; then trials without a partner are
// left out.
Arms MakeArms(const Series& base, const Series& test);

struct Judgement {
  double base_median = 0;
  double median = 0;
  double ratio = 0;       // median / base_median
  Interval interval;      // NaN below two trials an arm
  double variation = 0;   // noise between trials
  double detectable = 0;  // NaN below two trials an arm
  Test test;
  double student_p = 1;
  std::size_t base_trials = 0;
  std::size_t trials = 0;
  bool paired = false;
};

// Both series must have a value each, all finite and positive.
Judgement Judge(const Series& base, const Series& test, Seed seed);

struct Goal {
  bool lower_is_better = false;
  double margin = 0;
};

struct Ruling {
  v1::ComparisonVerdict verdict = v1::COMPARISON_VERDICT_INCONCLUSIVE;
  std::string reason;               // of INCONCLUSIVE
  std::uint32_t trials_needed = 0;  // an arm, in all; 0: not known
};

// `p_adjusted` and `student_adjusted`: Holm's, over the tests of the report.
Ruling Rule(const Judgement& judgement, const Goal& goal, double p_adjusted,
            double student_adjusted, std::size_t tests);

// Trials an arm after which an interval that is now `interval` would probably (80 %) lie clear of
// `bound`; 0 when that cannot be said.
std::uint32_t TrialsNeeded(const Judgement& judgement, double bound);

}  // namespace labrack::compare
