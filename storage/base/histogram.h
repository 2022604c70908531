// Latency histogram with log-linear buckets, the HDR idea (G. Tene, HdrHistogram): values below 256
// ns are exact, and each power of two above is cut into 128 equal buckets, so that a bucket is at
// most 1/128 = 0.78 % of its value wide.
//
//   index:  0 .. 255   256 .. 383     384 .. 511     ...
//   value:  0 .. 255   256 .. 511/2   512 .. 1023/4  ...   (bucket width 1, 2, 4, ...)
//
// Range: 0 to 1 hour in nanoseconds; larger values are counted as overflow and keep their true
// maximum. Histograms with this layout merge exactly. Percentiles are never averaged: merge, then
// ask.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "storage/base/clock.h"

namespace labrack {

class Histogram {
 public:
  static constexpr int kExactBits = 8;  // values below 2^8 have a bucket each
  static constexpr std::uint64_t kHalf = 1ULL << (kExactBits - 1);
  static constexpr std::uint64_t kValueMax = 3'600'000'000'000;  // 1 h in ns

  Histogram();

  void Record(Nanoseconds value) {
    Record(value.count() < 0 ? 0 : static_cast<std::uint64_t>(value.count()));
  }
  void Record(std::uint64_t value_ns) {
    ++count_;
    sum_ns_ += value_ns;
    min_ns_ = std::min(min_ns_, value_ns);
    max_ns_ = std::max(max_ns_, value_ns);
    if (value_ns > kValueMax) {
      ++overflow_count_;
    } else {
      ++buckets_[IndexOf(value_ns)];
    }
  }
  void Merge(const Histogram& other);
  // What was recorded since `earlier`, an older copy of this histogram. min and max become bucket
  // bounds.
  Histogram Since(const Histogram& earlier) const;
  void Clear();

  std::uint64_t count() const { return count_; }
  std::uint64_t overflow_count() const { return overflow_count_; }
  std::uint64_t sum_ns() const { return sum_ns_; }
  std::uint64_t min_ns() const { return count_ == 0 ? 0 : min_ns_; }
  std::uint64_t max_ns() const { return max_ns_; }
  double mean_ns() const;

  // The value below which `quantile` (0..1) of the records lie, within 0.8 %; nothing when empty,
  // and nothing when fewer than `above_min` records lie above it (a p99 of 50 records is a guess).
  // When it falls into the overflow the answer is the true maximum.
  std::optional<Nanoseconds> Percentile(double quantile, std::uint64_t above_min = 0) const;
  // Records with a value <= bound, for cumulative exposition; buckets are attributed by their upper
  // end.
  std::uint64_t CountAtMost(std::uint64_t bound_ns) const;

  // Non-empty buckets as (index, count), ascending: the wire form. From() refuses nothing but
  // indexes out of range, which it reports by returning nullopt.
  struct Totals {
    std::uint64_t sum_ns, min_ns, max_ns, overflow_count;
  };
  std::vector<std::pair<std::uint32_t, std::uint64_t>> NonEmpty() const;
  static std::optional<Histogram> From(
      const std::vector<std::pair<std::uint32_t, std::uint64_t>>& buckets, Totals totals);

  static std::size_t IndexOf(std::uint64_t value_ns) {
    if (value_ns < 2 * kHalf) return static_cast<std::size_t>(value_ns);
    const int shift = static_cast<int>(std::bit_width(value_ns)) - kExactBits;
    return static_cast<std::size_t>(kHalf * static_cast<std::uint64_t>(shift) +
                                    (value_ns >> shift));
  }
  static std::uint64_t LowerBound(std::size_t index);  // smallest value of the bucket
  static std::uint64_t UpperBound(std::size_t index);  // largest value of the bucket
  static constexpr std::size_t kBucketCount = 34 * kHalf + 2 * kHalf;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t overflow_count_ = 0;
  std::uint64_t sum_ns_ = 0;
  std::uint64_t min_ns_ = UINT64_MAX;
  std::uint64_t max_ns_ = 0;
};

}  // namespace labrack
