#include "agent/stack/mounts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <linux/magic.h>
#include <set>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "agent/exec/family.h"
#include "storage/base/descriptor.h"

namespace labrack::stack {
namespace {

constexpr Nanoseconds kBusyRetryInterval = std::chrono::milliseconds(100);
constexpr std::size_t kUsersNamedMax = 8;
constexpr int kStackedMountsMax = 64;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The kernel writes blanks, tabs, newlines and backslashes as \ooo.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 4], value, 8).ptr == &text[i + 4]) {
      plain += static_cast<char>(value);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool HasWord(std::string_view options, std::string_view word) {
  const std::vector<std::string_view> words = Split(options, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "36 35 98:0 /root /mnt opts optional... - ext4 /dev/sda1 superopts" (proc(5)).
std::optional<MountEntry> ParseLine(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> left = Split(line.substr(0, dash), ' ');
  const std::vector<std::string_view> right = Split(line.substr(dash + 3), ' ');
  if (left.size() < 6 || right.size() < 2) return std::nullopt;
  MountEntry entry;
  std::from_chars(left[0].data(), left[0].data() + left[0].size(), entry.id);
  std::from_chars(left[1].data(), left[1].data() + left[1].size(), entry.parent);
  const std::string_view device = left[2];
  const std::size_t colon = device.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::from_chars(device.data(), device.data() + colon, entry.device_major);
  std::from_chars(device.data() + colon + 1, device.data() + device.size(), entry.device_minor);
  entry.mount_point = Unescape(left[4]);
  entry.file_system = Unescape(right[0]);
  entry.source = Unescape(right[1]);
  entry.read_only = HasWord(left[5], "ro") || (right.size() > 2 && HasWord(right[2], "ro"));
  return entry;
}

bool IsAtOrBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

struct AttributeName {
  std::string_view name;
  unsigned attribute;
};
// Options of the mount rather than of the file system; all others go to the file system.
constexpr std::array<AttributeName, 7> kAttributes = {{{"nosuid", MOUNT_ATTR_NOSUID},
                                                       {"nodev", MOUNT_ATTR_NODEV},
                                                       {"noexec", MOUNT_ATTR_NOEXEC},
                                                       {"noatime", MOUNT_ATTR_NOATIME},
                                                       {"relatime", MOUNT_ATTR_RELATIME},
                                                       {"strictatime", MOUNT_ATTR_STRICTATIME},
                                                       {"nodiratime", MOUNT_ATTR_NODIRATIME}}};

const AttributeName* FindAttribute(std::string_view option) {
  const auto* found =
      std::find_if(kAttributes.begin(), kAttributes.end(),
                   [&](const AttributeName& entry) { return entry.name == option; });
  return found == kAttributes.end() ? nullptr : found;
}

// What the file system said about the last call: "e ext4: Unknown parameter 'foo'".
std::string KernelMessages(int context) {
  std::string all;
  std::array<char, 1024> buffer;
  for (ssize_t size = read(context, buffer.data(), buffer.size()); size > 0;
       size = read(context, buffer.data(), buffer.size())) {
    std::string_view message(buffer.data(), static_cast<std::size_t>(size));
    if (message.size() > 2 && message[1] == ' ') message.remove_prefix(2);
    while (message.ends_with('\n')) message.remove_suffix(1);
    if (!all.empty()) all += "; ";
    all += message;
  }
  return all;
}

std::unexpected<Error> FailMount(int context, const MountRequest& request,
                                 const std::string& what) {
  const int error_number = errno;
  std::string note = "mounting " + request.file_system + " on " + request.target.string() + ": " +
                     what + ": " + Error::FromErrno(error_number, "", "").note().substr(2);
  const std::string messages = KernelMessages(context);
  if (!messages.empty()) note += " (" + messages + ")";
  return Fail(ErrcFromErrno(error_number), request.source, note);
}

Result<void> SetOption(int context, const MountRequest& request, const std::string& option) {
  const std::size_t equals = option.find('=');
  int failed = 0;
  if (equals == std::string::npos) {
    failed = fsconfig(context, FSCONFIG_SET_FLAG, option.c_str(), nullptr, 0);
  } else {
    const std::string key = option.substr(0, equals);
    failed = fsconfig(context, FSCONFIG_SET_STRING, key.c_str(), option.c_str() + equals + 1, 0);
  }
  if (failed != 0) return FailMount(context, request, "option '" + option + "'");
  return {};
}

// The links in /proc/PID that pin a file system.
bool Uses(const std::filesystem::path& process, const std::string& path) {
  std::error_code ignored;
  const auto points_there = [&](const std::filesystem::path& link) {
    const std::string target = std::filesystem::read_symlink(link, ignored).string();
    return !ignored && IsAtOrBelow(target, path);
  };
  if (points_there(process / "cwd") || points_there(process / "root")) return true;
  for (const char* folder : {"fd", "map_files"}) {
    std::filesystem::directory_iterator entry(process / folder, ignored);
    for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
      if (points_there(entry->path())) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<MountEntry> ParseMountInfo(std::string_view text) {
  std::vector<MountEntry> mounts;
  for (std::string_view line : Split(text, '\n')) {
    if (std::optional<MountEntry> entry = ParseLine(line)) mounts.push_back(*std::move(entry));
  }
  return mounts;
}

Result<std::vector<MountEntry>> ReadMounts() {
  std::ifstream file("/proc/self/mountinfo");
  if (!file) return Fail(Errc::kIo, "/proc/self/mountinfo", "cannot be read; is /proc mounted?");
  return ParseMountInfo(std::string(std::istreambuf_iterator<char>(file), {}));
}

namespace {

std::string NameOfFileSystem(const std::filesystem::path& path) {
  struct statfs about{};
  if (statfs(path.c_str(), &about) != 0) return "an unknown file system";
  switch (about.f_type) {
    case EXT4_SUPER_MAGIC:
      return "ext4";
    case XFS_SUPER_MAGIC:
      return "xfs";
    case BTRFS_SUPER_MAGIC:
      return "btrfs";
    case TMPFS_MAGIC:
      return "tmpfs";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlay";
    default:
      return fmt::format("file system {:#x}", about.f_type);
  }
}

Result<PathFacts> ReadFacts(const std::filesystem::path& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return FailErrno("stat", path.string());
  PathFacts facts;
  facts.device_major = major(status.st_dev);
  facts.device_minor = minor(status.st_dev);
  facts.file_system = NameOfFileSystem(path);
  std::error_code none;
  const std::filesystem::path device = std::filesystem::canonical(
      fmt::format("/sys/dev/block/{}:{}", facts.device_major, facts.device_minor), none);
  if (!none) facts.block_device = device.filename().string();
  struct statvfs flags{};
  facts.read_only = statvfs(path.c_str(), &flags) == 0 && (flags.f_flag & ST_RDONLY) != 0;
  return facts;
}

}  // namespace

const MountEntry* FindMount(const std::vector<MountEntry>& mounts, std::string_view path) {
  std::set<int> ids;
  for (const MountEntry& entry : mounts) ids.insert(entry.id);
  const MountEntry* found = nullptr;
  // One step for each mount on the way; a table whose parents go in a circle ends it too.
  for (std::size_t step = 0; step <= mounts.size(); ++step) {
    const MountEntry* next = nullptr;
    for (const MountEntry& entry : mounts) {
      const bool is_top = entry.parent == entry.id || !ids.contains(entry.parent);
      const bool is_upon = found == nullptr ? is_top : !is_top && entry.parent == found->id;
      if (!is_upon || !IsAtOrBelow(path, entry.mount_point)) continue;
      // The first one that the walk meets; of several in one place without an order the last.
      if (next == nullptr || entry.mount_point.size() <= next->mount_point.size()) next = &entry;
    }
    if (next == nullptr) break;
    found = next;
  }
  return found;
}

MountEntry MountFromFacts(const PathFacts& facts) {
  MountEntry entry;
  entry.mount_point = "/";
  entry.file_system = facts.file_system;
  entry.device_major = facts.device_major;
  entry.device_minor = facts.device_minor;
  entry.source = facts.block_device.empty() ? facts.file_system : "/dev/" + facts.block_device;
  entry.read_only = facts.read_only;
  return entry;
}

Result<std::optional<MountEntry>> MountAt(const std::filesystem::path& path) {
  const Result<std::vector<MountEntry>> mounts = ReadMounts();
  if (!mounts) return std::unexpected(mounts.error());
  const MountEntry* found = FindMount(*mounts, path.string());
  if (found == nullptr || found->mount_point != path.string()) return std::nullopt;
  return *found;
}

Result<MountEntry> MountOf(const std::filesystem::path& path) {
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(path, code);
  if (code) return std::unexpected(Error::FromErrno(code.value(), "resolve", path.string()));
  const Result<std::vector<MountEntry>> mounts = ReadMounts();
  if (!mounts) return std::unexpected(mounts.error());
  if (const MountEntry* found = FindMount(*mounts, real.string())) return *found;
  const Result<PathFacts> facts = ReadFacts(real);
  if (!facts) return std::unexpected(facts.error());
  return MountFromFacts(*facts);
}

Result<void> Mount(const MountRequest& request) {
  const Descriptor context(fsopen(request.file_system.c_str(), FSOPEN_CLOEXEC));
  if (!context.valid()) return FailErrno("fsopen", request.file_system);
  if (fsconfig(context.get(), FSCONFIG_SET_STRING, "source", request.source.c_str(), 0) != 0) {
    return FailMount(context.get(), request, "source");
  }
  unsigned attributes = 0;
  for (const std::string& option : request.options) {
    if (const AttributeName* attribute = FindAttribute(option)) {
      attributes |= attribute->attribute;
    } else if (option != "defaults" && option != "rw") {
      if (Result<void> set = SetOption(context.get(), request, option); !set) return set;
    }
  }
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return FailMount(context.get(), request, "the file system does not come up");
  }
  const Descriptor mount(fsmount(context.get(), FSMOUNT_CLOEXEC, attributes));
  if (!mount.valid()) return FailMount(context.get(), request, "fsmount");
  if (move_mount(mount.get(), "", AT_FDCWD, request.target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return FailMount(context.get(), request, "attach");
  }
  return {};
}

Result<void> Unmount(const std::filesystem::path& path, Nanoseconds busy_wait) {
  const TimePoint until = MonotonicClock().Now() + busy_wait;
  for (int unmounted = 0; unmounted < kStackedMountsMax;) {
    const Result<std::optional<MountEntry>> mounted = MountAt(path);
    if (!mounted) return std::unexpected(mounted.error());
    if (!*mounted) return {};
    if (umount2(path.c_str(), UMOUNT_NOFOLLOW) == 0) {
      ++unmounted;
      continue;
    }
    if (errno != EBUSY) return FailErrno("unmount", path.string());
    if (MonotonicClock().Now() >= until) {
      const std::string users = UsersOf(path);
      return Fail(Errc::kBusy, path.string(),
                  "cannot be unmounted: in use by " + (users.empty() ? "the kernel" : users));
    }
    std::this_thread::sleep_for(kBusyRetryInterval);
  }
  return Fail(Errc::kExhausted, path.string(), "too many mounts upon each other");
}

std::string UsersOf(const std::filesystem::path& path) {
  std::vector<exec::ProcessFacts> users;
  for (const pid_t pid : exec::AllProcesses()) {
    if (users.size() == kUsersNamedMax) break;
    if (!Uses("/proc/" + std::to_string(pid), path.string())) continue;
    if (std::optional<exec::ProcessFacts> user = exec::ReadProcess(pid)) {
      users.push_back(*std::move(user));
    }
  }
  return exec::NamesOf(users);
}

}  // namespace labrack::stack
