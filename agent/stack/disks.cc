#include "agent/stack/disks.h"

#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <span>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/stack/mounts.h"
#include "storage/base/descriptor.h"
#include "storage/base/random.h"
#include "storage/base/units.h"

namespace labrack::stack {
namespace {

constexpr Bytes kWritePortion = 4_MiB;
constexpr std::size_t kWriteAlignment = 4096;
// A tmpfs needs a little more than its files.
constexpr Bytes kTmpfsOverhead = 1_MiB;

Result<Bytes> FreeOn(const std::filesystem::path& directory) {
  struct statvfs status{};
  if (statvfs(directory.c_str(), &status) != 0) return FailErrno("statvfs", directory.string());
  return Bytes(status.f_bavail) * status.f_frsize;
}

Result<Bytes> MemoryAvailable() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kilobytes = 0;
  std::string unit;
  while (file >> name >> kilobytes >> unit) {
    if (name == "MemAvailable:") return Bytes(kilobytes * 1024);
  }
  return Fail(Errc::kIo, "/proc/meminfo", "has no MemAvailable");
}

Result<void> CheckSpace(const DiskRequest& request) {
  const bool ram = request.kind == v1::DISK_KIND_RAM;
  const Result<Bytes> free = ram ? MemoryAvailable() : FreeOn(request.directory);
  if (!free) return std::unexpected(free.error());
  const Bytes lendable = *free - *free / kFreeShareKept;
  const Bytes needed = request.size * request.count;
  if (needed <= lendable) return {};
  return Fail(Errc::kNoSpace, ram ? "memory" : request.directory.string(),
              std::to_string(request.count) + " disks of " + FormatBytesExact(request.size) +
                  " need " + FormatBytes(needed) + ", and " + FormatBytes(lendable) +
                  " can be lent; make `disks: {size}` or `{count}` smaller");
}

// Bytes that do not compress, so that the file system below really allocates them.
void FillWithNoise(std::span<std::uint64_t> words) {
  Random random(Seed{0x6c61627261636b});
  for (std::uint64_t& word : words) word = random.Next();
}

// Writes the file once from end to end, past the page cache where that is possible: later writes
// find their blocks allocated and initialised, wherever they go.
Result<void> WriteThrough(int file, const std::filesystem::path& path, const DiskRequest& request) {
  struct Freed {
    void operator()(void* memory) const { free(memory); }
  };
  const std::unique_ptr<void, Freed> memory(aligned_alloc(kWriteAlignment, kWritePortion.size()));
  if (memory == nullptr) return Fail(Errc::kExhausted, "no memory for a buffer");
  FillWithNoise({static_cast<std::uint64_t*>(memory.get()), kWritePortion.size() / 8});
  for (Bytes at; at < request.size;) {
    if (Result<void> going = request.limit.Check(); !going) {
      return Fail(going.error().code(), path.string(),
                  "stopped with " + FormatBytes(at) + " of " + FormatBytes(request.size) +
                      " written (" + going.error().note() +
                      "); `disks: {prepare: allocated}` writes nothing before the trial");
    }
    const Bytes portion = std::min(kWritePortion, request.size - at);
    const ssize_t count =
        pwrite(file, memory.get(), portion.size(), static_cast<off_t>(at.count()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return FailErrno("write", path.string());
    at += Bytes(static_cast<std::uint64_t>(count));
  }
  if (fdatasync(file) != 0) return FailErrno("sync", path.string());
  return {};
}

Result<void> MakeFile(const std::filesystem::path& path, const DiskRequest& request) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0600));
  if (!file.valid() && errno == EINVAL) {
    // No direct I/O here. The failed open may have made the file.
    file = Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  }
  if (!file.valid()) return FailErrno("create", path.string());
  int failed = 0;
  do {
    failed = fallocate(file.get(), 0, 0, static_cast<off_t>(request.size.count()));
  } while (failed != 0 && errno == EINTR);
  const bool can_allocate = failed == 0 || errno != EOPNOTSUPP;
  if (!can_allocate) failed = ftruncate(file.get(), static_cast<off_t>(request.size.count()));
  if (failed != 0) return FailErrno("allocate " + FormatBytesExact(request.size), path.string());
  const bool write = request.kind == v1::DISK_KIND_FILE &&
                     (request.prepare != v1::DISK_PREPARATION_ALLOCATED || !can_allocate);
  // A size that is no multiple of 4 KiB cannot be written directly to its end; the rest is cached.
  if (write && request.size.count() % kWriteAlignment != 0) {
    fcntl(file.get(), F_SETFL, 0);
  }
  return write ? WriteThrough(file.get(), path, request) : Result<void>();
}

