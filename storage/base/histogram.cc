#include "storage/base/histogram.h"

#include <cmath>

#include "storage/base/check.h"

namespace labrack {

static_assert(std::bit_width(Histogram::kValueMax) - Histogram::kExactBits < 35,
              "buckets cover the range");

Histogram::Histogram() : buckets_(kBucketCount) {}

void Histogram::Merge(const Histogram& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  overflow_count_ += other.overflow_count_;
  sum_ns_ += other.sum_ns_;
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

Histogram Histogram::Since(const Histogram& earlier) const {
  LABRACK_CHECK(count_ >= earlier.count_);
  Histogram interval;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const std::uint64_t count = buckets_[i] - earlier.buckets_[i];
    interval.buckets_[i] = count;
    if (count == 0) continue;
    interval.min_ns_ = std::min(interval.min_ns_, LowerBound(i));
    interval.max_ns_ = std::min(UpperBound(i), max_ns_);
  }
  interval.count_ = count_ - earlier.count_;
  interval.overflow_count_ = overflow_count_ - earlier.overflow_count_;
  interval.sum_ns_ = sum_ns_ - earlier.sum_ns_;
  if (interval.overflow_count_ > 0) interval.max_ns_ = max_ns_;
  return interval;
}

void Histogram::Clear() { *this = Histogram(); }

double Histogram::mean_ns() const {
  return count_ == 0 ? 0.0 : static_cast<double>(sum_ns_) / static_cast<double>(count_);
}

std::optional<Nanoseconds> Histogram::Percentile(double quantile, std::uint64_t above_min) const {
  LABRACK_CHECK(quantile >= 0.0 && quantile <= 1.0);
  if (count_ == 0) return std::nullopt;
  const double exact_rank = std::ceil(quantile * static_cast<double>(count_));
  const std::uint64_t rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(exact_rank));
  if (count_ - std::min(rank, count_) < above_min) return std::nullopt;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen < rank) continue;
    const std::uint64_t middle = LowerBound(i) + (UpperBound(i) - LowerBound(i)) / 2;
    return Nanoseconds(std::clamp(middle, min_ns_, max_ns_));
  }
  return Nanoseconds(max_ns_);
}

std::uint64_t Histogram::CountAtMost(std::uint64_t bound_ns) const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < buckets_.size() && UpperBound(i) <= bound_ns; ++i)
    total += buckets_[i];
  return total;
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> Histogram::NonEmpty() const {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> pairs;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] != 0) pairs.emplace_back(static_cast<std::uint32_t>(i), buckets_[i]);
  }
  return pairs;
}

std::optional<Histogram> Histogram::From(
    const std::vector<std::pair<std::uint32_t, std::uint64_t>>& buckets, Totals totals) {
  Histogram histogram;
  for (const auto& [index, count] : buckets) {
    if (index >= kBucketCount) return std::nullopt;
    histogram.buckets_[index] += count;
    histogram.count_ += count;
  }
  histogram.count_ += totals.overflow_count;
  histogram.overflow_count_ = totals.overflow_count;
  histogram.sum_ns_ = totals.sum_ns;
  if (histogram.count_ > 0) {
    histogram.min_ns_ = totals.min_ns;
    histogram.max_ns_ = totals.max_ns;
  }
  return histogram;
}

std::uint64_t Histogram::LowerBound(std::size_t index) {
  if (index < 2 * kHalf) return index;
  const std::uint64_t shift = index / kHalf - 1;
  return (index - shift * kHalf) << shift;
}

std::uint64_t Histogram::UpperBound(std::size_t index) {
  if (index < 2 * kHalf) return index;
  const std::uint64_t shift = index / kHalf - 1;
  return LowerBound(index) + (1ULL << shift) - 1;
}

}  // namespace labrack
