// Cgroup: a group of version 2 for all processes of one trial, where one can be made. Nothing that
// is started in it leaves it, and one write ends all of it. It has no controllers: it limits and
// accounts nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::exec {

class Cgroup {
 public:
  // Made below the one that this process is in; one that is there already is taken. kUnsupported
  // says why there is none: no version 2, or not ours to change.
  static Result<Cgroup> Make(const std::string& name);
  // As one that was made earlier, by another process; nullopt when it is no cgroup of that name.
  static std::optional<Cgroup> Find(const std::filesystem::path& path, const std::string& name);

  const std::filesystem::path& path() const { return path_; }
  // For SpawnOptions::cgroup_fd.
  Result<Descriptor> OpenProcesses() const;
  // Whether a process lives in it.
  bool populated() const;
  void Kill() const;
  // Fine when it has gone. kBusy while it is populated.
  Result<void> Remove() const;

 private:
  explicit Cgroup(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace labrack::exec
