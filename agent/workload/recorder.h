// Latencies of one client on their way into the step's result. On the hot path a latency costs one
// bucket increment; a few times a second the client hands over what it has to the table that all
// clients of a step share:
//
//   client 0: Tally of "read", "write" --+
//   client 1: ...                      --+-- Intervals: rows of 100 ms (or longer) -> StepResult
//                                             sum of all rows = total
//
// What completes after the end of the measured window is late: counted, but in no row of it.
//
// Rows are (begin, end]: an operation belongs to the row in which it completed. There are at most
// kRowsMax of them; when a step lasts longer, neighbouring rows are joined and the row length grows
// along kRowLengths, so that seconds stay seconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "labrack/v1/result.pb.h"
#include "storage/base/histogram.h"
#include "storage/base/result.h"

namespace labrack::workload {

// Counts of one kind of operation, with the non-empty buckets of its histogram in ascending order.
struct Sums {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets;
  std::uint64_t sum_ns = 0;
  std::uint64_t min_ns = UINT64_MAX;
  std::uint64_t max_ns = 0;
  std::uint64_t overflow_count = 0;

  void Add(const Sums& other);
  Histogram ToHistogram() const;
};

// What one client has recorded of one kind of operation since the last hand-over.
class Tally {
 public:
  Tally() : buckets_(Histogram::kBucketCount) { touched_.reserve(kTouchedReserve); }

  void Record(Nanoseconds latency, std::uint64_t bytes) {
    const auto value = static_cast<std::uint64_t>(std::max<Nanoseconds::rep>(latency.count(), 0));
    ++count_;
    ++count_ever_;
    bytes_ += bytes;
    bytes_ever_ += bytes;
    sum_ns_ += value;
    min_ns_ = std::min(min_ns_, value);
    max_ns_ = std::max(max_ns_, value);
    if (value > Histogram::kValueMax) {
      ++overflow_count_;
      return;
    }
    const std::size_t index = Histogram::IndexOf(value);
    if (buckets_[index]++ == 0) touched_.push_back(static_cast<std::uint32_t>(index));
  }

  bool empty() const { return count_ == 0; }
  // Hands over and starts again from nothing.
  Sums Take();

  // Since the beginning, counted apart from what Take gives: the check on the sums.
  std::uint64_t count_ever() const { return count_ever_; }
  std::uint64_t bytes_ever() const { return bytes_ever_; }

 private:
  static constexpr std::size_t kTouchedReserve = 512;

  std::vector<std::uint64_t> buckets_;
  std::vector<std::uint32_t> touched_;  // buckets that are not 0
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t sum_ns_ = 0;
  std::uint64_t min_ns_ = UINT64_MAX;
  std::uint64_t max_ns_ = 0;
  std::uint64_t overflow_count_ = 0;
  std::uint64_t count_ever_ = 0;
  std::uint64_t bytes_ever_ = 0;
};

// Thread-safe.
class Intervals {
 public:
  static constexpr std::size_t kRowsMax = 600;
  static constexpr std::array<Nanoseconds, 10> kRowLengths{
      std::chrono::milliseconds(100), std::chrono::milliseconds(200), std::chrono::seconds(1),
      std::chrono::seconds(2),        std::chrono::seconds(10),       std::chrono::seconds(20),
      std::chrono::minutes(1),        std::chrono::minutes(2),        std::chrono::minutes(10),
      std::chrono::hours(1)};

  // What completes after `cut` is late; no row reaches beyond it.
  Intervals(TimePoint begin, TimePoint cut, std::size_t kind_count);

  // The end of the row into which an operation falls that completes at `at`; the end of time for
  // one that is late.
  TimePoint RowEnd(TimePoint at) const;
  // Adds to the row that ends at `row_end` (or has been joined with others since).
  void Add(TimePoint row_end, std::size_t kind, const Sums& sums);

  // Latencies of all kinds that were added since the last call, for the live view.
  std::vector<Sums> TakeRecent();

  // Writes rows up to `end`, and one more up to `late_end` for what was late; every kind is named
  // by `names`.
  struct Window {
    TimePoint begin;
    TimePoint end;
    TimePoint late_end;
  };
  void Export(const Window& window, const std::vector<std::string>& names,
              std::vector<v1::Interval>& rows) const;
  Sums Total(std::size_t kind) const;

 private:
  using Row = std::vector<Sums>;  // by kind

  std::size_t IndexOf(TimePoint at) const;
  void Widen();

  const TimePoint begin_;
  const TimePoint cut_;
  const std::size_t kind_count_;
  mutable std::mutex mutex_;  // guards all below
  std::size_t length_index_ = 0;
  std::vector<Row> rows_;
  Row late_;
  std::vector<Sums> recent_;  // by kind
};

}  // namespace labrack::workload
