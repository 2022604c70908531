// FaultAtlas: which disks of a redundancy group have which zones bad, so that planned faults stay
// within what redundancy can repair (the idea of TigerBeetle's ClusterFaultAtlas).
//
//            zone 0   zone 1   zone 2
//   disk 0     .        x        .       x bad: a fault of some of its blocks
//   disk 1     W        W        W       W a fault of the whole device
//   disk 2     .        .        .
//              ^ at most `bad_max` in each column: beyond it only "an error, never wrong data"
//
// A zone is a stretch of every disk that one stripe of redundant data lies within: a mirror's
// block, the interlace of a RAID-5. What is bad stays bad, until Repaired() says that all of a disk
// has been rewritten. Faults that nobody is told of are planned only where checksums would show
// them.
#pragma once

#include <cstdint>
#include <map>

#include "storage/base/bytes.h"
#include "storage/block/wrap/fault_plan.h"

namespace labrack::block {

enum class FaultVerdict {
  kWithin,  // data must stay readable and right
  kBeyond,  // errors may be, wrong data may not
  kNever,   // nothing could notice the wrong data
};

class FaultAtlas {
 public:
  struct Options {
    std::uint32_t disk_count = 1;  // at most kDisksMax
    std::uint32_t bad_max = 0;     // stripe 0, mirror n - 1, RAID-5 1
    Bytes zone;
    bool checksums = false;  // kept apart from the data, by what stands above
  };
  static constexpr std::uint32_t kDisksMax = 64;

  explicit FaultAtlas(Options options);

  FaultVerdict Judge(std::uint32_t disk, const Fault& fault) const;
  void Add(std::uint32_t disk, const Fault& fault);
  void Repaired(std::uint32_t disk);

  // What was added is more than redundancy can repair, somewhere.
  bool beyond() const { return beyond_; }

 private:
  using Disks = std::uint64_t;  // a bit for each

  template <typename Use>
  void ForEachZone(const Fault& fault, const Use& use) const;
  bool TooMany(Disks disks) const;

  Options options_;
  Disks whole_ = 0;
  std::map<std::uint64_t, Disks> zones_;  // by number; without those of `whole_`
  bool beyond_ = false;
};

}  // namespace labrack::block
