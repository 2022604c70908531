// What the live view may ask while a step runs, from any thread. The clients never wait for it:
// they count in their own memory, and the engine's coordinator adds up twenty times a second.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "storage/base/histogram.h"

namespace labrack::workload {

// One kind of operation, since the measurement of the step began.
struct OperationProgress {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Histogram service;
};

class Progress {
 public:
  struct Snapshot {
    std::uint64_t operations = 0;  // measured so far in this step
    std::uint64_t bytes = 0;
    double fraction = 0;  // of the step (or of lay-out and verification), 0 where unknown
    std::vector<OperationProgress> kinds;  // as of the newest full second; empty before
    Histogram last_second;  // service times of the newest full second; empty before there is one
  };

  void Reset();
  void Set(std::uint64_t operations, std::uint64_t bytes, double fraction);
  void SetLastSecond(const Histogram& histogram, std::vector<OperationProgress> kinds);
  Snapshot Get() const;

 private:
  std::atomic<std::uint64_t> operations_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<double> fraction_ = 0;
  mutable std::mutex mutex_;  // guards the next two
  Histogram last_second_;
  std::vector<OperationProgress> kinds_;
};

}  // namespace labrack::workload
