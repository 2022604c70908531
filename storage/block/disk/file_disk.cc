#include "storage/block/disk/file_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/base/aligned_buffer.h"
#include "storage/base/check.h"
#include "storage/base/units.h"

namespace labrack::block {
namespace {

using runtime::FileOp;

// The smallest block that direct reads of this file can have, from `block_size` up to kBlockMax; 0
// when none can. Tried out, since file systems differ and few can tell (STATX_DIOALIGN).
Bytes DirectBlock(int file, Bytes block_size) {
  AlignedBuffer memory(2 * FileDisk::kBlockMax);
  for (Bytes block = block_size; block <= FileDisk::kBlockMax; block = 2 * block) {
    // The second block of the file into the second of the memory: both aligned to `block` only.
    const ssize_t got = pread(file, memory.view().data() + block.size(), block.size(),
                              static_cast<off_t>(block.count()));
    if (got >= 0) return block;
  }
  return Bytes(0);
}

Result<void> CheckBlockSize(const std::string& path, Bytes block_size) {
  const std::uint64_t count = block_size.count();
  if (count >= 512 && block_size <= FileDisk::kBlockMax && (count & (count - 1)) == 0) return {};
  return Fail(Errc::kInvalidArgument, path,
              "a block has 512, 1024, 2048 or 4096 bytes, not " + std::to_string(count));
}

Result<void> CheckIsFile(const std::string& path, const struct stat& status) {
  if (S_ISBLK(status.st_mode)) {
    return Fail(Errc::kRefusedBySafety, path,
                "block devices are not supported yet; use a file on a file system");
  }
  if (S_ISREG(status.st_mode)) return {};
  return Fail(Errc::kInvalidArgument, path, "is no file; a disk is a file of a fixed size");
}

FileOp MakeOp(FileOp::Kind kind, int file, Offset at, std::byte* memory, std::size_t length) {
  FileOp operation;
  operation.kind = kind;
  operation.fd = file;
  operation.at = at;
  operation.memory = memory;
  operation.length = length;
  return operation;
}

}  // namespace

Result<std::unique_ptr<FileDisk>> FileDisk::Open(runtime::Reactor& reactor,
                                                 const std::filesystem::path& path,
                                                 FileDiskOptions options) {
  std::unique_ptr<FileDisk> disk(new FileDisk(reactor, path.string()));
  if (Result<void> opened = disk->OpenFile(options); !opened) {
    return std::unexpected(opened.error());
  }
  return disk;
}

Result<void> FileDisk::OpenFile(const FileDiskOptions& options) {
  if (Result<void> valid = CheckBlockSize(path_, options.block_size); !valid) return valid;
  // A device would notice that it is opened for writing, so what it is is looked at before, and
  // again afterwards, should the path name something else by then.
  struct stat status{};
  if (stat(path_.c_str(), &status) != 0) return FailErrno("stat", path_);
  if (Result<void> file = CheckIsFile(path_, status); !file) return file;
  if (options.direct) file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT));
  direct_ = file_.valid();
  if (!direct_) file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!file_.valid()) return FailErrno("open", path_);
  if (fstat(file_.get(), &status) != 0) return FailErrno("stat", path_);
  if (Result<void> file = CheckIsFile(path_, status); !file) return file;
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FailErrno("flock", path_);
    return Fail(Errc::kBusy, path_, "is in use as a disk; a file can be one disk only");
  }
  Bytes block_size = options.block_size;
  if (direct_) {
    const Bytes direct_block = DirectBlock(file_.get(), block_size);
    direct_ = direct_block > Bytes(0);
    if (direct_) block_size = direct_block;
    if (!direct_ && fcntl(file_.get(), F_SETFL, 0) != 0) return FailErrno("fcntl", path_);
  }
  if (options.direct && !direct_) {
    note_ = path_ + ": its file system has no direct I/O, so the page cache is in between";
  }
  return LearnGeometry(block_size);
}

Result<void> FileDisk::LearnGeometry(Bytes block_size) {
  struct stat status{};
  if (fstat(file_.get(), &status) != 0) return FailErrno("stat", path_);
  const Bytes size(static_cast<std::uint64_t>(status.st_size));
  if (size == Bytes(0)) {
    return Fail(Errc::kInvalidArgument, path_,
                "is empty; give it the size that the disk shall have");
  }
  if (!IsAligned(size, block_size)) {
    return Fail(Errc::kInvalidArgument, path_,
                "has " + std::to_string(size.count()) +
                    " bytes, which is no multiple of its blocks of " +
                    std::to_string(block_size.count()) + "; " +
                    std::to_string((size - size % block_size).count()) + " bytes would be");
  }
  geometry_ = {.size = size, .block_size = block_size};
  return {};
}

