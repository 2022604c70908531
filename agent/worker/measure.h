// What stands beside the counts of a step: CPU of the worker and counters of the devices over the
// measured window, and the warnings that follow from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/stack/device_use.h"
#include "labrack/v1/result.pb.h"
#include "storage/base/bytes.h"

namespace labrack::worker {

// CPU and faults of this process's threads and of its children that have ended.
v1::CpuUse ReadCpuUse();
v1::CpuUse Subtract(const v1::CpuUse& after, const v1::CpuUse& before);

// Takes readings when the window opens and closes. A reading that fails leaves the figures out and
// a note.
class WindowMeter {
 public:
  explicit WindowMeter(std::vector<stack::DeviceRef> devices) : devices_(std::move(devices)) {}

  void Open();
  void Close();
  // Fills in what the workload has not filled in itself.
  void Fill(v1::StepResult& step) const;
  const std::string& note() const { return note_; }

 private:
  struct Reading {
    v1::CpuUse cpu;
    std::vector<v1::DeviceUse> devices;
  };
  Reading Read();

  std::vector<stack::DeviceRef> devices_;
  std::optional<Reading> opened_;
  std::optional<Reading> closed_;
  std::string note_;
};

// LW301: the file system read much more than its devices, although the step wanted a cold cache.
// LW302: the devices had not got what was written when the window closed.
void AddDeviceWarnings(const v1::StepResult& step, bool cold, std::vector<v1::Warning>& warnings);
// LW303: the host was busy with something else before the trial.
void AddHostWarnings(const v1::Environment& environment, std::vector<v1::Warning>& warnings);

// Makes the result fit one message: neighbouring intervals are merged, pair by pair, until it does;
// sums stay what they were. Tails of outputs go last.
void FitResult(v1::AssignmentResult& result, Bytes size_max);

}  // namespace labrack::worker
