// What is behind a path of this host: file system, block device, model and serial number. It stands
// in the plan beside every lent disk and in the environment of every result.
#pragma once

#include <filesystem>
#include <string>

#include "storage/base/result.h"

namespace labrack::stack {

struct Backing {
  std::string file_system = {};  // "ext4", "tmpfs"
  std::string source = {};       // "/dev/vda1"
  std::string device = {};       // of the kernel: "vda1"; empty where there is no block device
  std::string model = {};        // of the whole disk; empty where it does not say
  std::string serial = {};

  // "ext4 on /dev/vda1 (QEMU HARDDISK, serial X)", "tmpfs".
  std::string Describe() const;
};

Result<Backing> FindBacking(const std::filesystem::path& path);

}  // namespace labrack::stack
