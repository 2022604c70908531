#include "proto/convert/convert.h"

#include <utility>
#include <vector>

namespace labrack::convert {

v1::HistogramData ToMessage(const Histogram& histogram) {
  v1::HistogramData message;
  message.set_layout(kHistogramLayout);
  std::uint32_t previous = 0;
  for (const auto& [index, count] : histogram.NonEmpty()) {
    message.add_index_delta(index - previous);
    message.add_count(count);
    previous = index;
  }
  message.set_sum_ns(histogram.sum_ns());
  message.set_min_ns(histogram.min_ns());
  message.set_max_ns(histogram.max_ns());
  message.set_overflow_count(histogram.overflow_count());
  return message;
}

Result<Histogram> FromMessage(const v1::HistogramData& message) {
  if (message.layout() != kHistogramLayout) {
    return Fail(Errc::kCorrupt, "histogram layout " + std::to_string(message.layout()) +
                                    ", this build reads " + std::to_string(kHistogramLayout));
  }
  if (message.index_delta_size() != message.count_size()) {
    return Fail(Errc::kCorrupt, "histogram with " + std::to_string(message.index_delta_size()) +
                                    " indexes and " + std::to_string(message.count_size()) +
                                    " counts");
  }
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets;
  std::uint32_t index = 0;
  for (int i = 0; i < message.count_size(); ++i) {
    index += message.index_delta(i);
    buckets.emplace_back(index, message.count(i));
  }
  std::optional<Histogram> histogram =
      Histogram::From(buckets, {.sum_ns = message.sum_ns(),
                                .min_ns = message.min_ns(),
                                .max_ns = message.max_ns(),
                                .overflow_count = message.overflow_count()});
  if (!histogram) return Fail(Errc::kCorrupt, "histogram bucket index out of range");
  return *std::move(histogram);
}

}  // namespace labrack::convert
