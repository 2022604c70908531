// FileDevice: a file as a BlockDevice, so that what works on blocks (random, sync_pages, and later
// pools and volumes) works on a file too. It forwards: the file's own operations are the device's.
#pragma once

#include <memory>

#include "storage/block/block_device.h"
#include "storage/fs/file_system.h"

namespace labrack::fs {

class FileDevice final : public block::BlockDevice {
 public:
  // `geometry.size` must not exceed the file's size, or reads at the end fail with kIo.
  FileDevice(std::unique_ptr<File> file, block::Geometry geometry)
      : file_(std::move(file)), geometry_(geometry) {}

  block::Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override {
    LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
    return file_->ReadFull(io, at, into);
  }
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override {
    LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
    return file_->Write(io, at, from);
  }
  Task<Result<void>> Flush(IoContext io) override { return file_->Sync(io, SyncKind::kData); }

  File& file() { return *file_; }
  // The device is of no use afterwards.
  Task<Result<void>> Close() { return file_->Close(); }

 private:
  std::unique_ptr<File> file_;
  block::Geometry geometry_;
};

}  // namespace labrack::fs
