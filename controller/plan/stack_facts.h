// What the geometry of a stack says before it is built: how many disks it needs, how small they may
// be, how much of them holds data, and how often a byte is written.
#pragma once

#include <cstdint>
#include <string>

#include "labrack/v1/stack.pb.h"
#include "storage/base/bytes.h"

namespace labrack::plan {

struct DiskNeed {
  std::uint32_t count = 0;  // 0: the stack uses no lent disk (dir)
  bool even = false;        // only an even number can be used
  Bytes size;               // smallest disk that the stack's own tool takes
  std::string what;         // "btrfs with data profile raid10", for messages
};
DiskNeed NeedOf(const v1::Stack& stack);

// A directory is not made of disks; modelled disks are lent by nobody.
bool UsesDisks(const v1::Stack& stack);
bool IsModelled(const v1::Disks& disks);
bool UsesLentDisks(const v1::Stack& stack, const v1::Disks& disks);
// Of the disks that there are, those that are made: a mirror takes one a submirror.
std::uint32_t DisksUsed(const v1::Stack& stack, const v1::Disks& disks);
// Whether its disks are loop devices.
bool UsesLoopDevices(const v1::Stack& stack);

// Bytes that hold data: the disks less redundancy, less a tenth for metadata, journal and slack of
// file systems, less a sixteenth for logs and slack of volumes. Meaningless for dir.
Bytes UsableBytes(const v1::Stack& stack, const v1::Disks& disks);

// Bytes that reach the disks for one byte of data: 2 for a mirror, n/(n-1) for single parity.
// Metadata and journals are not counted; prewrites are.
double WriteFactor(const v1::Stack& stack, const v1::Disks& disks);

}  // namespace labrack::plan
