// Presets: modelled disks by name: those of the machines in the five posts that this lab can
// settle, and what one buys today. Each number stands in presets.cc with its source:
//
//   [S]  stated in one of the posts
//   [C]  read in public source code: parameters of real drives that came with DiskSim 4, our fits
//   [D]  a public document
//   [K]  a typical value of general knowledge, not checked against one drive
//   [G]  a guess, or worked out from the others
//
// None is tuned to give a result.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "storage/base/random.h"
#include "storage/block/disk/bus.h"
#include "storage/block/disk/controller_disk.h"
#include "storage/block/disk/model_disk.h"
#include "storage/block/disk/rotating_disk.h"

namespace labrack::block {

struct DiskPreset {
  std::string_view name;
  std::string_view summary;  // one line, for lists
  std::variant<RotatingDiskOptions, ControllerDiskOptions> disk;
  BusOptions bus;
  std::uint32_t disks_per_bus = 1;
};

const std::vector<DiskPreset>& DiskPresets();
// kInvalidArgument, with the known names, for any other.
Result<DiskPreset> FindDiskPreset(std::string_view name);

// Disks of one preset, and the buses that they share.
struct ModelledDisks {
  std::vector<std::unique_ptr<Bus>> buses;
  std::vector<std::unique_ptr<ModelDisk>> disks;
};
struct ModelledDisksOptions {
  std::uint32_t count = 1;
  Bytes size = {};  // of each, its first part (of a rotating disk the outer one); 0: all
  Seed seed = {};   // of what differs between disks of a kind: where the platters stand
};
// kInvalidArgument when the size is no multiple of a block, or more than the disk has.
Result<ModelledDisks> MakeModelledDisks(runtime::Reactor& reactor, const DiskPreset& preset,
                                        const ModelledDisksOptions& options);

}  // namespace labrack::block
