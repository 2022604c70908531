#include "agent/inventory/lent_disks.h"

#include <algorithm>
#include <filesystem>
#include <sys/statvfs.h>

#include "agent/inventory/host_facts.h"
#include "agent/stack/backing.h"

namespace labrack::inventory {
namespace {

constexpr std::uint64_t kKeptShare = 10;  // a tenth stays free

// The directory, or the nearest parent that is there: a fresh agent has not made it yet.
std::filesystem::path NearestExisting(std::filesystem::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored)) {
    path = path.parent_path();
  }
  return path;
}

v1::LentDisk FileSpace(const v1::AgentConfig& config) {
  const std::filesystem::path directory = std::filesystem::path(config.state()) / kDisksFolder;
  v1::LentDisk disk;
  disk.set_id("file:" + directory.string());
  disk.set_kind("file");
  const std::filesystem::path existing = NearestExisting(directory);
  struct statvfs status{};
  if (statvfs(existing.c_str(), &status) != 0) {
    disk.set_refused(Error::FromErrno(errno, "statvfs", existing.string()).ToString());
    return disk;
  }
  const Bytes total = Bytes(status.f_blocks) * status.f_frsize;
  const Bytes free = Bytes(status.f_bavail) * status.f_frsize;
  disk.set_capacity_bytes(Lendable(total, Bytes(config.disk_space())).count());
  disk.set_free_bytes(Lendable(free, Bytes(config.disk_space())).count());
  const Result<stack::Backing> backing = stack::FindBacking(existing);
  if (backing) disk.set_backing(backing->Describe());
  return disk;
}

v1::LentDisk Memory() {
  v1::LentDisk disk;
  disk.set_id("ram");
  disk.set_kind("ram");
  disk.set_backing("memory (tmpfs)");
  disk.set_capacity_bytes(Lendable(MemoryTotal(), Bytes(0)).count());
  disk.set_free_bytes(Lendable(MemoryAvailable(), Bytes(0)).count());
  return disk;
}

// Until the claim rules (signatures, holders, labels) are built, no block device is ever touched.
v1::LentDisk RefusedDevice(const std::string& name) {
  v1::LentDisk disk;
  disk.set_id("block:" + name);
  disk.set_kind("block");
  disk.set_refused(
      "block devices are not supported yet; remove it from `block_devices:`, and lend "
      "files or memory");
  return disk;
}

}  // namespace

Bytes Lendable(Bytes free, Bytes limit) {
  const Bytes most = free - free / kKeptShare;
  return limit.count() == 0 ? most : std::min(most, limit);
}

std::vector<v1::LentDisk> FindLentDisks(const v1::AgentConfig& config,
                                        const stack::HostAbility& ability) {
  std::vector<v1::LentDisk> disks = {FileSpace(config)};
  if (WhyNoDisks(ability).empty() && ability.file_systems.contains("tmpfs")) {
    disks.push_back(Memory());
  }
  for (const std::string& name : config.block_devices()) disks.push_back(RefusedDevice(name));
  return disks;
}

}  // namespace labrack::inventory
