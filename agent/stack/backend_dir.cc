// dir: a fresh directory of a file system that is there already. It needs no disks and no rights,
// and stands in for other stacks where those cannot be built.
#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "agent/stack/backing.h"
#include "agent/stack/stack_backend.h"
#include "storage/base/descriptor.h"

namespace labrack::stack {
namespace {

// Pages of the regular files below a directory, after their caches were to be dropped.
struct Pages {
  std::uint64_t all = 0;
  std::uint64_t in_memory = 0;
};

// Counts piece by piece: a file may be larger than what one likes to map.
Result<void> CountPages(int file, std::uint64_t size, const std::string& path, Pages& pages) {
  constexpr std::uint64_t kPiece = (256_MiB).count();
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(kPiece / page);
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    const std::uint64_t length = std::min(kPiece, size - at);
    void* const mapped = mmap(nullptr, length, PROT_READ, MAP_SHARED, file, static_cast<off_t>(at));
    if (mapped == MAP_FAILED) return FailErrno("mmap", path);
    const bool known = mincore(mapped, length, resident.data()) == 0;
    const int failed = errno;
    munmap(mapped, length);
    if (!known) return std::unexpected(Error::FromErrno(failed, "mincore", path));
    const std::uint64_t count = (length + page - 1) / page;
    pages.all += count;
    for (std::uint64_t i = 0; i < count; ++i) pages.in_memory += resident[i] & 1U;
  }
  return {};
}

// Links are not followed; what a command left behind that we may not open is its own.
Result<Pages> DropPages(const std::filesystem::path& directory) {
  Pages pages;
  std::error_code failed;
  std::filesystem::recursive_directory_iterator files(directory, failed);
  for (; !failed && files != std::filesystem::recursive_directory_iterator();
       files.increment(failed)) {
    std::error_code ignored;
    if (!files->is_regular_file(ignored) || files->is_symlink(ignored)) continue;
    const Descriptor file(open(files->path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!file.valid() || fstat(file.get(), &status) != 0) continue;
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    Result<void> counted = CountPages(file.get(), static_cast<std::uint64_t>(status.st_size),
                                      files->path().string(), pages);
    if (!counted) return std::unexpected(counted.error());
  }
  if (failed) return std::unexpected(Error::FromErrno(failed.value(), "list", directory.string()));
  return pages;
}

// File systems whose data lies, or is cached, where the advice does not reach.
struct CachesElsewhere {
  std::uint64_t magic;  // statfs(2), f_type
  const char* where;
};
constexpr CachesElsewhere kCachesElsewhere[] = {
    {0x01021994, "it is a tmpfs, which lives in memory"},
    {0x858458F6, "it is a ramfs, which lives in memory"},
    {0x2FC12FC1, "it is a ZFS, whose own cache (ARC) drops nothing for a single file"},
    {0x6969, "it is an NFS, and the server's memory is out of reach"},
    {0xFF534D42, "it is a CIFS, and the server's memory is out of reach"},
    {0xFE534D42, "it is an SMB, and the server's memory is out of reach"},
    {0x01021997, "it is a 9p, and the memory of the other side is out of reach"},
    {0x65735546, "it is a FUSE, and the memory of its server is out of reach"},
};

// Why reads may be answered by memory; empty when they may not.
std::string WhyDataStays(int directory, const Pages& pages) {
  constexpr double kKeptShareMax = 0.05;
  struct statfs status{};
  if (fstatfs(directory, &status) == 0) {
    for (const CachesElsewhere& known : kCachesElsewhere) {
      if (known.magic != static_cast<std::uint64_t>(status.f_type)) continue;
      return fmt::format("the directory's file system keeps data in memory: {}", known.where);
    }
  }
  const double share =
      pages.all == 0 ? 0 : static_cast<double>(pages.in_memory) / static_cast<double>(pages.all);
  if (share <= kKeptShareMax) return "";
  return fmt::format("{:.0f} % of the files' pages stayed in memory", 100 * share);
}

class DirStack final : public BuiltStack {
 public:
  DirStack(std::filesystem::path directory, Bytes capacity, Backing backing)
      : directory_(std::move(directory)),
        capacity_(capacity),
        description_("directory " + directory_.string()),
        backing_(backing.Describe()) {
    if (!backing.device.empty()) {
      devices_.push_back({backing.device, backing.device + " (shared with the host)"});
    }
  }

  const std::filesystem::path& directory() const override { return directory_; }
  Bytes capacity() const override { return capacity_; }
  const std::vector<DeviceRef>& devices() const override { return devices_; }
  const std::string& description() const override { return description_; }
  const std::string& backing() const override { return backing_; }

  Result<void> DropCaches() override {
    const Descriptor directory(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.valid()) return FailErrno("open", directory_.string());
    if (syncfs(directory.get()) != 0) return FailErrno("syncfs", directory_.string());
    Result<Pages> pages = DropPages(directory_);
    if (!pages) return std::unexpected(pages.error());
    kept_ = {.data = WhyDataStays(directory.get(), *pages),
             .names =
                 "names and attributes of a directory on the host's own file system stay in "
                 "its memory"};
    return {};
  }
  stack::KeptInMemory KeptInMemory() const override { return kept_; }

  Result<void> Check() const override {
    struct stat status{};
    if (stat(directory_.c_str(), &status) != 0) return FailErrno("stat", directory_.string());
    if (!S_ISDIR(status.st_mode)) {
      return Fail(Errc::kInternal, directory_.string(), "is not a directory any more");
    }
    return {};
  }

 private:
  std::filesystem::path directory_;
  Bytes capacity_;
  std::vector<DeviceRef> devices_;
  std::string description_;
  std::string backing_;
  stack::KeptInMemory kept_;
};

bool IsAtOrBelow(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto [in_directory, in_path] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return in_directory == directory.end();
}

// The directory with all links resolved, if the configuration allows it.
Result<std::filesystem::path> AllowedDirectory(const std::string& wanted,
                                               const std::vector<std::string>& allowed) {
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(wanted, code);
  if (code) return std::unexpected(Error::FromErrno(code.value(), "resolve", wanted));
  for (const std::string& directory : allowed) {
    const std::filesystem::path real_allowed = std::filesystem::canonical(directory, code);
    if (!code && IsAtOrBelow(real, real_allowed)) return real;
  }
  return Fail(Errc::kPermissionDenied, wanted,
              "the agent's configuration does not allow this directory; name it in `directories:`");
}

class Backend final : public StackBackend {
 public:
  std::string_view kind() const override { return "dir"; }
  std::string WhyUnsupported(const HostAbility&) const override { return ""; }

  Result<DiskNeeds> Needs(const v1::HostStack& spec, const v1::Disks&) const override {
    if (!spec.dir().path().empty() && !spec.dir().path().starts_with('/')) {
      return Fail(Errc::kInvalidArgument, spec.dir().path(), "a dir stack needs an absolute path");
    }
    return DiskNeeds{};
  }

  Result<std::unique_ptr<BuiltStack>> Build(const BuildContext& context) const override {
    const BuildRequest& request = context.request;
    std::filesystem::path parent = request.disks_dir;
    const std::string& wanted = request.stack.host().dir().path();
    if (request.stand_in.empty() && !wanted.empty()) {
      Result<std::filesystem::path> allowed = AllowedDirectory(wanted, request.allowed_directories);
      if (!allowed) return std::unexpected(allowed.error());
      parent = *std::move(allowed);
    }
    const std::filesystem::path directory = parent / ("labrack-" + request.tag);
    if (std::error_code ignored; std::filesystem::exists(directory, ignored)) {
      return Fail(Errc::kAlreadyExists, directory.string(), "should be made for this trial");
    }
    if (Result<void> added = context.undo.Add({UndoKind::kRemoveTree, directory.string(), ""});
        !added) {
      return std::unexpected(added.error());
    }
    if (mkdir(directory.c_str(), 0700) != 0) return FailErrno("mkdir", directory.string());
    struct statvfs status{};
    if (statvfs(directory.c_str(), &status) != 0) return FailErrno("statvfs", directory.string());
    const Result<Backing> backing = FindBacking(directory);
    if (!backing) return std::unexpected(backing.error());
    return std::make_unique<DirStack>(directory, Bytes(status.f_bavail) * status.f_frsize,
                                      *backing);
  }
};

}  // namespace

const StackBackend& DirBackend() {
  static const Backend backend;
  return backend;
}

}  // namespace labrack::stack
