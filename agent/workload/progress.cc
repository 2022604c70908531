#include "agent/workload/progress.h"

#include <utility>

namespace labrack::workload {

void Progress::Reset() {
  Set(0, 0, 0);
  SetLastSecond(Histogram(), {});
}

void Progress::Set(std::uint64_t operations, std::uint64_t bytes, double fraction) {
  operations_.store(operations, std::memory_order_relaxed);
  bytes_.store(bytes, std::memory_order_relaxed);
  fraction_.store(fraction, std::memory_order_relaxed);
}

void Progress::SetLastSecond(const Histogram& histogram, std::vector<OperationProgress> kinds) {
  std::lock_guard lock(mutex_);
  last_second_ = histogram;
  kinds_ = std::move(kinds);
}

Progress::Snapshot Progress::Get() const {
  Snapshot snapshot;
  snapshot.operations = operations_.load(std::memory_order_relaxed);
  snapshot.bytes = bytes_.load(std::memory_order_relaxed);
  snapshot.fraction = fraction_.load(std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  snapshot.last_second = last_second_;
  snapshot.kinds = kinds_;
  return snapshot;
}

}  // namespace labrack::workload
