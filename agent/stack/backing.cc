#include "agent/stack/backing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "agent/stack/mounts.h"

namespace labrack::stack {
namespace {

constexpr std::size_t kAttributeMax = 200;

std::string Attribute(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  text.resize(std::min(text.size(), kAttributeMax));
  std::erase_if(text, [](unsigned char c) { return std::iscntrl(c) != 0; });
  while (text.ends_with(' ')) text.pop_back();
  const std::size_t start = text.find_first_not_of(' ');
  return start == std::string::npos ? "" : text.substr(start);
}

// The first of the places where drivers put it.
template <std::size_t kCount>
std::string FirstOf(const std::filesystem::path& disk,
                    const std::array<const char*, kCount>& names) {
  for (const char* name : names) {
    if (std::string text = Attribute(disk / name); !text.empty()) return text;
  }
  return "";
}

// The directory in /sys of the block device of a mount; empty when it has none. btrfs mounts carry
// a device number of their own, so the source is tried too.
std::filesystem::path SysfsOf(const MountEntry& mount) {
  std::error_code code;
  std::filesystem::path path =
      std::filesystem::canonical("/sys/dev/block/" + std::to_string(mount.device_major) + ":" +
                                     std::to_string(mount.device_minor),
                                 code);
  if (!code) return path;
  if (!mount.source.starts_with("/dev/")) return {};
  const std::filesystem::path node = std::filesystem::canonical(mount.source, code);
  if (code) return {};
  path = std::filesystem::canonical("/sys/class/block" / node.filename(), code);
  return code ? std::filesystem::path() : path;
}

}  // namespace

std::string Backing::Describe() const {
  std::string text = file_system;
  if (!source.empty() && source != file_system) text += " on " + source;
  std::string identity = model;
  if (!serial.empty()) identity += (identity.empty() ? "" : ", ") + ("serial " + serial);
  return identity.empty() ? text : text + " (" + identity + ")";
}

Result<Backing> FindBacking(const std::filesystem::path& path) {
  const Result<MountEntry> mount = MountOf(path);
  if (!mount) return std::unexpected(mount.error());
  Backing backing;
  backing.file_system = mount->file_system;
  backing.source = mount->source;
  std::filesystem::path disk = SysfsOf(*mount);
  if (disk.empty()) return backing;
  backing.device = disk.filename().string();
  std::error_code ignored;
  if (std::filesystem::exists(disk / "partition", ignored)) disk = disk.parent_path();
  backing.model = FirstOf(disk, std::array{"device/model", "dm/name", "md/level"});
  backing.serial = FirstOf(disk, std::array{"device/serial", "serial", "device/wwid", "wwid"});
  return backing;
}

}  // namespace labrack::stack