bool FileDisk::Reachable(const std::byte* memory) const {
  return !direct_ || reinterpret_cast<std::uintptr_t>(memory) % geometry_.block_size.count() == 0;
}

Task<Result<void>> FileDisk::Read(IoContext io, Offset at, MutableView into) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
  if (io.cancel != nullptr && io.cancel->cancelled()) co_return Fail(Errc::kCancelled, path_, "");
  FileOp read = MakeOp(FileOp::Kind::kRead, file_.get(), at, into.data(), into.size());
  if (!Reachable(read.memory)) {
    Result<void> copied = co_await MoveThroughCopy(read);
    co_return copied;
  }
  std::int64_t moved = co_await reactor_.Transfer(read);
  if (moved == static_cast<std::int64_t>(into.size())) co_return Result<void>();
  Result<void> rest = co_await MoveRest(read);
  co_return rest;
}

Task<Result<void>> FileDisk::Write(IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
  if (io.cancel != nullptr && io.cancel->cancelled()) co_return Fail(Errc::kCancelled, path_, "");
  if (io.durable && poison_) co_return std::unexpected(*poison_);
  // A write only reads the memory.
  auto* memory = const_cast<std::byte*>(from.data());
  FileOp write = MakeOp(FileOp::Kind::kWrite, file_.get(), at, memory, from.size());
  write.durable = io.durable;
  Result<void> written;
  if (!Reachable(write.memory)) {
    written = co_await MoveThroughCopy(write);
  } else {
    std::int64_t moved = co_await reactor_.Transfer(write);
    if (moved == static_cast<std::int64_t>(from.size())) co_return Result<void>();
    written = co_await MoveRest(write);
  }
  // The sync within it may have been told of earlier writes that were lost, once and never again.
  if (!written && io.durable && !poison_) poison_ = written.error();
  co_return written;
}

Task<Result<void>> FileDisk::Flush(IoContext io) {
  if (io.cancel != nullptr && io.cancel->cancelled()) co_return Fail(Errc::kCancelled, path_, "");
  if (poison_) co_return std::unexpected(*poison_);
  FileOp sync = MakeOp(FileOp::Kind::kSync, file_.get(), Offset(0), nullptr, 0);
  std::int64_t result = co_await reactor_.Transfer(sync);
  if (result >= 0) co_return Result<void>();
  if (!poison_) poison_ = Failed(sync);
  co_return std::unexpected(*poison_);
}

// Goes on after a transfer that moved less than all, or failed. What is left of a short one names
// the error, if there is one, when it is tried.
Task<Result<void>> FileDisk::MoveRest(FileOp operation) {
  for (;;) {
    if (operation.result < 0 && operation.result != -EINTR) {
      co_return std::unexpected(Failed(operation));
    }
    const auto moved = static_cast<std::size_t>(std::max<std::int64_t>(operation.result, 0));
    if (operation.result == 0) {
      const bool read = operation.kind == FileOp::Kind::kRead;
      co_return Fail(Errc::kIo, path_ + " at byte " + std::to_string(operation.at.value()),
                     read ? "the file ends here; it was made shorter while it was a disk"
                          : "the write took nothing");
    }
    operation.at += Bytes(moved);
    operation.memory += moved;
    operation.length -= moved;
    if (operation.length == 0) co_return Result<void>();
    co_await reactor_.Transfer(operation);
  }
}

// Direct I/O moves aligned memory only.
Task<Result<void>> FileDisk::MoveThroughCopy(FileOp operation) {
  if (operation.length == 0) co_return Result<void>();
  AlignedBuffer copy(Bytes(operation.length));
  FileOp inner = operation;
  inner.memory = copy.view().data();
  if (operation.kind == FileOp::Kind::kWrite) {
    std::memcpy(inner.memory, operation.memory, operation.length);
  }
  std::int64_t moved = co_await reactor_.Transfer(inner);
  if (moved != static_cast<std::int64_t>(operation.length)) {
    Result<void> rest = co_await MoveRest(inner);
    if (!rest) co_return rest;
  }
  if (operation.kind == FileOp::Kind::kRead) {
    std::memcpy(operation.memory, copy.view().data(), operation.length);
  }
  co_return Result<void>();
}

Error FileDisk::Failed(const FileOp& operation) const {
  const int error = static_cast<int>(-operation.result);
  if (operation.kind == FileOp::Kind::kSync) return Error::FromErrno(error, "fdatasync", path_);
  const bool read = operation.kind == FileOp::Kind::kRead;
  return Error::FromErrno(error, read ? "read" : "write",
                          path_ + " at byte " + std::to_string(operation.at.value()));
}

}  // namespace labrack::block
