// What stands beside the counts of a step: CPU of the worker, counters of the devices and I/Os of a
// core stack over the measured window, and the warnings that follow from them. In virtual time a
// processor's time means nothing: there is none then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "agent/stack/core_stack.h"
#include "agent/stack/device_use.h"
#include "agent/workload/workload.h"
#include "labrack/v1/result.pb.h"
#include "storage/base/bytes.h"

namespace labrack::worker {

// CPU and faults of this process's threads and of its children that have ended.
v1::CpuUse ReadCpuUse();
v1::CpuUse Subtract(const v1::CpuUse& after, const v1::CpuUse& before);

// Processor time of the whole host since boot, in its ticks.
struct HostTicks {
  std::uint64_t all = 0;
  std::uint64_t user = 0;  // of programs, not of the kernel for them
};
Result<HostTicks> ReadHostTicks(const std::filesystem::path& proc_stat = "/proc/stat");

// The share of the host's processors that programs other than the worker and its children used. The
// kernel's own work, which may be the stack's, is not told apart and does not count. 0 when less
// than kHostTicksMin ticks have passed: such a window is too short to say.
constexpr std::uint64_t kHostTicksMin = 50;
double OthersShare(const HostTicks& before, const HostTicks& after, std::int64_t own_user_ns,
                   std::int64_t ticks_per_second);

// Takes readings when the window opens and closes. A reading that fails leaves the figures out and
// a note.
class WindowMeter {
 public:
  // `core` may be null; else it outlives this, and its counters are those of the stack.
  explicit WindowMeter(std::vector<stack::DeviceRef> devices,
                       const stack::CoreStack* core = nullptr)
      : devices_(std::move(devices)), core_(core) {}

  void Reset();  // for the next step
  void Open();
  void Close();
  // Fills in what the workload has not filled in itself.
  void Fill(v1::StepResult& step) const;
  double others_share() const;  // see OthersShare
  const std::string& note() const { return note_; }

 private:
  struct Reading {
    v1::CpuUse cpu;
    std::optional<HostTicks> host;
    std::vector<v1::DeviceUse> devices;
    stack::IoReading io;
  };
  Reading Read();

  bool virtual_time() const { return core_ != nullptr && core_->virtual_time(); }

  std::vector<stack::DeviceRef> devices_;
  const stack::CoreStack* core_;
  std::optional<Reading> opened_;
  std::optional<Reading> closed_;
  std::string note_;
};

// LW101: the file system read much more than its devices, although the step wanted a cold cache.
// LW302: the devices had not got what was written when the window closed.
void AddDeviceWarnings(const v1::StepResult& step, const workload::BytesMoved& moved, bool cold,
                       std::vector<v1::Warning>& warnings);

// LW303: other programs worked while this one was measured.
constexpr double kOthersShareMax = 0.25;
void AddHostWarnings(double others_share, std::vector<v1::Warning>& warnings);
// LW305: `kept` says what could not be dropped from memory, and why; empty: nothing.
void AddCacheWarning(const std::string& kept, std::vector<v1::Warning>& warnings);

}  // namespace labrack::worker
