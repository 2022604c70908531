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

// What the interval alone says. Bounds belong to "not clear".
v1::ComparisonVerdict ByInterval(const Interval& interval, const Goal& goal) {
  const double below = 1 - goal.margin;
  const double above = 1 + goal.margin;
  if (interval.low > above) {
    return goal.lower_is_better ? v1::COMPARISON_VERDICT_WORSE : v1::COMPARISON_VERDICT_BETTER;
  }
  if (interval.high < below) {
    return goal.lower_is_better ? v1::COMPARISON_VERDICT_BETTER : v1::COMPARISON_VERDICT_WORSE;
  }
  if (interval.low >= below && interval.high <= above) return v1::COMPARISON_VERDICT_SAME;
  return v1::COMPARISON_VERDICT_INCONCLUSIVE;
}

std::string NeededText(std::uint32_t needed, std::size_t have) {
  if (needed == 0 || needed <= have) return "";
  if (needed >= kTrialsNeededMax) return fmt::format("; {} trials or more would be needed", needed);
  return fmt::format("; about {} trials in all would settle it (80 % power)", needed);
}

Ruling Unclear(const Judgement& judgement, const Goal& goal) {
  const std::size_t have = std::min(judgement.base_trials, judgement.trials);
  Ruling ruling;
  const bool crosses_one = judgement.interval.low <= 1 && judgement.interval.high >= 1;
  const double above = 1 + goal.margin;
  const double below = 1 - goal.margin;
  const double nearest =
      std::abs(std::log(judgement.ratio / above)) < std::abs(std::log(judgement.ratio / below))
          ? above
          : below;
  ruling.trials_needed = TrialsNeeded(judgement, nearest);
  if (goal.margin <= 0) {
    ruling.reason = "the interval holds 1";
  } else if (crosses_one) {
    ruling.reason =
        fmt::format("the interval holds 1 and crosses the {:.3g} % margin", goal.margin * 100);
  } else {
    ruling.reason = fmt::format("the interval crosses the {:.3g} % margin", goal.margin * 100);
  }
  ruling.reason += NeededText(ruling.trials_needed, have);
  return ruling;
}

}  // namespace

Arms MakeArms(const Series& base, const Series& test) {
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
  arms.paired = arms.base.size() >= kPairsMin;
  if (arms.paired) return arms;
  arms = Arms();
  for (const TrialValue& trial : base) arms.base.push_back(trial.value);
  for (const TrialValue& trial : test) arms.test.push_back(trial.value);
  return arms;
}

Judgement Judge(const Series& base, const Series& test, Seed seed) {
  const Arms arms = MakeArms(base, test);
  LABRACK_CHECK(!arms.base.empty() && !arms.test.empty());
  Judgement judgement;
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
  judgement.test = RankTest(arms);
  judgement.student_p = StudentP(arms);
  return judgement;
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

Ruling Rule(const Judgement& judgement, const Goal& goal, double p_adjusted,
            double student_adjusted, std::size_t tests) {
  const std::size_t fewest = std::min(judgement.base_trials, judgement.trials);
  if (fewest < kVerdictTrialsMin) {
    return {.verdict = v1::COMPARISON_VERDICT_INCONCLUSIVE,
            .reason = fmt::format("{} {} of a kind {} a smoke test only; {} trials make a gate",
                                  fewest, fewest == 1 ? "trial" : "trials",
                                  fewest == 1 ? "is" : "are", kTrialsOfAGate),
            .trials_needed = kTrialsOfAGate};
  }
  const v1::ComparisonVerdict verdict = ByInterval(judgement.interval, goal);
  if (verdict == v1::COMPARISON_VERDICT_INCONCLUSIVE) return Unclear(judgement, goal);
  if (verdict == v1::COMPARISON_VERDICT_SAME) return {.verdict = verdict, .reason = ""};

  const bool holds =
      p_adjusted <= kAlpha || (judgement.test.separated && student_adjusted <= kAlpha);
  if (holds) return {.verdict = verdict, .reason = ""};
  Ruling ruling;
  if (tests > 1) {
    ruling.reason = fmt::format(
        "the interval is clear of the margin, but among {} tests that can be chance (Holm: p "
        "{:.2g})",
        tests, p_adjusted);
  } else {
    ruling.reason = fmt::format(
        "the interval is clear of the margin, but the ranks may be chance (p {:.2g})", p_adjusted);
  }
  return ruling;
}

}  // namespace labrack::compare
