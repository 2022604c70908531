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
//
// Gates go through the same rule with bounds of their own. There chance is measured against the
// bound (is it really beyond 1.5x?), and Holm counts the parts of one gate: one part suffices to
// fail it. To pass, all parts must hold, each by itself, which needs no adjustment.
#pragma once

#include <cstdint>
#include <limits>
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

// Whether trials with the same repeat number stood next to each other. In one run they did (the
// plan interleaves the stacks); two runs were apart, and their numbers have nothing in common.
enum class Repeats { kShared, kApart };

// Paired when repeats are shared and at least kPairsMin of them have a trial in both; then trials
// without a partner are left out. Otherwise every trial counts.
Arms MakeArms(const Series& base, const Series& test, Repeats repeats);

// What chance alone would do if the ratio were a certain one. p-values only; the tests of one
// family are adjusted together.
struct Chance {
  Test test;
  double student_p = 1;
};
Chance ChanceAt(const Arms& arms, double ratio);
// Holm's over one family, both kinds of p.
std::vector<Chance> HolmAdjusted(std::vector<Chance> family);

struct Judgement {
  Arms arms;
  double base_median = 0;
  double median = 0;
  double ratio = 0;       // median / base_median
  Interval interval;      // NaN below two trials an arm
  double variation = 0;   // noise between trials
  double detectable = 0;  // NaN below two trials an arm
  Chance chance;          // of no difference at all
  std::size_t base_trials = 0;
  std::size_t trials = 0;
  bool paired = false;
};

// Both series must have a value each, all finite and positive.
Judgement Judge(const Series& base, const Series& test, Repeats repeats, Seed seed);

// Where a ratio is claimed to lie, and what chance is measured against when the interval lies
// beyond a bound: no difference for rows of a table, the bound itself for gates.
struct Claim {
  double low = 0;  // 0: no lower bound
  double high = std::numeric_limits<double>::infinity();
  double null_low = 1;
  double null_high = 1;
  double margin = -1;  // of a row: its bounds are 1 -+ margin; negative for gates
};
Claim RowClaim(double margin);
Claim GateClaim(double low, double high);

// Bounds belong to "inside".
enum class Place { kUnclear, kBelow, kInside, kAbove };
Place PlaceOf(const Interval& interval, const Claim& claim);

struct Ruling {
  Place place = Place::kUnclear;
  std::string reason;               // of kUnclear
  std::uint32_t trials_needed = 0;  // of kUnclear: an arm, in all; 0: not known
};

// The one rule for rows and gates. `adjusted`: at the null of the side where the interval lies,
// among `tests` tests. A range with two ends holds by its interval alone (equivalence).
Ruling Rule(const Judgement& judgement, const Claim& claim, const Chance& adjusted,
            std::size_t tests);

v1::ComparisonVerdict VerdictOf(Place place, bool lower_is_better);

// Trials an arm after which an interval that is now `interval` would probably (80 %) lie clear of
// `bound`; 0 when that cannot be said.
std::uint32_t TrialsNeeded(const Judgement& judgement, double bound);

}  // namespace labrack::compare
