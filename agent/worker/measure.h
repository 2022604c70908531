// What stands beside the counts of a step: CPU of the worker and counters of the devices over the
// measured window, and the warnings that follow from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "agent/stack/device_use.h"
#include "agent/workload/workload.h"
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

  void Reset();  // for the next step
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

// LW101: the file system read much more than its devices, although the step wanted a cold cache.
// LW302: the devices had not got what was written when the window closed.
void AddDeviceWarnings(const v1::StepResult& step, const workload::BytesMoved& moved, bool cold,
                       std::vector<v1::Warning>& warnings);

// Processor time of the whole host, in ticks since boot.
struct CpuTimes {
  std::uint64_t all = 0;
  std::uint64_t idle = 0;  // waiting for disks too
};
Result<CpuTimes> ReadCpuTimes(const std::filesystem::path& proc_stat = "/proc/stat");
double BusyShare(const CpuTimes& before, const CpuTimes& after);

// LW303: the host worked while the trial waited. (A load average would hold the trial before.)
constexpr double kBusyShareMax = 0.25;
void AddHostWarnings(double busy_share, std::vector<v1::Warning>& warnings);
// LW305: `kept` says what could not be dropped from memory, and why; empty: nothing.
void AddCacheWarning(const std::string& kept, std::vector<v1::Warning>& warnings);

// Makes the result fit one message: neighbouring intervals are merged, pair by pair, until it does;
// sums stay what they were. Tails of outputs go last.
void FitResult(v1::AssignmentResult& result, Bytes size_max);

}  // namespace labrack::worker
