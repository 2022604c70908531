// A directory for the files of a bench, gone with the object.
#pragma once

#include <filesystem>
#include <memory>
#include <stdlib.h>
#include <string>
#include <utility>

#include "storage/base/result.h"

namespace labrack::bench {

class Scratch {
 public:
  // Beside this program, on a disk and not in memory.
  static Result<std::unique_ptr<Scratch>> Make() {
    return MakeIn(std::filesystem::read_symlink("/proc/self/exe").parent_path());
  }
  static Result<std::unique_ptr<Scratch>> MakeIn(const std::filesystem::path& parent) {
    std::string name = (parent / "bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return FailErrno("make directory", name);
    return std::make_unique<Scratch>(name);
  }
  explicit Scratch(std::filesystem::path path) : path_(std::move(path)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace labrack::bench
