#include "storage/fs/host_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <tuple>
#include <unistd.h>

#include "storage/base/descriptor.h"
#include "storage/fs/host_file.h"

namespace labrack::fs {
namespace {

constexpr std::uint64_t kStatBlock = 512;  // the unit of st_blocks, whatever the file system's is
constexpr mode_t kFileMode = 0644;
constexpr mode_t kDirectoryMode = 0755;

int OpenBeneath(int directory, const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long result;
  do {
    result = syscall(SYS_openat2, directory, path, &how, sizeof how);
  } while (result < 0 && (errno == EINTR || errno == EAGAIN));
  return static_cast<int>(result);
}

// "" and "." are the root itself; words "." and empty ones within a path are as good as not there.
Result<void> CheckPath(const std::string& path) {
  if (path.starts_with('/')) {
    return Fail(Errc::kInvalidArgument, path, "paths are relative to the file system's root");
  }
  if (path.find('\0') != std::string::npos) {
    return Fail(Errc::kInvalidArgument, path, "a path holds no zero byte");
  }
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.compare(begin, end - begin, "..") == 0) {
      return Fail(Errc::kInvalidArgument, path, "\"..\" is not allowed in a path");
    }
    begin = end + 1;
  }
  return {};
}

int OpenFlags(const OpenOptions& options) {
  int flags = O_CLOEXEC;
  switch (options.access) {
    case Access::kRead:
      flags |= O_RDONLY;
      break;
    case Access::kWrite:
      flags |= O_WRONLY;
      break;
    case Access::kReadWrite:
      flags |= O_RDWR;
      break;
  }
  if (options.create) flags |= O_CREAT;
  if (options.exclusive) flags |= O_EXCL;
  if (options.truncate) flags |= O_TRUNC;
  if (options.direct) flags |= O_DIRECT;
  if (options.data_sync) flags |= O_DSYNC;
  return flags;
}

class HostMapping final : public FileSystem::Mapping {
 public:
  HostMapping(void* start, std::size_t length) : start_(start), length_(length) {}
  ~HostMapping() override {
    if (length_ > 0) munmap(start_, length_);
  }
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;
  ConstView view() const override { return {static_cast<const std::byte*>(start_), length_}; }

 private:
  void* start_;
  std::size_t length_;
};

}  // namespace

struct HostFileSystem::Place {
  Descriptor parent;
  std::string name;
};

Result<std::unique_ptr<HostFileSystem>> HostFileSystem::Open(
    const std::filesystem::path& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return FailErrno("open directory", directory.native());
  return std::unique_ptr<HostFileSystem>(new HostFileSystem(descriptor, directory.native()));
}

HostFileSystem::~HostFileSystem() { close(directory_); }

std::string HostFileSystem::Subject(const std::string& path) const { return path_ + "/" + path; }

