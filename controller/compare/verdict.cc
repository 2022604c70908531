#include "controller/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "storage/base/check.h"

namespace labrack::compare {
namespace {

constexpr double kAlpha = 0.05;
constexpr std::uint32_t kTrialsOfAGate = 6;

bool Known(const Interval& interval) {
  return std::isfinite(interval.low) && std::isfinite(interval.high);
}

std::string NeededText(std::uint32_t needed, std::size_t have) {
  if (needed == 0 || needed <= have) return "";
  if (needed >= kTrialsNeededMax) return fmt::format("; {} trials or more would be needed", needed);
  return fmt::format("; about {} trials in all would settle it (80 % power)", needed);
}

// The bound that the interval would have to get clear of.
double NearestBound(const Judgement& judgement, const Claim& claim) {
  if (claim.low <= 0) return claim.high;
  if (!std::isfinite(claim.high)) return claim.low;
  return std::abs(std::log(judgement.ratio / claim.high)) <
                 std::abs(std::log(judgement.ratio / claim.low))
             ? claim.high
             : claim.low;
}

Ruling Unclear(const Judgement& judgement, const Claim& claim) {
  const std::size_t have = std::min(judgement.base_trials, judgement.trials);
  Ruling ruling;
  const bool crosses_one = judgement.interval.low <= 1 && judgement.interval.high >= 1;
  ruling.trials_needed = TrialsNeeded(judgement, NearestBound(judgement, claim));
  if (claim.margin < 0) {
    const double bound = judgement.interval.low < claim.low ? claim.low : claim.high;
    ruling.reason = fmt::format("the interval holds {:.3g}x", bound);
  } else if (claim.margin == 0) {
    ruling.reason = "the interval holds 1";
  } else if (crosses_one) {
    ruling.reason =
        fmt::format("the interval holds 1 and crosses the {:.3g} % margin", claim.margin * 100);
  } else {
    ruling.reason = fmt::format("the interval crosses the {:.3g} % margin", claim.margin * 100);
  }
  ruling.reason += NeededText(ruling.trials_needed, have);
  return ruling;
}

// By ranks, or by the distance where ranks can say no more.
bool IsSure(const Chance& adjusted) {
  return adjusted.test.p <= kAlpha || (adjusted.test.separated && adjusted.student_p <= kAlpha);
}

Ruling MayBeChance(const Claim& claim, const Chance& adjusted, std::size_t tests) {
  const std::string what = claim.margin < 0 ? "bound" : "margin";
  if (tests > 1) {
    return {.reason = fmt::format("the interval is clear of the {}, but among {} tests that can be "
                                  "chance (Holm: p {:.2g})",
                                  what, tests, adjusted.test.p)};
  }
  return {.reason = fmt::format("the interval is clear of the {}, but the ranks may be chance (p "
                                "{:.2g})",
                                what, adjusted.test.p)};
}

}  // namespace

Arms MakeArms(const Series& base, const Series& test, Repeats repeats) {
  std::map<std::uint32_t, double> base_by_repeat;
  std::map<std::uint32_t, double> test_by_repeat;
  for (const TrialValue& trial : base) base_by_repeat[trial.repeat] = trial.value;
  for (const TrialValue& trial : test) test_by_repeat[trial.repeat] = trial.value;
  Arms arms;
  for (const auto& [repeat, value] : base_by_repeat) {
    const auto partner = test_by_repeat.find(repeat);
    if (partner == test_by_repeat.end()) continue;
    arms.base.push_back(value);
    arms.test.push_back(partner->second);
  }
  arms.paired = repeats == Repeats::kShared && arms.base.size() >= kPairsMin;
  if (arms.paired) return arms;
  arms = Arms();
  for (const TrialValue& trial : base) arms.base.push_back(trial.value);
  for (const TrialValue& trial : test) arms.test.push_back(trial.value);
  return arms;
}

Chance ChanceAt(const Arms& arms, double ratio) {
  Arms scaled = arms;
  for (double& value : scaled.base) value *= ratio;
  return {.test = RankTest(scaled), .student_p = StudentP(scaled)};
}

std::vector<Chance> HolmAdjusted(std::vector<Chance> family) {
  std::vector<double> ranks;
  std::vector<double> student;
  for (const Chance& chance : family) {
    ranks.push_back(chance.test.p);
    student.push_back(chance.student_p);
  }
  ranks = Holm(ranks);
  student = Holm(student);
  for (std::size_t i = 0; i < family.size(); ++i) {
    family[i].test.p = ranks[i];
    family[i].student_p = student[i];
  }
  return family;
}

Judgement Judge(const Series& base, const Series& test, Repeats repeats, Seed seed) {
  Judgement judgement;
  judgement.arms = MakeArms(base, test, repeats);
  const Arms& arms = judgement.arms;
  LABRACK_CHECK(!arms.base.empty() && !arms.test.empty());
  judgement.base_median = Median(arms.base);
  judgement.median = Median(arms.test);
  judgement.ratio = judgement.median / judgement.base_median;
  judgement.interval = RatioInterval(arms, seed);
  judgement.variation = Variation(arms);
  judgement.base_trials = arms.base.size();
  judgement.trials = arms.test.size();
  judgement.paired = arms.paired;
  judgement.detectable =
      std::min(arms.base.size(), arms.test.size()) < 2
          ? std::numeric_limits<double>::quiet_NaN()
          : DetectableEffect(judgement.variation, arms.base.size(), arms.test.size());
  judgement.chance = ChanceAt(arms, 1);
  return judgement;
}

Claim RowClaim(double margin) { return {.low = 1 - margin, .high = 1 + margin, .margin = margin}; }

Claim GateClaim(double low, double high) {
  return {.low = low, .high = high, .null_low = low, .null_high = high};
}

Place PlaceOf(const Interval& interval, const Claim& claim) {
  if (!Known(interval)) return Place::kUnclear;
  if (interval.low > claim.high) return Place::kAbove;
  if (interval.high < claim.low) return Place::kBelow;
  return interval.low >= claim.low && interval.high <= claim.high ? Place::kInside
                                                                  : Place::kUnclear;
}

v1::ComparisonVerdict VerdictOf(Place place, bool lower_is_better) {
  switch (place) {
    case Place::kUnclear:
      return v1::COMPARISON_VERDICT_INCONCLUSIVE;
    case Place::kInside:
      return v1::COMPARISON_VERDICT_SAME;
    case Place::kAbove:
      return lower_is_better ? v1::COMPARISON_VERDICT_WORSE : v1::COMPARISON_VERDICT_BETTER;
    case Place::kBelow:
      return lower_is_better ? v1::COMPARISON_VERDICT_BETTER : v1::COMPARISON_VERDICT_WORSE;
  }
  return v1::COMPARISON_VERDICT_INCONCLUSIVE;
}

std::uint32_t TrialsNeeded(const Judgement& judgement, double bound) {
  if (!Known(judgement.interval)) return 0;
  const double half = std::log(judgement.interval.high / judgement.interval.low) / 2;
  const double distance = std::abs(std::log(judgement.ratio / bound));
  if (distance <= 0 || half <= 0) return 0;
  constexpr double kPower = 2.8 / 1.96;  // so that the next interval is clear in 4 of 5 cases
  const double have = static_cast<double>(std::min(judgement.base_trials, judgement.trials));
  const double needed = have * (half * kPower / distance) * (half * kPower / distance);
  if (needed >= kTrialsNeededMax) return kTrialsNeededMax;
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(std::ceil(needed)), kTrialsOfAGate);
}

Ruling Rule(const Judgement& judgement, const Claim& claim, const Chance& adjusted,
            std::size_t tests) {
  const std::size_t fewest = std::min(judgement.base_trials, judgement.trials);
  if (fewest < kVerdictTrialsMin) {
    return {.reason = fmt::format("{} {} of a kind {} a smoke test only; {} trials make a gate",
                                  fewest, fewest == 1 ? "trial" : "trials",
                                  fewest == 1 ? "is" : "are", kTrialsOfAGate),
            .trials_needed = kTrialsOfAGate};
  }
  const Place place = PlaceOf(judgement.interval, claim);
  if (place == Place::kUnclear) return Unclear(judgement, claim);
  const bool two_ends = claim.margin >= 0 || (claim.low > 0 && std::isfinite(claim.high));
  if (place == Place::kInside && two_ends) return {.place = place, .reason = ""};
  if (!IsSure(adjusted)) return MayBeChance(claim, adjusted, tests);
  return {.place = place, .reason = ""};
}

}  // namespace labrack::compare
