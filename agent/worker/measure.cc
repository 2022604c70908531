#include "agent/worker/measure.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "storage/base/units.h"

namespace labrack::worker {
namespace {

std::int64_t InNanoseconds(const timeval& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::int64_t>(time.tv_usec) * 1'000;
}

void AddUse(int who, v1::CpuUse& use) {
  rusage usage{};
  if (getrusage(who, &usage) != 0) return;
  use.set_user_ns(use.user_ns() + InNanoseconds(usage.ru_utime));
  use.set_system_ns(use.system_ns() + InNanoseconds(usage.ru_stime));
  use.set_memory_max_bytes(
      std::max(use.memory_max_bytes(), static_cast<std::uint64_t>(usage.ru_maxrss) * 1024));
  use.set_context_switches_voluntary(use.context_switches_voluntary() +
                                     static_cast<std::uint64_t>(usage.ru_nvcsw));
  use.set_context_switches_involuntary(use.context_switches_involuntary() +
                                       static_cast<std::uint64_t>(usage.ru_nivcsw));
  use.set_page_faults_major(use.page_faults_major() + static_cast<std::uint64_t>(usage.ru_majflt));
}

// Below this, caches of a few pages would look like a finding.
constexpr Bytes kBytesMin = 16_MiB;

}  // namespace

v1::CpuUse ReadCpuUse() {
  v1::CpuUse use;
  AddUse(RUSAGE_SELF, use);
  AddUse(RUSAGE_CHILDREN, use);
  return use;
}

v1::CpuUse Subtract(const v1::CpuUse& after, const v1::CpuUse& before) {
  v1::CpuUse use = after;
  use.set_user_ns(after.user_ns() - before.user_ns());
  use.set_system_ns(after.system_ns() - before.system_ns());
  use.set_context_switches_voluntary(after.context_switches_voluntary() -
                                     before.context_switches_voluntary());
  use.set_context_switches_involuntary(after.context_switches_involuntary() -
                                       before.context_switches_involuntary());
  use.set_page_faults_major(after.page_faults_major() - before.page_faults_major());
  return use;
}

WindowMeter::Reading WindowMeter::Read() {
  Reading reading{.cpu = ReadCpuUse(), .host = std::nullopt, .devices = {}, .io = {}};
  if (core_ != nullptr) reading.io = core_->Read();
  if (const Result<HostTicks> host = ReadHostTicks()) {
    reading.host = *host;
  } else {
    note_ = "the host's load is not known: " + host.error().ToString();
  }
  if (devices_.empty()) return reading;
  Result<std::vector<v1::DeviceUse>> devices = stack::ReadDeviceUse(devices_);
  if (devices) {
    reading.devices = *std::move(devices);
  } else {
    note_ = "no device counters: " + devices.error().ToString();
  }
  return reading;
}

void WindowMeter::Reset() {
  opened_.reset();
  closed_.reset();
  note_.clear();
}

void WindowMeter::Open() {
  opened_ = Read();
  closed_.reset();
}

void WindowMeter::Close() {
  if (opened_ && !closed_) closed_ = Read();
}

void WindowMeter::Fill(v1::StepResult& step) const {
  if (!opened_ || !closed_) return;
  if (core_ != nullptr) {
    *step.mutable_io() = stack::IoUseBetween(opened_->io, closed_->io);
    for (v1::DeviceUse& use : stack::DeviceUseBetween(opened_->io, closed_->io)) {
      *step.add_devices() = std::move(use);
    }
  }
  if (!step.has_cpu() && !virtual_time()) {
    *step.mutable_cpu() = Subtract(closed_->cpu, opened_->cpu);
  }
  if (opened_->devices.size() != closed_->devices.size()) return;
  for (v1::DeviceUse& use : stack::Subtract(closed_->devices, opened_->devices)) {
    *step.add_devices() = std::move(use);
  }
}

double WindowMeter::others_share() const {
  if (virtual_time() || !opened_ || !closed_ || !opened_->host || !closed_->host) return 0;
  return OthersShare(*opened_->host, *closed_->host, Subtract(closed_->cpu, opened_->cpu).user_ns(),
                     sysconf(_SC_CLK_TCK));
}

void AddDeviceWarnings(const v1::StepResult& step, const workload::BytesMoved& moved, bool cold,
                       std::vector<v1::Warning>& warnings) {
  if (step.devices().empty()) return;
  Bytes device_read;
  Bytes device_written;
  for (const v1::DeviceUse& device : step.devices()) {
    device_read += Bytes(device.read_bytes());
    device_written += Bytes(device.write_bytes());
  }
  if (cold && moved.read >= kBytesMin && device_read < moved.read / 2) {
    v1::Warning& warning = warnings.emplace_back();
    warning.set_code("LW101");
    warning.set_message(
        fmt::format("cached reads: step `{}` read {}, of which the devices "
                    "delivered {}",
                    step.step(), FormatBytes(moved.read), FormatBytes(device_read)));
    warning.set_cure("make the file larger than memory, or use `direct: true`");
  }
  if (moved.written >= kBytesMin && device_written < moved.written / 2) {
    v1::Warning& warning = warnings.emplace_back();
    warning.set_code("LW302");
    warning.set_message(fmt::format(
        "step `{}` wrote {}, of which the devices had got {} when the measurement ended",
        step.step(), FormatBytes(moved.written), FormatBytes(device_written)));
    warning.set_cure(
        "use `sync: end` or `direct: true`, unless compression or overwriting explains it");
  }
}

Result<HostTicks> ReadHostTicks(const std::filesystem::path& proc_stat) {
  std::ifstream file(proc_stat);
  std::string word;
  std::array<std::uint64_t, 8> ticks{};  // user nice system idle iowait irq softirq steal
  file >> word;
  for (std::uint64_t& value : ticks) file >> value;
  if (!file || word != "cpu") {
    return Fail(Errc::kCorrupt, proc_stat.string(), "does not begin with the line `cpu`");
  }
  HostTicks host;
  for (const std::uint64_t value : ticks) host.all += value;
  host.user = ticks[0] + ticks[1];
  return host;
}

double OthersShare(const HostTicks& before, const HostTicks& after, std::int64_t own_user_ns,
                   std::int64_t ticks_per_second) {
  if (after.all < before.all + kHostTicksMin || after.user < before.user) return 0;
  const double own =
      static_cast<double>(own_user_ns) * 1e-9 * static_cast<double>(ticks_per_second);
  const double others = static_cast<double>(after.user - before.user) - own;
  return std::max(0.0, others / static_cast<double>(after.all - before.all));
}

void AddHostWarnings(double others_share, std::vector<v1::Warning>& warnings) {
  if (others_share <= kOthersShareMax) return;
  v1::Warning& warning = warnings.emplace_back();
  warning.set_code("LW303");
  warning.set_message(
      fmt::format("the host was busy with something else: other programs used {:.0f} % of its "
                  "processors while a step was measured",
                  100 * others_share));
  warning.set_cure("keep other work off the host while a run goes on");
}

void AddCacheWarning(const std::string& kept, std::vector<v1::Warning>& warnings) {
  if (kept.empty()) return;
  v1::Warning& warning = warnings.emplace_back();
  warning.set_code("LW305");
  warning.set_message("`cache: cold` was not cold: " + kept);
  warning.set_cure(
      "use `direct: true`, files larger than memory, or a stack with disks of its own");
}

}  // namespace labrack::worker
