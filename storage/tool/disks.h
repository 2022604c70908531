// The disks of a command: files, opened and locked, on the reactor that this host can have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/block/disk/file_disk.h"
#include "storage/block/wrap/stats.h"
#include "storage/runtime/reactor.h"

namespace labrack::tool {

class Disks {
 public:
  // Errors as FileDisk::Open's, with the path.
  static Result<Disks> Open(std::vector<std::string> paths);

  runtime::Reactor& reactor() { return *reactor_; }
  // In the order in which they were given.
  std::vector<block::BlockDevice*> devices() const;
  // The path of a device of ours; "missing" for none.
  const std::string& NameOf(const block::BlockDevice* device) const;
  // With the file's path in the place of "disk 2", which is how sets call what they were given.
  Error Named(const Error& error) const;
  // Of all disks together.
  block::DeviceStats Stats() const;

 private:
  std::unique_ptr<runtime::Reactor> reactor_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<block::FileDisk>> files_;
  std::vector<std::unique_ptr<block::StatsDevice>> stats_;
};

}  // namespace labrack::tool