Result<void> MountTmpfs(const DiskRequest& request, UndoLog& undo) {
  if (Result<void> added = undo.Add({UndoKind::kUnmount, request.directory.string(), ""}); !added) {
    return added;
  }
  const Bytes size = request.size * request.count + kTmpfsOverhead;
  return Mount({.file_system = "tmpfs",
                .source = "labrack",
                .target = request.directory,
                .options = {"size=" + std::to_string(size.count()), "mode=0700"}});
}

Result<std::filesystem::path> MakeDiskFile(std::uint32_t index, const DiskRequest& request,
                                           UndoLog& undo) {
  std::filesystem::path path = request.directory / ("disk-" + std::to_string(index));
  if (Result<void> going = request.limit.Check(); !going) return std::unexpected(going.error());
  if (Result<void> added = undo.Add({UndoKind::kRemoveFile, path.string(), ""}); !added) {
    return std::unexpected(added.error());
  }
  if (Result<void> made = MakeFile(path, request); !made) return std::unexpected(made.error());
  return path;
}

Result<Disk> MakeDisk(std::uint32_t index, const DiskRequest& request, UndoLog& undo) {
  const Result<std::filesystem::path> path = MakeDiskFile(index, request, undo);
  if (!path) return std::unexpected(path.error());
  Result<LoopDevice> loop =
      AttachLoop(*path, request.kind == v1::DISK_KIND_FILE, [&](const std::string& name) {
        return undo.Add({UndoKind::kDetachLoop, path->string(), name});
      });
  if (!loop) return std::unexpected(loop.error());
  return Disk{.index = index, .loop = *std::move(loop), .size = request.size};
}

}  // namespace

Result<void> BuildLimit::Check() const {
  if (cancel != nullptr && cancel->cancelled()) return Fail(Errc::kCancelled, "cancelled");
  if (MonotonicClock().Now() >= until) {
    return Fail(Errc::kTimedOut, "building the stack takes longer than `timeouts.build` of " +
                                     FormatDurationExact(length) + " allows");
  }
  return {};
}

Result<std::vector<std::filesystem::path>> MakeDiskFiles(const DiskRequest& request,
                                                         UndoLog& undo) {
  if (Result<void> fits = CheckSpace(request); !fits) return std::unexpected(fits.error());
  std::vector<std::filesystem::path> paths;
  for (std::uint32_t index = 0; index < request.count; ++index) {
    Result<std::filesystem::path> path = MakeDiskFile(index, request, undo);
    if (!path) return std::unexpected(path.error());
    paths.push_back(*std::move(path));
  }
  return paths;
}

Result<std::vector<Disk>> MakeDisks(const DiskRequest& request, UndoLog& undo) {
  if (Result<void> fits = CheckSpace(request); !fits) return std::unexpected(fits.error());
  if (request.kind == v1::DISK_KIND_RAM) {
    if (Result<void> mounted = MountTmpfs(request, undo); !mounted) {
      return std::unexpected(mounted.error());
    }
  }
  std::vector<Disk> disks;
  for (std::uint32_t index = 0; index < request.count; ++index) {
    Result<Disk> disk = MakeDisk(index, request, undo);
    if (!disk) return std::unexpected(disk.error());
    disks.push_back(*std::move(disk));
  }
  return disks;
}

}  // namespace labrack::stack
