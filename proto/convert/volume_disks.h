// How many disks a volume stack takes and how they are shared: planner and agents go by the same
// rule.
//
//   mirror          `submirrors` components; without `of` as many disks, and the rest stays unused
//   others          without `of` all disks; with it as many components as there can be
//   with `of`       every component gets the same number of disks
#pragma once

#include <cstdint>

#include "labrack/v1/stack.pb.h"
#include "storage/base/result.h"

namespace labrack::convert {

struct VolumeDisks {
  std::uint32_t used = 0;      // the first of all
  std::uint32_t parts = 0;     // components of the volume
  std::uint32_t per_part = 0;  // disks of each; used = parts * per_part
};

// The fewest disks that the volume can be made of.
std::uint32_t VolumeDisksMin(const v1::VolumeStack& volume);

// kInvalidArgument, as a sentence: they are too few, or cannot be shared equally.
Result<VolumeDisks> ShareDisks(const v1::VolumeStack& volume, std::uint32_t disks);

// Of the bytes on the disks used: those that hold data, 0.75 of a RAID-5 over four. Logs are not
// counted.
double VolumeDataShare(const v1::VolumeStack& volume, const VolumeDisks& disks);
// Bytes that reach the disks for a byte of data that is written in whole lines: with a prewrite
// log twice what lies there afterwards.
double VolumeWriteFactor(const v1::VolumeStack& volume, const VolumeDisks& disks);

}  // namespace labrack::convert
