// StackFileSystem: the directory of a stack that can be let go and taken again, since memory is
// only dropped while nothing of the stack is open (BuiltStack::DropCaches).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "storage/fs/host_file_system.h"

namespace labrack::worker {

class StackFileSystem final : public fs::FileSystem {
 public:
  explicit StackFileSystem(std::filesystem::path directory) : directory_(std::move(directory)) {}

  Result<void> Take();
  void LetGo() { host_.reset(); }
  bool taken() const { return host_ != nullptr; }

  // kNotFound while it is let go: a stack that could not be mounted again fails what runs on it.
  fs::Task<Result<std::unique_ptr<fs::File>>> Open(std::string path,
                                                   fs::OpenOptions options) override {
    if (!taken()) return Gone<std::unique_ptr<fs::File>>();
    return host_->Open(std::move(path), options);
  }
  fs::Task<Result<fs::FileStatus>> Status(std::string path) override {
    if (!taken()) return Gone<fs::FileStatus>();
    return host_->Status(std::move(path));
  }
  fs::Task<Result<void>> MakeDirectory(std::string path) override {
    if (!taken()) return Gone<void>();
    return host_->MakeDirectory(std::move(path));
  }
  fs::Task<Result<void>> Remove(std::string path) override {
    if (!taken()) return Gone<void>();
    return host_->Remove(std::move(path));
  }
  fs::Task<Result<void>> Rename(std::string from, std::string to) override {
    if (!taken()) return Gone<void>();
    return host_->Rename(std::move(from), std::move(to));
  }
  fs::Task<Result<std::vector<std::string>>> List(std::string path) override {
    if (!taken()) return Gone<std::vector<std::string>>();
    return host_->List(std::move(path));
  }
  fs::Task<Result<void>> SyncAll() override {
    if (!taken()) return Gone<void>();
    return host_->SyncAll();
  }
  fs::Task<Result<fs::SpaceStatus>> Space() override {
    if (!taken()) return Gone<fs::SpaceStatus>();
    return host_->Space();
  }
  fs::Task<Result<Bytes>> CopyRange(fs::File& from, Offset from_at, fs::File& to, Offset to_at,
                                    Bytes length) override {
    if (!taken()) return Gone<Bytes>();
    return host_->CopyRange(from, from_at, to, to_at, length);
  }
  fs::Task<Result<std::unique_ptr<Mapping>>> Map(fs::File& file) override {
    if (!taken()) return Gone<std::unique_ptr<Mapping>>();
    return host_->Map(file);
  }

 private:
  template <typename T>
  fs::Task<Result<T>> Gone() const {
    co_return Fail(Errc::kNotFound, directory_.string(), "the stack is not mounted any more");
  }

  std::filesystem::path directory_;
  std::unique_ptr<fs::HostFileSystem> host_;
};

}  // namespace labrack::worker
