// Goal: percentiles are within 1 % of the exact ones over the whole range, and merging loses
// nothing. Method: seeded values over all magnitudes against a sorted copy; wire form there and
// back.
#include "storage/base/histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "proto/convert/convert.h"
#include "storage/base/random.h"

namespace labrack {
namespace {

std::vector<std::uint64_t> ManyMagnitudes(Seed seed, int count) {
  Random random(seed);
  std::vector<std::uint64_t> values;
  for (int i = 0; i < count; ++i) {
    const double exponent = random.Unit() * std::log2(3.6e12);
    values.push_back(static_cast<std::uint64_t>(std::exp2(exponent)));
  }
  return values;
}

TEST(HistogramTest, EveryIndexHoldsItsOwnBounds) {
  for (std::size_t index = 0; index < Histogram::IndexOf(Histogram::kValueMax); ++index) {
    ASSERT_EQ(Histogram::IndexOf(Histogram::LowerBound(index)), index);
    ASSERT_EQ(Histogram::IndexOf(Histogram::UpperBound(index)), index);
    ASSERT_EQ(Histogram::LowerBound(index + 1), Histogram::UpperBound(index) + 1);
  }
  EXPECT_LT(Histogram::IndexOf(Histogram::kValueMax), Histogram::kBucketCount);
}

TEST(HistogramTest, PercentilesAreWithinOnePercentOfExactOnes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<std::uint64_t> values = ManyMagnitudes(Seed{seed}, 5000);
    Histogram histogram;
    for (std::uint64_t value : values) histogram.Record(value);
    std::sort(values.begin(), values.end());
    for (double quantile : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const double rank = std::max(1.0, std::ceil(quantile * static_cast<double>(values.size())));
      const double exact = static_cast<double>(values[static_cast<std::size_t>(rank) - 1]);
      const double got = static_cast<double>(histogram.Percentile(quantile)->count());
      EXPECT_NEAR(got, exact, std::max(0.5, exact * 0.01))
          << "seed " << seed << " quantile " << quantile;
    }
  }
}

TEST(HistogramTest, MergeEqualsRecordingEverythingInOne) {
  Histogram all;
  Histogram merged;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Histogram part;
    for (std::uint64_t value : ManyMagnitudes(Seed{seed}, 1000)) {
      all.Record(value);
      part.Record(value);
    }
    merged.Merge(part);
  }
  EXPECT_EQ(merged.NonEmpty(), all.NonEmpty());
  EXPECT_EQ(merged.sum_ns(), all.sum_ns());
  EXPECT_EQ(merged.max_ns(), all.max_ns());
  EXPECT_EQ(merged.min_ns(), all.min_ns());
}

TEST(HistogramTest, IntervalsAddUpToTheTotal) {
  Histogram total;
  Histogram sum;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Histogram before = total;
    for (std::uint64_t value : ManyMagnitudes(Seed{seed}, 500)) total.Record(value);
    sum.Merge(total.Since(before));
  }
  EXPECT_EQ(sum.NonEmpty(), total.NonEmpty());
  EXPECT_EQ(sum.count(), total.count());
  EXPECT_EQ(sum.sum_ns(), total.sum_ns());
}

TEST(HistogramTest, ValuesBeyondAnHourAreCountedAndKeepTheirMaximum) {
  Histogram histogram;
  histogram.Record(1'000);
  histogram.Record(Histogram::kValueMax + 5);
  EXPECT_EQ(histogram.overflow_count(), 1u);
  EXPECT_EQ(histogram.Percentile(1.0), Nanoseconds(Histogram::kValueMax + 5));
}

TEST(HistogramTest, APercentileWithTooFewRecordsAboveItIsNotGiven) {
  Histogram histogram;
  for (std::uint64_t i = 0; i < 999; ++i) histogram.Record(i);
  EXPECT_FALSE(histogram.Percentile(0.99, 10).has_value());
  histogram.Record(1'000);
  EXPECT_TRUE(histogram.Percentile(0.99, 10).has_value());
  EXPECT_FALSE(Histogram().Percentile(0.5).has_value());
}

TEST(HistogramTest, TheWireFormComesBackEqualAndDamageIsRefused) {
  Histogram histogram;
  for (std::uint64_t value : ManyMagnitudes(Seed{7}, 3000)) histogram.Record(value);
  histogram.Record(Histogram::kValueMax * 2);
  v1::HistogramData message = convert::ToMessage(histogram);
  const Result<Histogram> back = convert::FromMessage(message);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->NonEmpty(), histogram.NonEmpty());
  EXPECT_EQ(back->count(), histogram.count());
  EXPECT_EQ(back->max_ns(), histogram.max_ns());

  message.add_index_delta(1'000'000);
  EXPECT_EQ(convert::FromMessage(message).error().code(), Errc::kCorrupt);
  message.add_count(1);
  EXPECT_EQ(convert::FromMessage(message).error().code(), Errc::kCorrupt);
  message.set_layout(99);
  EXPECT_EQ(convert::FromMessage(message).error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace labrack
