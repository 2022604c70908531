// What the live view may ask while a step runs, from any thread. The clients never wait for it:
// they count in their own memory, and the engine's coordinator adds up twenty times a second.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "storage/base/histogram.h"

namespace labrack::workload {

class Progress {
 public:
  struct Snapshot {
    std::uint64_t operations = 0;  // measured so far in this step
    std::uint64_t bytes = 0;
    double fraction = 0;    // of the step (or of lay-out and verification), 0 where unknown
    Histogram last_second;  // service times of the newest full second; empty before there is one
  };

  void Reset();
  void Set(std::uint64_t operations, std::uint64_t bytes, double fraction);
  void SetLastSecond(const Histogram& histogram);
  Snapshot Get() const;

 private:
  std::atomic<std::uint64_t> operations_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<double> fraction_ = 0;
  mutable std::mutex mutex_;  // guards last_second_
  Histogram last_second_;
};

}  // namespace labrack::workload
