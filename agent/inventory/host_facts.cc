#include "agent/inventory/host_facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace labrack::inventory {
namespace {

constexpr std::size_t kTextMax = 200;
constexpr std::size_t kFileMax = 4 << 20;

std::string Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kBlank);
  if (start == std::string_view::npos) return "";
  text = text.substr(start, text.find_last_not_of(kBlank) - start + 1);
  return std::string(text.substr(0, kTextMax));
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  text.resize(std::min(text.size(), kFileMax));
  return text;
}

std::string FirstLine(const std::filesystem::path& path) {
  const std::string text = ReadFile(path);
  return Trim(std::string_view(text).substr(0, text.find('\n')));
}

// The text behind "NAME<blanks>SEPARATOR" of the first line that starts so.
std::string ValueOf(std::string_view text, std::string_view name, char separator) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t at = line.find(separator);
    if (at != std::string_view::npos && Trim(line.substr(0, at)) == name) {
      return Trim(line.substr(at + 1));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

struct Vendor {
  std::string_view text;  // in the firmware's names
  const char* name;
};
constexpr std::array<Vendor, 9> kVendors = {{{"KVM", "kvm"},
                                             {"QEMU", "qemu"},
                                             {"VMware", "vmware"},
                                             {"VirtualBox", "virtualbox"},
                                             {"Xen", "xen"},
                                             {"Microsoft", "microsoft"},
                                             {"Amazon EC2", "amazon"},
                                             {"Google Compute", "google"},
                                             {"Bochs", "bochs"}}};

bool IsContainer() {
  std::error_code ignored;
  return std::filesystem::exists("/.dockerenv", ignored) ||
         std::filesystem::exists("/run/.containerenv", ignored) ||
         std::filesystem::exists("/run/systemd/container", ignored);
}

}  // namespace

std::string CpuModelFrom(std::string_view cpuinfo) {
  for (std::string_view name : {"model name", "Processor", "cpu model", "cpu"}) {
    if (std::string model = ValueOf(cpuinfo, name, ':'); !model.empty()) return model;
  }
  const std::string implementer = ValueOf(cpuinfo, "CPU implementer", ':');
  if (implementer.empty()) return "";
  return "implementer " + implementer + ", part " + ValueOf(cpuinfo, "CPU part", ':');
}

std::string PrettyNameFrom(std::string_view os_release) {
  std::string name = ValueOf(os_release, "PRETTY_NAME", '=');
  if (name.size() >= 2 && (name[0] == '"' || name[0] == '\'') && name.back() == name[0]) {
    name = name.substr(1, name.size() - 2);
  }
  return name;
}

Bytes MemoryFrom(std::string_view meminfo, std::string_view name) {
  const std::string value = ValueOf(meminfo, name, ':');
  std::uint64_t kilobytes = 0;
  std::from_chars(value.data(), value.data() + value.size(), kilobytes);
  return Bytes(kilobytes * 1024);
}

std::string HostName() {
  utsname system{};
  return uname(&system) == 0 ? system.nodename : "";
}

std::string MachineId() { return FirstLine("/etc/machine-id"); }
std::string BootId() { return FirstLine("/proc/sys/kernel/random/boot_id"); }

std::string KernelName() {
  utsname system{};
  return uname(&system) == 0 ? std::string(system.sysname) + " " + system.release : "";
}

std::string OsName() {
  const std::string name = PrettyNameFrom(ReadFile("/etc/os-release"));
  return name.empty() ? PrettyNameFrom(ReadFile("/usr/lib/os-release")) : name;
}

std::string CpuModel() { return CpuModelFrom(ReadFile("/proc/cpuinfo")); }

std::uint32_t CpuCount() {
  return static_cast<std::uint32_t>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string CpuGovernor() {
  std::set<std::string> governors;
  std::error_code ignored;
  std::filesystem::directory_iterator policy("/sys/devices/system/cpu/cpufreq", ignored);
  for (; !ignored && policy != std::filesystem::directory_iterator(); policy.increment(ignored)) {
    std::string governor = FirstLine(policy->path() / "scaling_governor");
    if (!governor.empty()) governors.insert(std::move(governor));
  }
  std::string text;
  for (const std::string& governor : governors) text += (text.empty() ? "" : ", ") + governor;
  return text;
}

std::string Virtualization() {
  if (IsContainer()) return "container";
  const std::string firmware = FirstLine("/sys/class/dmi/id/sys_vendor") + " " +
                               FirstLine("/sys/class/dmi/id/product_name") + " " +
                               FirstLine("/sys/hypervisor/type");
  for (const Vendor& vendor : kVendors) {
    if (firmware.find(vendor.text) != std::string::npos) return vendor.name;
  }
  const std::string flags =
      " " + ValueOf(ReadFile("/proc/cpuinfo").substr(0, 64 << 10), "flags", ':');
  return flags.find(" hypervisor") != std::string::npos ? "vm" : "none";
}

Bytes MemoryTotal() { return MemoryFrom(ReadFile("/proc/meminfo"), "MemTotal"); }
Bytes MemoryAvailable() { return MemoryFrom(ReadFile("/proc/meminfo"), "MemAvailable"); }

double LoadAverage() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace labrack::inventory
