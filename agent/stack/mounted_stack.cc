#include "agent/stack/mounted_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "storage/base/descriptor.h"
#include "storage/base/units.h"

namespace labrack::stack {
namespace {

// How long DropCaches waits for files of the workload to be closed.
constexpr Nanoseconds kDropCachesBusyWait = std::chrono::seconds(5);

Bytes SumOf(const std::vector<Disk>& disks) {
  Bytes sum;
  for (const Disk& disk : disks) sum += disk.size;
  return sum;
}

}  // namespace

std::string DescribeDisks(const std::vector<Disk>& disks) {
  std::string names;
  bool direct = true;
  for (const Disk& disk : disks) {
    names += (names.empty() ? "" : ", ") + disk.loop.name;
    direct = direct && disk.loop.direct_io;
  }
  const std::string count = disks.size() == 1 ? "a disk" : std::to_string(disks.size()) + " disks";
  return names + " (" + count + " of " + FormatBytesExact(disks.front().size) +
         (direct ? ", direct I/O)" : ", no direct I/O)");
}

MountedStack::MountedStack(MountedStackParts parts)
    : parts_(std::move(parts)), directory_(parts_.mount.target / "work") {
  for (const Disk& disk : parts_.disks) {
    devices_.push_back(
        {disk.loop.name, disk.loop.name + " (disk " + std::to_string(disk.index) + ")"});
  }
}

Result<std::unique_ptr<BuiltStack>> MountedStack::MountAndCheck(MountedStackParts parts) {
  if (Result<void> mounted = Mount(parts.mount); !mounted) return std::unexpected(mounted.error());
  auto stack = std::make_unique<MountedStack>(std::move(parts));
  if (Result<void> finished = stack->Finish(); !finished) return std::unexpected(finished.error());
  return stack;
}

Result<void> MountedStack::Finish() {
  if (Result<void> checked = Check(); !checked) return checked;
  if (Result<void> checked = CheckSize(); !checked) return checked;
  if (mkdir(directory_.c_str(), 0700) != 0) return FailErrno("mkdir", directory_.string());
  return {};
}

Result<void> MountedStack::CheckSize() {
  struct statvfs status{};
  if (statvfs(parts_.mount.target.c_str(), &status) != 0) {
    return FailErrno("statvfs", parts_.mount.target.string());
  }
  const Bytes size = Bytes(status.f_blocks) * status.f_frsize;
  capacity_ = Bytes(status.f_bavail) * status.f_frsize;
  const double share =
      static_cast<double>(size.count()) / static_cast<double>(SumOf(parts_.disks).count());
  if (share >= parts_.size_share_min && share <= parts_.size_share_max) return {};
  return Fail(Errc::kInternal, parts_.description,
              "the file system holds " + FormatBytes(size) + ", which does not fit its disks");
}

Result<void> MountedStack::Check() const {
  const Result<std::optional<MountEntry>> mounted = MountAt(parts_.mount.target);
  if (!mounted) return std::unexpected(mounted.error());
  const std::string target = parts_.mount.target.string();
  if (!*mounted) return Fail(Errc::kNotFound, target, parts_.description + " is not mounted");
  const MountEntry& entry = **mounted;
  if (entry.source != parts_.mount.source || entry.file_system != parts_.mount.file_system) {
    return Fail(Errc::kInternal, target,
                "holds " + entry.file_system + " on " + entry.source + " instead of " +
                    parts_.mount.file_system + " on " + parts_.mount.source);
  }
  if (entry.read_only) {
    return Fail(Errc::kIo, target, parts_.description + " went read-only after an error");
  }
  for (const Disk& disk : parts_.disks) {
    const Result<bool> attached = IsLoopOf(disk.loop.name, disk.loop.backing_file);
    if (!attached) return std::unexpected(attached.error());
    if (!*attached) {
      return Fail(Errc::kInternal, disk.loop.node(),
                  "is not attached to " + disk.loop.backing_file.string() + " any more");
    }
  }
  return {};
}

Result<void> MountedStack::SyncAll() const {
  const Descriptor root(open(parts_.mount.target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return FailErrno("open", parts_.mount.target.string());
  if (syncfs(root.get()) != 0) return FailErrno("syncfs", parts_.mount.target.string());
  return {};
}

Result<void> MountedStack::DropCaches() {
  if (Result<void> synced = SyncAll(); !synced) return synced;
  if (Result<void> unmounted = Unmount(parts_.mount.target, kDropCachesBusyWait); !unmounted) {
    return unmounted;
  }
  // Without direct I/O the blocks are cached a second time, as pages of the backing file.
  for (const Disk& disk : parts_.disks) {
    if (disk.loop.direct_io) continue;
    const Descriptor file(open(disk.loop.backing_file.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.valid() && fsync(file.get()) == 0) {
      posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
  }
  if (Result<void> mounted = Mount(parts_.mount); !mounted) return mounted;
  return Check();
}

Result<std::unique_ptr<BuiltStack>> FormatAndMount(const BuildContext& context,
                                                   FormatRequest request) {
  std::vector<std::string> words = std::move(request.mkfs_words);
  for (const Disk& disk : context.disks) words.push_back(disk.loop.node());
  if (Result<void> made = context.run(std::move(words)); !made) {
    return std::unexpected(made.error());
  }
  if (Result<void> added = context.undo.Add({UndoKind::kUnmount, context.mount_point.string(), ""});
      !added) {
    return std::unexpected(added.error());
  }
  return MountedStack::MountAndCheck(
      {.mount = {.file_system = request.file_system,
                 .source = context.disks.front().loop.node(),
                 .target = context.mount_point,
                 .options = std::move(request.mount_options)},
       .disks = context.disks,
       .description = request.description + " on " + DescribeDisks(context.disks),
       .backing = context.backing,
       .size_share_min = request.size_share_min,
       .size_share_max = request.size_share_max});
}

}  // namespace labrack::stack
