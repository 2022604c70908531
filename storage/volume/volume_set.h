// VolumeSet: disks that belong together, and the volumes on them.
//
//        volume 2: mirror            spares: disk 4
//          /            \
//   volume 0: stripe  volume 1: stripe        each disk: | state database | log | data |
//     |       |         |       |
//   disk 0  disk 1    disk 2  disk 3
//
// Everything is checked before anything is written: what cannot be made or assembled changes no
// disk. Assembling finds each disk's place by what it carries, never by the order.
// Lives on one reactor; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"
#include "storage/runtime/task_group.h"
#include "storage/volume/mirror.h"
#include "storage/volume/raid5.h"
#include "storage/volume/records.h"
#include "storage/volume/row_volume.h"
#include "storage/volume/state_database.h"

namespace labrack::volume {

struct SetSpec {
  std::uint64_t set_id = 0;  // drawn by the caller; no two sets may share one
  // A volume stands after those that it is made of; indexes of disks are those of Create's list.
  std::vector<VolumeEntry> volumes = {};
  std::vector<std::uint32_t> spares = {};
  bool overwrite = false;  // disks that belong to a set
  bool zeroed = false;     // all disks read as zeros: parity is right as it is
};

struct AssembleOptions {
  std::optional<std::uint64_t> set_id = {};  // which set it must be
  // Half of the disks are enough, and nothing is written. Not for a RAID-5, whose log must be
  // replayed.
  bool read_only = false;
  bool auto_resync = true;
  Bytes resync_chunk = 256_KiB;
};

class VolumeSet {
 public:
  // Errors: kInvalidArgument (a disk too small, mixed sector sizes, too few disks, an interlace
  // that is no multiple of the sector, a disk used twice or not there), kAlreadyExists (a disk
  // belongs to a set), those of the disks.
  static Task<Result<void>> Create(runtime::Reactor* reactor,
                                   std::vector<block::BlockDevice*> disks, SetSpec spec);
  // Errors: those of StateDatabase::Find, and kUnavailable (too few disks to start; a volume that
  // cannot do without a disk that is missing).
  static Task<Result<std::unique_ptr<VolumeSet>>> Assemble(runtime::Reactor* reactor,
                                                           std::vector<block::BlockDevice*> disks,
                                                           AssembleOptions options);
  // Must have ended before the set is destroyed. Nothing else runs meanwhile.
  Task<Result<void>> Close();
  ~VolumeSet();

  std::size_t volume_count() const { return volumes_.size(); }
  // nullptr: disks are missing that it cannot do without, and others of the set can.
  block::BlockDevice* volume(std::size_t index);
  Mirror* mirror(std::size_t index) { return mirrors_[index]; }  // nullptr: it is none
  Raid5* raid5(std::size_t index) { return raid5s_[index]; }     // likewise
  // Of a RAID-5: whether a rebuild of it goes on beside.
  bool rebuilding(std::size_t index) const {
    return std::ranges::find(rebuilding_, raid5s_[index]) != rebuilding_.end();
  }
  const SetRecord& record() const { return database_->record(); }

  // Appends new disks to a concat or a stripe. Errors: kInvalidArgument, kAlreadyExists.
  Task<Result<void>> Grow(std::size_t volume, std::vector<block::BlockDevice*> disks);
  // A failed component of a mirror or RAID-5, made whole again from the others: the same disk or
  // volume, or a new disk in its place. Returns when that has begun. Errors as Mirror::Attach and
  // StateDatabase::AddDisk; a RAID-5 takes disks only.
  Task<Result<void>> Reattach(std::size_t volume, std::size_t slot);
  Task<Result<void>> Replace(std::size_t volume, std::size_t slot, block::BlockDevice* disk);

 private:
  class SetLedger;

  VolumeSet(runtime::Reactor& reactor, AssembleOptions options,
            std::unique_ptr<StateDatabase> database);
  Task<Result<void>> OpenVolumes(SetRecord record);
  Result<void> OpenRows(const VolumeEntry& entry, const std::vector<Component>& parts);
  Task<Result<void>> OpenMirror(VolumeEntry entry, std::vector<Component> parts);
  Task<Result<void>> OpenRaid5(Raid5Options options, std::vector<Component> parts);
  void StartRebuild(std::size_t volume);
  Task<void> RebuildBehind(Raid5* raid5);
  Result<void> CheckSlot(std::size_t volume, std::size_t slot) const;
  Task<Result<void>> GiveToRaid5(std::size_t volume, std::size_t slot, std::uint32_t disk);
  Task<Result<void>> Attach(std::size_t volume, std::size_t slot, ChildEntry child);

  runtime::Reactor& reactor_;
  AssembleOptions options_;
  std::unique_ptr<StateDatabase> database_;
  std::vector<std::unique_ptr<SetLedger>> ledgers_;  // by volume; outlive the volumes
  std::vector<std::unique_ptr<block::BlockDevice>> volumes_;
  std::vector<Mirror*> mirrors_;                                // by volume, of those that are
  std::vector<Raid5*> raid5s_;                                  // likewise
  std::vector<RowVolume*> rows_;                                // likewise
  std::vector<std::unique_ptr<block::BlockDevice>> read_only_;  // by volume, over it; or none
  runtime::CancelToken stop_;      // of what goes on beside: the set is being closed
  runtime::TaskGroup background_;  // rebuilds
  std::vector<Raid5*> rebuilding_;
  bool format_ = false;  // the set is being made: its mirrors get their first dirty records
  bool zeroed_ = false;
  bool closed_ = false;
};

}  // namespace labrack::volume
