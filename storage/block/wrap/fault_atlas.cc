#include "storage/block/wrap/fault_atlas.h"

#include <bit>

#include "storage/base/check.h"

namespace labrack::block {

FaultAtlas::FaultAtlas(Options options) : options_(options) {
  LABRACK_CHECK(options_.disk_count > 0 && options_.disk_count <= kDisksMax);
  LABRACK_CHECK(options_.zone > Bytes(0));
}

template <typename Use>
void FaultAtlas::ForEachZone(const Fault& fault, const Use& use) const {
  const auto range = [&](Offset at) {
    const std::uint64_t first = at.value() / options_.zone.count();
    const std::uint64_t last = (at.value() + fault.length.count() - 1) / options_.zone.count();
    for (std::uint64_t zone = first; zone <= last; ++zone) use(zone);
  };
  range(fault.at);
  // What it lands on is lost as well.
  if (fault.kind == FaultKind::kMisdirectedWrite) range(fault.elsewhere);
}

bool FaultAtlas::TooMany(Disks disks) const {
  return static_cast<std::uint32_t>(std::popcount(disks)) > options_.bad_max;
}

FaultVerdict FaultAtlas::Judge(std::uint32_t disk, const Fault& fault) const {
  LABRACK_CHECK(disk < options_.disk_count);
  if (!fault.Reported() && !options_.checksums) return FaultVerdict::kNever;
  if (fault.kind == FaultKind::kSlow) return FaultVerdict::kWithin;
  const Disks bad = whole_ | Disks{1} << disk;
  bool beyond = false;
  if (fault.OfWholeDevice()) {
    beyond = TooMany(bad);
    for (const auto& [zone, disks] : zones_) beyond = beyond || TooMany(bad | disks);
  } else {
    ForEachZone(fault, [&](std::uint64_t zone) {
      const auto found = zones_.find(zone);
      beyond = beyond || TooMany(bad | (found == zones_.end() ? 0 : found->second));
    });
  }
  return beyond ? FaultVerdict::kBeyond : FaultVerdict::kWithin;
}

void FaultAtlas::Add(std::uint32_t disk, const Fault& fault) {
  const FaultVerdict verdict = Judge(disk, fault);
  LABRACK_CHECK(verdict != FaultVerdict::kNever);
  if (verdict == FaultVerdict::kBeyond) beyond_ = true;
  if (fault.kind == FaultKind::kSlow) return;
  if (fault.OfWholeDevice()) {
    whole_ |= Disks{1} << disk;
  } else {
    ForEachZone(fault, [&](std::uint64_t zone) { zones_[zone] |= Disks{1} << disk; });
  }
}

// What was beyond repair has been told by then, or is lost: beyond() stays.
void FaultAtlas::Repaired(std::uint32_t disk) {
  LABRACK_CHECK(disk < options_.disk_count);
  whole_ &= ~(Disks{1} << disk);
  for (auto& [zone, disks] : zones_) disks &= ~(Disks{1} << disk);
}

}  // namespace labrack::block
