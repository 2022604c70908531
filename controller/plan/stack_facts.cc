#include "controller/plan/stack_facts.h"

#include <algorithm>

#include "proto/convert/volume_disks.h"

namespace labrack::plan {
namespace {

// What the tools refuse below, with Debian 12's versions: mkfs.xfs 300 MiB, mkfs.btrfs 109 MiB (125
// MiB where data or metadata are spread over disks), zpool create 64 MiB.
constexpr Bytes kXfsDiskMin = 300_MiB;
constexpr Bytes kBtrfsDiskMin = 110_MiB;
constexpr Bytes kBtrfsSpreadDiskMin = 125_MiB;
constexpr Bytes kZfsDiskMin = 64_MiB;
// Of our own: logs and a few lines of data.
constexpr Bytes kVolumeDiskMin = 16_MiB;
constexpr double kVolumeShareUsable = 15.0 / 16;

// Copies of data over `disks` disks: data disks = disks / copies, or disks - parity.
struct Redundancy {
  std::uint32_t disks = 1;
  std::uint32_t copies = 1;
  std::uint32_t parity = 0;
};

std::uint32_t DisksOf(const v1::Disks& disks) { return std::max(1U, disks.count()); }

Redundancy BtrfsRedundancy(v1::BtrfsProfile profile, std::uint32_t disks) {
  switch (profile) {
    case v1::BTRFS_PROFILE_RAID1:
    case v1::BTRFS_PROFILE_RAID10:
      return {disks, 2, 0};
    case v1::BTRFS_PROFILE_RAID5:
      return {disks, 1, 1};
    default:  // also values of later versions: no redundancy known
      return {disks, 1, 0};
  }
}

Redundancy ZfsRedundancy(v1::ZfsLayout layout, std::uint32_t disks) {
  switch (layout) {
    case v1::ZFS_LAYOUT_MIRROR:
      return {disks, disks, 0};
    case v1::ZFS_LAYOUT_MIRRORS:
      return {disks, 2, 0};
    case v1::ZFS_LAYOUT_RAIDZ:
      return {disks, 1, 1};
    case v1::ZFS_LAYOUT_RAIDZ2:
      return {disks, 1, 2};
    default:
      return {disks, 1, 0};
  }
}

Redundancy RedundancyOf(const v1::Stack& stack, const v1::Disks& disks) {
  const v1::HostStack& host = stack.host();
  if (host.has_btrfs()) return BtrfsRedundancy(host.btrfs().data(), DisksOf(disks));
  if (host.has_zfs()) return ZfsRedundancy(host.zfs().layout(), DisksOf(disks));
  return {1, 1, 0};  // ext4, xfs: the first disk
}

std::uint32_t BtrfsDisksMin(v1::BtrfsProfile profile) {
  switch (profile) {
    case v1::BTRFS_PROFILE_RAID0:
    case v1::BTRFS_PROFILE_RAID1:
      return 2;
    case v1::BTRFS_PROFILE_RAID10:
      return 4;
    case v1::BTRFS_PROFILE_RAID5:
      return 3;
    default:
      return 1;
  }
}

const char* BtrfsName(v1::BtrfsProfile profile) {
  switch (profile) {
    case v1::BTRFS_PROFILE_RAID0:
      return "raid0";
    case v1::BTRFS_PROFILE_RAID1:
      return "raid1";
    case v1::BTRFS_PROFILE_RAID10:
      return "raid10";
    case v1::BTRFS_PROFILE_RAID5:
      return "raid5";
    default:
      return "single";
  }
}

DiskNeed BtrfsNeed(const v1::BtrfsStack& btrfs) {
  const bool by_data = BtrfsDisksMin(btrfs.data()) >= BtrfsDisksMin(btrfs.metadata());
  const v1::BtrfsProfile profile = by_data ? btrfs.data() : btrfs.metadata();
  const bool single =
      btrfs.data() <= v1::BTRFS_PROFILE_SINGLE && btrfs.metadata() <= v1::BTRFS_PROFILE_SINGLE;
  return {BtrfsDisksMin(profile), false, single ? kBtrfsDiskMin : kBtrfsSpreadDiskMin,
          std::string("btrfs with ") + (by_data ? "data" : "metadata") + " profile " +
              BtrfsName(profile)};
}

DiskNeed ZfsNeed(v1::ZfsLayout layout) {
  switch (layout) {
    case v1::ZFS_LAYOUT_MIRROR:
      return {2, false, kZfsDiskMin, "zfs with layout mirror"};
    case v1::ZFS_LAYOUT_MIRRORS:
      return {4, true, kZfsDiskMin, "zfs with layout mirrors"};
    case v1::ZFS_LAYOUT_RAIDZ:
      return {3, false, kZfsDiskMin, "zfs with layout raidz"};
    case v1::ZFS_LAYOUT_RAIDZ2:
      return {4, false, kZfsDiskMin, "zfs with layout raidz2"};
    default:
      return {1, false, kZfsDiskMin, "zfs with layout stripe"};
  }
}

Bytes UsableOfVolume(const v1::VolumeStack& volume, const v1::Disks& disks) {
  const Result<convert::VolumeDisks> share = convert::ShareDisks(volume, DisksOf(disks));
  if (!share) return {};
  const double raw = static_cast<double>(disks.size()) * share->used;
  const double data = raw * convert::VolumeDataShare(volume, *share);
  return Bytes(static_cast<std::uint64_t>(data * kVolumeShareUsable));
}

}  // namespace

bool UsesDisks(const v1::Stack& stack) { return !stack.host().has_dir(); }

bool IsModelled(const v1::Disks& disks) { return !disks.model().empty(); }

bool UsesLentDisks(const v1::Stack& stack, const v1::Disks& disks) {
  return UsesDisks(stack) && !IsModelled(disks);
}

std::uint32_t DisksUsed(const v1::Stack& stack, const v1::Disks& disks) {
  if (!stack.has_volume()) return disks.count();
  const Result<convert::VolumeDisks> share = convert::ShareDisks(stack.volume(), DisksOf(disks));
  return share ? share->used : disks.count();
}

bool UsesLoopDevices(const v1::Stack& stack) { return UsesDisks(stack) && !stack.has_volume(); }

DiskNeed NeedOf(const v1::Stack& stack) {
  if (stack.has_volume()) {
    return {convert::VolumeDisksMin(stack.volume()), false, kVolumeDiskMin, "the volume"};
  }
  switch (stack.host().kind_case()) {
    case v1::HostStack::kExt4:
      return {1, false, Bytes(0), "ext4"};
    case v1::HostStack::kXfs:
      return {1, false, kXfsDiskMin, "xfs"};
    case v1::HostStack::kBtrfs:
      return BtrfsNeed(stack.host().btrfs());
    case v1::HostStack::kZfs:
      return ZfsNeed(stack.host().zfs().layout());
    case v1::HostStack::kDir:
    case v1::HostStack::KIND_NOT_SET:
      return {0, false, Bytes(0), "dir"};
  }
  return {};
}

Bytes UsableBytes(const v1::Stack& stack, const v1::Disks& disks) {
  if (stack.has_volume()) return UsableOfVolume(stack.volume(), disks);
  const Redundancy redundancy = RedundancyOf(stack, disks);
  const std::uint32_t data_disks =
      redundancy.disks > redundancy.parity ? redundancy.disks - redundancy.parity : 0;
  const Bytes raw = Bytes(disks.size()) * data_disks / redundancy.copies;
  return raw - raw / 10;
}

double WriteFactor(const v1::Stack& stack, const v1::Disks& disks) {
  if (stack.has_volume()) {
    const Result<convert::VolumeDisks> share = convert::ShareDisks(stack.volume(), DisksOf(disks));
    return share ? convert::VolumeWriteFactor(stack.volume(), *share) : 1;
  }
  const Redundancy redundancy = RedundancyOf(stack, disks);
  if (redundancy.disks <= redundancy.parity) return 1;
  return redundancy.copies * static_cast<double>(redundancy.disks) /
         static_cast<double>(redundancy.disks - redundancy.parity);
}

}  // namespace labrack::plan