Result<HostFileSystem::Place> HostFileSystem::Locate(const std::string& path) const {
  const Result<void> checked = CheckPath(path);
  if (!checked) return std::unexpected(checked.error());
  std::string trimmed = path;
  while (trimmed.ends_with('/')) trimmed.pop_back();
  const std::size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : trimmed.substr(0, slash);
  const std::string name = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  if (name.empty() || name == ".") {
    return Fail(Errc::kInvalidArgument, Subject(path), "this names the root itself");
  }
  Descriptor opened(OpenBeneath(directory_, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (opened.get() < 0) return FailErrno("open directory of", Subject(path));
  return Place{std::move(opened), name};
}

Task<Result<std::unique_ptr<File>>> HostFileSystem::Open(std::string path, OpenOptions options) {
  const Result<void> checked = CheckPath(path);
  if (!checked) co_return std::unexpected(checked.error());
  const mode_t mode = options.create ? kFileMode : 0;  // openat2 refuses a mode without O_CREAT
  const int descriptor = OpenBeneath(directory_, path.c_str(), OpenFlags(options), mode);
  if (descriptor < 0 && errno == EINVAL && options.direct) {
    co_return Fail(Errc::kUnsupported, Subject(path), "this file system cannot do direct I/O");
  }
  if (descriptor < 0) co_return FailErrno("open", Subject(path));
  co_return std::make_unique<HostFile>(descriptor, Subject(path));
}

Task<Result<FileStatus>> HostFileSystem::Status(std::string path) {
  const Result<void> checked = CheckPath(path);
  if (!checked) co_return std::unexpected(checked.error());
  struct stat status{};
  const bool is_root = path.empty() || path == ".";
  const int flags = is_root ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW;
  if (fstatat(directory_, is_root ? "" : path.c_str(), &status, flags) != 0) {
    co_return FailErrno("stat", Subject(path));
  }
  co_return FileStatus{
      .size = Bytes(static_cast<std::uint64_t>(status.st_size)),
      .allocated = Bytes(static_cast<std::uint64_t>(status.st_blocks) * kStatBlock),
      .is_directory = S_ISDIR(status.st_mode)};
}

Task<Result<void>> HostFileSystem::MakeDirectory(std::string path) {
  const Result<Place> place = Locate(path);
  if (!place) co_return std::unexpected(place.error());
  if (mkdirat(place->parent.get(), place->name.c_str(), kDirectoryMode) != 0) {
    co_return FailErrno("make directory", Subject(path));
  }
  co_return Result<void>();
}

Task<Result<void>> HostFileSystem::Remove(std::string path) {
  const Result<void> checked = CheckPath(path);
  if (!checked) co_return std::unexpected(checked.error());
  if (unlinkat(directory_, path.c_str(), 0) == 0) co_return Result<void>();
  if (errno == EISDIR && unlinkat(directory_, path.c_str(), AT_REMOVEDIR) == 0) {
    co_return Result<void>();
  }
  co_return FailErrno("remove", Subject(path));
}

Task<Result<void>> HostFileSystem::Rename(std::string from, std::string to) {
  const Result<Place> old_place = Locate(from);
  if (!old_place) co_return std::unexpected(old_place.error());
  const Result<Place> new_place = Locate(to);
  if (!new_place) co_return std::unexpected(new_place.error());
  if (renameat(old_place->parent.get(), old_place->name.c_str(), new_place->parent.get(),
               new_place->name.c_str()) != 0) {
    co_return FailErrno("rename", Subject(from) + " to " + to);
  }
  co_return Result<void>();
}

Task<Result<std::vector<std::string>>> HostFileSystem::List(std::string path) {
  const Result<void> checked = CheckPath(path);
  if (!checked) co_return std::unexpected(checked.error());
  Descriptor opened(OpenBeneath(directory_, path.empty() ? "." : path.c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (opened.get() < 0) co_return FailErrno("open directory", Subject(path));
  DIR* stream = fdopendir(opened.get());
  if (stream == nullptr) co_return FailErrno("read directory", Subject(path));
  std::ignore = opened.Release();  // the stream owns it now
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int error = errno;
  closedir(stream);
  if (error != 0) {
    co_return std::unexpected(Error::FromErrno(error, "read directory", Subject(path)));
  }
  std::sort(names.begin(), names.end());
  co_return names;
}

Task<Result<void>> HostFileSystem::SyncAll() {
  if (syncfs(directory_) != 0) co_return FailErrno("syncfs", path_);
  co_return Result<void>();
}

Task<Result<SpaceStatus>> HostFileSystem::Space() {
  struct statvfs space{};
  if (fstatvfs(directory_, &space) != 0) co_return FailErrno("statvfs", path_);
  co_return SpaceStatus{.total = Bytes(space.f_blocks) * space.f_frsize,
                        .free = Bytes(space.f_bavail) * space.f_frsize};
}

Task<Result<Bytes>> HostFileSystem::CopyRange(File& from, Offset from_at, File& to, Offset to_at,
                                              Bytes length) {
  auto* source = dynamic_cast<HostFile*>(&from);
  auto* sink = dynamic_cast<HostFile*>(&to);
  LABRACK_CHECK(source != nullptr && sink != nullptr);  // files of this file system only
  Bytes copied;
  while (copied < length) {
    off64_t read_at = static_cast<off64_t>((from_at + copied).value());
    off64_t write_at = static_cast<off64_t>((to_at + copied).value());
    const ssize_t count = copy_file_range(source->descriptor(), &read_at, sink->descriptor(),
                                          &write_at, (length - copied).size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      co_return FailErrno("copy_file_range", source->path() + " to " + sink->path());
    }
    if (count == 0) break;
    copied += Bytes(static_cast<std::uint64_t>(count));
  }
  co_return copied;
}

Task<Result<std::unique_ptr<FileSystem::Mapping>>> HostFileSystem::Map(File& file) {
  auto* host_file = dynamic_cast<HostFile*>(&file);
  LABRACK_CHECK(host_file != nullptr);
  struct stat status{};
  if (fstat(host_file->descriptor(), &status) != 0) {
    co_return FailErrno("stat", host_file->path());
  }
  const auto length = static_cast<std::size_t>(status.st_size);
  if (length == 0) co_return std::make_unique<HostMapping>(nullptr, 0);
  void* start = mmap(nullptr, length, PROT_READ, MAP_SHARED, host_file->descriptor(), 0);
  if (start == MAP_FAILED) co_return FailErrno("mmap", host_file->path());
  co_return std::make_unique<HostMapping>(start, length);
}

}  // namespace labrack::fs
