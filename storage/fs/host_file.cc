#include "storage/fs/host_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace labrack::fs {
namespace {

constexpr std::uint64_t kStatBlock = 512;  // the unit of st_blocks, whatever the file system's is

off_t ToSystem(Offset at) { return static_cast<off_t>(at.value()); }

std::string At(const std::string& path, Offset at) {
  return path + " at byte " + std::to_string(at.value());
}

}  // namespace

HostFile::~HostFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Task<Result<Bytes>> HostFile::Read(IoContext, Offset at, MutableView into) {
  ssize_t got;
  do {
    got = pread(descriptor_, into.data(), into.size(), ToSystem(at));
  } while (got < 0 && errno == EINTR);
  if (got < 0) co_return FailErrno("read", At(path_, at));
  co_return Bytes(static_cast<std::uint64_t>(got));
}

Task<Result<void>> HostFile::ReadFull(IoContext, Offset at, MutableView into) {
  while (!into.empty()) {
    const ssize_t got = pread(descriptor_, into.data(), into.size(), ToSystem(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) co_return FailErrno("read", At(path_, at));
    if (got == 0) co_return Fail(Errc::kIo, At(path_, at), "the file ends here, before the read");
    at += Bytes(static_cast<std::uint64_t>(got));
    into = into.subspan(static_cast<std::size_t>(got));
  }
  co_return Result<void>();
}

// A short write is followed by one of the rest, which then names the error (ENOSPC, EIO).
Task<Result<void>> HostFile::Write(IoContext, Offset at, ConstView from) {
  while (!from.empty()) {
    const ssize_t put = pwrite(descriptor_, from.data(), from.size(), ToSystem(at));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) co_return FailErrno("write", At(path_, at));
    if (put == 0) co_return Fail(Errc::kIo, At(path_, at), "write took nothing");
    at += Bytes(static_cast<std::uint64_t>(put));
    from = from.subspan(static_cast<std::size_t>(put));
  }
  co_return Result<void>();
}

Task<Result<void>> HostFile::Sync(IoContext, SyncKind kind) {
  const int result = kind == SyncKind::kData ? fdatasync(descriptor_) : fsync(descriptor_);
  if (result != 0) co_return FailErrno(kind == SyncKind::kData ? "fdatasync" : "fsync", path_);
  co_return Result<void>();
}

Task<Result<void>> HostFile::Truncate(Bytes size) {
  if (ftruncate(descriptor_, static_cast<off_t>(size.count())) != 0) {
    co_return FailErrno("truncate", path_);
  }
  co_return Result<void>();
}

Task<Result<void>> HostFile::Allocate(Offset at, Bytes length) {
  int result;
  do {
    result = fallocate(descriptor_, 0, ToSystem(at), static_cast<off_t>(length.count()));
  } while (result != 0 && errno == EINTR);
  if (result != 0) co_return FailErrno("allocate", path_);
  co_return Result<void>();
}

Task<Result<FileStatus>> HostFile::Status() {
  struct stat status{};
  if (fstat(descriptor_, &status) != 0) co_return FailErrno("stat", path_);
  co_return FileStatus{
      .size = Bytes(static_cast<std::uint64_t>(status.st_size)),
      .allocated = Bytes(static_cast<std::uint64_t>(status.st_blocks) * kStatBlock),
      .is_directory = S_ISDIR(status.st_mode)};
}

Task<Result<void>> HostFile::Advise(Advice advice) {
  int value = POSIX_FADV_NORMAL;
  switch (advice) {
    case Advice::kSequential:
      value = POSIX_FADV_SEQUENTIAL;
      break;
    case Advice::kRandom:
      value = POSIX_FADV_RANDOM;
      break;
    case Advice::kDropCache:
      value = POSIX_FADV_DONTNEED;
      break;
  }
  // posix_fadvise returns its error and leaves errno alone.
  const int error = posix_fadvise(descriptor_, 0, 0, value);
  if (error != 0) co_return std::unexpected(Error::FromErrno(error, "fadvise", path_));
  co_return Result<void>();
}

Task<Result<void>> HostFile::Close() {
  // Linux frees the descriptor even when close fails; a second close could hit somebody else's.
  const int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0 && errno != EINTR) co_return FailErrno("close", path_);
  co_return Result<void>();
}

}  // namespace labrack::fs
