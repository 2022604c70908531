#include "agent/workload/recorder.h"

#include <algorithm>
#include <iterator>

#include "proto/convert/convert.h"
#include "storage/base/check.h"

namespace labrack::workload {

void Sums::Add(const Sums& other) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> merged;
  merged.reserve(buckets.size() + other.buckets.size());
  std::merge(buckets.begin(), buckets.end(), other.buckets.begin(), other.buckets.end(),
             std::back_inserter(merged));
  std::size_t kept = 0;
  for (const auto& [index, bucket_count] : merged) {
    if (kept > 0 && merged[kept - 1].first == index) {
      merged[kept - 1].second += bucket_count;
    } else {
      merged[kept++] = {index, bucket_count};
    }
  }
  merged.resize(kept);
  buckets = std::move(merged);
  count += other.count;
  bytes += other.bytes;
  sum_ns += other.sum_ns;
  min_ns = std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  overflow_count += other.overflow_count;
}

Histogram Sums::ToHistogram() const {
  std::optional<Histogram> histogram = Histogram::From(
      buckets,
      {.sum_ns = sum_ns, .min_ns = min_ns, .max_ns = max_ns, .overflow_count = overflow_count});
  LABRACK_CHECK(histogram.has_value());
  return *std::move(histogram);
}

Sums Tally::Take() {
  Sums sums{.count = count_,
            .bytes = bytes_,
            .buckets = {},
            .sum_ns = sum_ns_,
            .min_ns = min_ns_,
            .max_ns = max_ns_,
            .overflow_count = overflow_count_};
  std::sort(touched_.begin(), touched_.end());
  sums.buckets.reserve(touched_.size());
  for (std::uint32_t index : touched_) {
    sums.buckets.emplace_back(index, buckets_[index]);
    buckets_[index] = 0;
  }
  touched_.clear();
  count_ = bytes_ = sum_ns_ = max_ns_ = overflow_count_ = 0;
  min_ns_ = UINT64_MAX;
  return sums;
}

Intervals::Intervals(TimePoint begin, TimePoint cut, std::size_t kind_count)
    : begin_(begin), cut_(cut), kind_count_(kind_count), late_(kind_count), recent_(kind_count) {}

std::size_t Intervals::IndexOf(TimePoint at) const {
  if (at <= begin_) return 0;
  const Nanoseconds since = at - begin_ - Nanoseconds(1);  // rows are closed at their end
  return static_cast<std::size_t>(since / kRowLengths[length_index_]);
}

TimePoint Intervals::RowEnd(TimePoint at) const {
  if (at > cut_) return TimePoint::max();
  std::lock_guard lock(mutex_);
  const auto number = static_cast<Nanoseconds::rep>(IndexOf(at) + 1);
  return std::min(cut_, begin_ + number * kRowLengths[length_index_]);
}

void Intervals::Add(TimePoint row_end, std::size_t kind, const Sums& sums) {
  std::lock_guard lock(mutex_);
  if (row_end > cut_) {
    late_[kind].Add(sums);
    recent_[kind].Add(sums);
    return;
  }
  while (IndexOf(row_end) >= kRowsMax && length_index_ + 1 < kRowLengths.size()) Widen();
  // Beyond 600 rows of the greatest length (25 days) the last row takes the rest.
  const std::size_t index = std::min(IndexOf(row_end), kRowsMax - 1);
  if (index >= rows_.size()) rows_.resize(index + 1, Row(kind_count_));
  rows_[index][kind].Add(sums);
  recent_[kind].Add(sums);
}

void Intervals::Widen() {
  const auto factor =
      static_cast<std::size_t>(kRowLengths[length_index_ + 1] / kRowLengths[length_index_]);
  std::vector<Row> joined((rows_.size() + factor - 1) / factor, Row(kind_count_));
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::size_t kind = 0; kind < kind_count_; ++kind) {
      joined[i / factor][kind].Add(rows_[i][kind]);
    }
  }
  rows_ = std::move(joined);
  ++length_index_;
}

std::vector<Sums> Intervals::TakeRecent() {
  std::lock_guard lock(mutex_);
  return std::exchange(recent_, std::vector<Sums>(kind_count_));
}

namespace {

v1::Interval ToMessage(TimePoint begin, TimePoint end, const std::vector<Sums>& row,
                       const std::vector<std::string>& names) {
  v1::Interval message;
  message.set_begin_mono_ns(begin.time_since_epoch().count());
  message.set_end_mono_ns(end.time_since_epoch().count());
  for (std::size_t kind = 0; kind < row.size(); ++kind) {
    if (row[kind].count == 0) continue;
    v1::IntervalOperation& operation = *message.add_operations();
    operation.set_operation(names[kind]);
    operation.set_count(row[kind].count);
    operation.set_bytes(row[kind].bytes);
    *operation.mutable_service() = convert::ToMessage(row[kind].ToHistogram());
  }
  return message;
}

}  // namespace

void Intervals::Export(const Window& window, const std::vector<std::string>& names,
                       std::vector<v1::Interval>& rows) const {
  std::lock_guard lock(mutex_);
  const auto& [begin, end, late_end] = window;
  const Nanoseconds length = kRowLengths[length_index_];
  const std::size_t row_count =
      std::max(rows_.size(), std::min(IndexOf(end) + 1, kRowsMax));  // idle ones too
  for (std::size_t i = 0; i < row_count; ++i) {
    const TimePoint row_begin = begin_ + static_cast<Nanoseconds::rep>(i) * length;
    const TimePoint row_end = i + 1 == row_count ? end : std::min(end, row_begin + length);
    // Clients that all woke late did nothing in the rows before.
    if (row_end <= begin && row_end < end) continue;
    const Row row = i < rows_.size() ? rows_[i] : Row();
    rows.push_back(ToMessage(std::max(begin, row_begin), row_end, row, names));
  }
  const bool late =
      std::any_of(late_.begin(), late_.end(), [](const Sums& sums) { return sums.count > 0; });
  if (late) rows.push_back(ToMessage(end, late_end, late_, names));
}

Sums Intervals::Total(std::size_t kind) const {
  std::lock_guard lock(mutex_);
  Sums total = late_[kind];
  for (const Row& row : rows_) total.Add(row[kind]);
  return total;
}

}  // namespace labrack::workload
