// HostFileSystem: a directory of the host as a FileSystem. Every operation is a system call on the
// calling thread, so its tasks never suspend: use runtime::RunToCompletion, or a HostLauncher.
//
//   Open("/mnt/ext4")  ->  descriptor of the directory
//   "a/b.dat"          ->  openat2(descriptor, "a/b.dat", RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
//
// Absolute paths and ".." are refused here, and symbolic links that lead out of the root are
// refused by the kernel. Status and Remove, whose cost workloads measure, are one system call each:
// they do not follow a link at the end of a path and trust the directories before it, which
// workloads make themselves (MakeDirectory fails where there is something already). Kernels without
// openat2 (before 5.6) are not supported.
//
// Thread-safe, as system calls are; a File may be read and written by any number of threads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "storage/fs/file_system.h"

namespace labrack::fs {

class HostFileSystem final : public FileSystem {
 public:
  // Errors: kNotFound, kPermissionDenied, kInvalidArgument where it is no directory.
  static Result<std::unique_ptr<HostFileSystem>> Open(const std::filesystem::path& directory);

  ~HostFileSystem() override;
  HostFileSystem(const HostFileSystem&) = delete;
  HostFileSystem& operator=(const HostFileSystem&) = delete;

  Task<Result<std::unique_ptr<File>>> Open(std::string path, OpenOptions options) override;
  Task<Result<FileStatus>> Status(std::string path) override;
  Task<Result<void>> MakeDirectory(std::string path) override;
  Task<Result<void>> Remove(std::string path) override;
  Task<Result<void>> Rename(std::string from, std::string to) override;
  Task<Result<std::vector<std::string>>> List(std::string path) override;
  Task<Result<void>> SyncAll() override;
  Task<Result<SpaceStatus>> Space() override;
  Task<Result<Bytes>> CopyRange(File& from, Offset from_at, File& to, Offset to_at,
                                Bytes length) override;
  Task<Result<std::unique_ptr<Mapping>>> Map(File& file) override;

 private:
  HostFileSystem(int directory, std::string path) : directory_(directory), path_(std::move(path)) {}

  // The parent of `path`, opened beneath the root, and the last word. Most system calls on names
  // have no RESOLVE_BENEATH of their own.
  struct Place;
  Result<Place> Locate(const std::string& path) const;
  std::string Subject(const std::string& path) const;  // for messages

  int directory_;
  std::string path_;
};

}  // namespace labrack::fs
