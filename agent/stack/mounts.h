// The mount table of this process's namespace, and mounting and unmounting by system calls: no
// helper process can be left behind half-way when a worker is killed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::stack {

struct MountEntry {
  int id = 0;
  int parent = 0;  // the mount that it is mounted on
  std::string mount_point;
  std::string file_system;  // "ext4", "fuse.zfs"
  std::string source;       // "/dev/loop3", "tank"
  unsigned device_major = 0;
  unsigned device_minor = 0;
  bool read_only = false;  // of the mount or of its file system
};

// In the order of the table: what covers something else stands later. Lines that make no sense are
// left out.
std::vector<MountEntry> ParseMountInfo(std::string_view text);
Result<std::vector<MountEntry>> ReadMounts();

// The mount that `path`, absolute and without links, lies in, as the kernel walks there: from mount
// to the mount upon it, so that what is covered by a later mount is not found. nullptr where the
// table does not say: in a chroot it leaves out the mount that the root itself lies in.
const MountEntry* FindMount(const std::vector<MountEntry>& mounts, std::string_view path);

// What a path says of itself, for where the table says nothing.
struct PathFacts {
  unsigned device_major = 0;
  unsigned device_minor = 0;
  std::string file_system;   // "ext4"
  std::string block_device;  // "vda1"; empty: the file system has no device of its own
  bool read_only = false;
};
MountEntry MountFromFacts(const PathFacts& facts);

// What is visible at exactly this path; nullopt when it is no mount point.
Result<std::optional<MountEntry>> MountAt(const std::filesystem::path& path);
// The mount that a path lies in.
Result<MountEntry> MountOf(const std::filesystem::path& path);

struct MountRequest {
  std::string file_system;
  std::string source;
  std::filesystem::path target;
  // "noatime", "data=journal". kInvalidArgument with the kernel's own words for one that it does
  // not take.
  std::vector<std::string> options;
};
Result<void> Mount(const MountRequest& request);

// Until nothing is mounted at the path; fine when nothing is. While it is in use, tries again for
// `busy_wait`; then kBusy, naming the processes that use it.
Result<void> Unmount(const std::filesystem::path& path, Nanoseconds busy_wait);

// "fio (pid 123), sh (pid 124)": processes with an open file, a working directory or a mapping
// below `path`, or with the file `path` itself open; at most eight. Empty when none is found.
std::string UsersOf(const std::filesystem::path& path);

}  // namespace labrack::stack
