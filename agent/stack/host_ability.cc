#include "agent/stack/host_ability.h"

#include <array>
#include <fcntl.h>
#include <fstream>
#include <string_view>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/exec/program.h"
#include "agent/exec/run.h"
#include "agent/stack/stack_backend.h"
#include "storage/base/descriptor.h"

namespace labrack::stack {
namespace {

constexpr Nanoseconds kProbeTimeout = std::chrono::seconds(10);
constexpr std::array kFileSystems = {"ext4", "xfs", "btrfs", "tmpfs"};
constexpr std::array kPrograms = {"mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "zpool", "zfs"};

bool HasCapability(unsigned bit) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("CapEff:")) {
      return ((std::stoull(line.substr(7), nullptr, 16) >> bit) & 1) != 0;
    }
  }
  return false;
}

bool FileHolds(const std::string& path, std::string_view text) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

bool KernelHas(const std::string& file_system) {
  if (FileHolds("/proc/filesystems", "\t" + file_system)) return true;
  utsname system{};
  if (uname(&system) != 0) return false;
  const std::string modules = std::string("/lib/modules/") + system.release + "/modules.";
  const std::string module_file = "/" + file_system + ".ko";
  return FileHolds(modules + "dep", module_file) || FileHolds(modules + "builtin", module_file);
}

// "zpool list" needs the module, or zfs-fuse's daemon; only trying tells.
std::string WhyZfsDoesNotWork() {
  exec::Command command;
  command.words = {"zpool", "list", "-H"};
  command.timeout = kProbeTimeout;
  const Result<exec::Outcome> outcome = exec::Run(command);
  if (!outcome) return outcome.error().ToString();
  if (outcome->ok()) return "";
  return "neither the module zfs nor the daemon zfs-fuse runs (" + outcome->Describe() + ")";
}

}  // namespace

HostAbility ProbeHost(ZfsProbe zfs) {
  constexpr unsigned kSysAdmin = 21;  // CAP_SYS_ADMIN
  HostAbility ability;
  ability.is_root = geteuid() == 0;
  ability.may_mount = HasCapability(kSysAdmin);
  ability.loop_devices = Descriptor(open("/dev/loop-control", O_RDWR | O_CLOEXEC)).valid();
  for (const char* name : kFileSystems) {
    if (KernelHas(name)) ability.file_systems.insert(name);
  }
  for (const char* name : kPrograms) {
    if (Result<std::filesystem::path> path = exec::FindProgram(name)) {
      ability.programs[name] = path->string();
    }
  }
  if (zfs == ZfsProbe::kTry && ability.programs.contains("zpool")) {
    ability.zfs_problem = WhyZfsDoesNotWork();
  }
  return ability;
}

std::vector<v1::StackSupport> SupportOf(const HostAbility& ability) {
  std::vector<v1::StackSupport> all;
  for (const StackBackend* backend : Backends()) {
    v1::StackSupport support;
    support.set_kind(std::string(backend->kind()));
    support.set_reason(backend->WhyUnsupported(ability));
    support.set_supported(support.reason().empty());
    all.push_back(std::move(support));
  }
  // Ours need nothing of the host: where io_uring is forbidden, threads do.
  v1::StackSupport& volume = all.emplace_back();
  volume.set_kind("volume");
  volume.set_supported(true);
  return all;
}

std::string WhyNoDisks(const HostAbility& ability) {
  if (!ability.is_root) return "the agent does not run as root, which loop devices and mounts need";
  if (!ability.may_mount) return "the agent may not mount here (no CAP_SYS_ADMIN; a container?)";
  if (!ability.loop_devices) return "/dev/loop-control cannot be opened; there are no loop devices";
  return "";
}

}  // namespace labrack::stack
