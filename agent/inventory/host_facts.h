// Facts about the machine, from /proc, /sys and /etc. The parsers take texts, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/base/bytes.h"

namespace labrack::inventory {

// "Intel(R) Xeon(R) ..." of /proc/cpuinfo; ARM names only numbers: "implementer 0x41, part 0xd0c".
std::string CpuModelFrom(std::string_view cpuinfo);
// PRETTY_NAME of an os-release file, unquoted.
std::string PrettyNameFrom(std::string_view os_release);
// A line of /proc/meminfo, as "MemAvailable"; 0 when it is not there.
Bytes MemoryFrom(std::string_view meminfo, std::string_view name);

std::string HostName();
std::string MachineId();
std::string BootId();
std::string KernelName();  // "Linux 6.1.0-18-amd64"
std::string OsName();
std::string CpuModel();
std::uint32_t CpuCount();      // that are online
std::string CpuGovernor();     // "performance"; several, joined by ", ", when CPUs differ
std::string Virtualization();  // "kvm", "container", "none"; a guess from what the firmware says
Bytes MemoryTotal();
Bytes MemoryAvailable();
double LoadAverage();  // over one minute

}  // namespace labrack::inventory
