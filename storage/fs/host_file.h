// HostFile: an open file of the host (storage/fs internals).
#pragma once

#include <string>

#include "storage/fs/file_system.h"

namespace labrack::fs {

class HostFile final : public File {
 public:
  HostFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~HostFile() override;
  HostFile(const HostFile&) = delete;
  HostFile& operator=(const HostFile&) = delete;

  Task<Result<Bytes>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> ReadFull(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Sync(IoContext io, SyncKind kind) override;
  Task<Result<void>> Truncate(Bytes size) override;
  Task<Result<void>> Allocate(Offset at, Bytes length) override;
  Task<Result<FileStatus>> Status() override;
  Task<Result<void>> Advise(Advice advice) override;
  Task<Result<void>> Close() override;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

 private:
  int descriptor_;  // -1 once closed
  std::string path_;
};

}  // namespace labrack::fs
