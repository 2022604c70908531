// FileDisk: a file of the host as a disk, through a reactor's file operations. Flush is fdatasync,
// a durable write is RWF_DSYNC. The page cache is left out (O_DIRECT) where the file system can do
// that; where it cannot, note() says so, and nothing else changes.
//
//   Read, Write --> one FileOp --> io_uring or threads      a short transfer goes on with the rest
//   Flush failed, or a durable write --> poisoned: neither succeeds again before the file is opened
//                   anew, since the kernel forgets what it could not write (Rebello et al., "Can
//                   Applications Recover from fsync Failures?", USENIX ATC 2020)
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "storage/base/descriptor.h"
#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"

namespace labrack::block {

struct FileDiskOptions {
  bool direct = true;  // around the page cache, where that can be had
  // At least; larger where direct I/O asks for it.
  Bytes block_size{512};
};

class FileDisk final : public BlockDevice {
 public:
  static constexpr Bytes kBlockMax{4096};

  // The file exists; its size is that of the disk. It is locked (flock) while it is open. Errors,
  // with the path: kNotFound, kPermissionDenied; kBusy when it is in use as a disk already;
  // kInvalidArgument when it is no file, or its size is no positive multiple of the block size;
  // kRefusedBySafety for a block device.
  static Result<std::unique_ptr<FileDisk>> Open(runtime::Reactor& reactor,
                                                const std::filesystem::path& path,
                                                FileDiskOptions options = {});

  Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override;

  bool direct() const { return direct_; }
  // Why the page cache is in between; empty when it is not, or when that was asked for.
  const std::string& note() const { return note_; }

 private:
  FileDisk(runtime::Reactor& reactor, std::string path)
      : reactor_(reactor), path_(std::move(path)) {}

  Result<void> OpenFile(const FileDiskOptions& options);
  Result<void> LearnGeometry(Bytes block_size);
  // Whether the kernel can move this memory as it is.
  bool Reachable(const std::byte* memory) const;
  Error Failed(const runtime::FileOp& operation) const;

  Task<Result<void>> MoveRest(runtime::FileOp operation);
  Task<Result<void>> MoveThroughCopy(runtime::FileOp operation);

  runtime::Reactor& reactor_;
  std::string path_;
  Descriptor file_;
  Geometry geometry_;
  bool direct_ = false;
  std::string note_;
  std::optional<Error> poison_;  // of the first flush or durable write that failed
};

}  // namespace labrack::block
