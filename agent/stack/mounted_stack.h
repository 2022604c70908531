// BuiltStack for a file system that lies mounted on loop devices of ours.
#pragma once

#include <string>
#include <vector>

#include "agent/stack/mounts.h"
#include "agent/stack/stack_backend.h"

namespace labrack::stack {

struct MountedStackParts {
  MountRequest mount;
  std::vector<Disk> disks;
  std::string description;
  std::string backing;
  // Of the sum of all disks, at least and at most so much must be the size of the file system.
  double size_share_min = 0;
  double size_share_max = 1;
};

class MountedStack : public BuiltStack {
 public:
  // Mounts, checks, and makes the workload's directory. The caller has put the unmounting into the
  // undo log.
  static Result<std::unique_ptr<BuiltStack>> MountAndCheck(MountedStackParts parts);

  // For backends whose file system is mounted already.
  explicit MountedStack(MountedStackParts parts);
  // What Check and the size say, then the directory.
  Result<void> Finish();

  const std::filesystem::path& directory() const override { return directory_; }
  Bytes capacity() const override { return capacity_; }
  const std::vector<DeviceRef>& devices() const override { return devices_; }
  Result<void> DropCaches() override;
  Result<void> Check() const override;
  const std::string& description() const override { return parts_.description; }
  const std::string& backing() const override { return parts_.backing; }

 protected:
  const MountedStackParts& parts() const { return parts_; }
  // syncfs: what it fails with is what a write-back failed with.
  Result<void> SyncAll() const;

 private:
  Result<void> CheckSize();

  MountedStackParts parts_;
  std::filesystem::path directory_;
  Bytes capacity_;
  std::vector<DeviceRef> devices_;
};

// "loop3, loop4 (2 disks of 1GiB, direct I/O)".
std::string DescribeDisks(const std::vector<Disk>& disks);

// How a kind is made and mounted on one device after another; for ext4, xfs and btrfs.
struct FormatRequest {
  std::string file_system;
  std::vector<std::string> mkfs_words;  // without the devices
  std::vector<std::string> mount_options;
  std::string description;  // "ext4"; the disks are added
  double size_share_min = 0;
  double size_share_max = 1;
};
Result<std::unique_ptr<BuiltStack>> FormatAndMount(const BuildContext& context,
                                                   FormatRequest request);

}  // namespace labrack::stack
