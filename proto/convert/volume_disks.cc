#include "proto/convert/volume_disks.h"

#include <algorithm>
#include <string>

namespace labrack::convert {
namespace {

// A volume, or one below a volume, by what matters here.
struct Kind {
  std::uint32_t parts_min = 1;
  std::uint32_t copies = 1;  // of a mirror
  bool parity = false;
  bool prewrites = false;
  bool fixed = false;  // as many components as copies, however many disks there are
};

constexpr std::uint32_t kStripeMin = 2;
constexpr std::uint32_t kRaid5Min = 3;

template <typename Mirror>
Kind MirrorKind(const Mirror& mirror) {
  const std::uint32_t copies = std::max(2U, mirror.submirrors());
  return {.parts_min = copies, .copies = copies, .fixed = true};
}

template <typename Raid5>
Kind Raid5Kind(const Raid5& raid5) {
  const bool prewrites =
      raid5.parity_log() != v1::PARITY_LOG_NONE && raid5.parity_log() != v1::PARITY_LOG_PPL;
  return {.parts_min = kRaid5Min, .parity = true, .prewrites = prewrites};
}

Kind KindOf(const v1::VolumeStack& volume) {
  if (volume.has_stripe()) return {.parts_min = kStripeMin};
  if (volume.has_mirror()) return MirrorKind(volume.mirror());
  if (volume.has_raid5()) return Raid5Kind(volume.raid5());
  return {};
}

const v1::PartVolume& PartOf(const v1::VolumeStack& volume) {
  if (volume.has_concat()) return volume.concat().of();
  if (volume.has_stripe()) return volume.stripe().of();
  if (volume.has_mirror()) return volume.mirror().of();
  return volume.raid5().of();
}

bool HasPart(const v1::VolumeStack& volume) {
  return PartOf(volume).kind_case() != v1::PartVolume::KIND_NOT_SET;
}

Kind KindOf(const v1::PartVolume& part) {
  if (part.has_stripe()) return {.parts_min = kStripeMin};
  if (part.has_mirror()) return MirrorKind(part.mirror());
  if (part.has_raid5()) return Raid5Kind(part.raid5());
  return {};
}

// Where as many components are made as there can be. A concat of one disk would be that disk.
std::uint32_t DisksOfPart(const v1::VolumeStack& volume) {
  return HasPart(volume) ? std::max(2U, KindOf(PartOf(volume)).parts_min) : 1;
}

double DataShare(const Kind& kind, std::uint32_t parts) {
  if (kind.parity) return static_cast<double>(parts - 1) / parts;
  return 1.0 / kind.copies;
}

double LogFactor(const Kind& kind) { return kind.prewrites ? 2 : 1; }

std::string Disks(std::uint32_t count) {
  return std::to_string(count) + (count == 1 ? " disk" : " disks");
}

}  // namespace

std::uint32_t VolumeDisksMin(const v1::VolumeStack& volume) {
  return KindOf(volume).parts_min * DisksOfPart(volume);
}

Result<VolumeDisks> ShareDisks(const v1::VolumeStack& volume, std::uint32_t disks) {
  const std::uint32_t min = VolumeDisksMin(volume);
  if (disks < min) {
    return Fail(Errc::kInvalidArgument, "needs at least " + Disks(min) + "; there " +
                                            (disks == 1 ? "is 1" : "are " + std::to_string(disks)));
  }
  const Kind kind = KindOf(volume);
  if (!HasPart(volume)) {
    const std::uint32_t used = kind.fixed ? kind.parts_min : disks;
    return VolumeDisks{.used = used, .parts = used, .per_part = 1};
  }
  const std::uint32_t parts = kind.fixed ? kind.parts_min : disks / DisksOfPart(volume);
  if (disks % parts != 0) {
    const std::uint32_t less = disks / parts * parts;
    return Fail(Errc::kInvalidArgument, "cannot share " + Disks(disks) + " equally among its " +
                                            std::to_string(parts) + " components; take " +
                                            std::to_string(less) + " or " +
                                            std::to_string(less + parts));
  }
  return VolumeDisks{.used = disks, .parts = parts, .per_part = disks / parts};
}

double VolumeDataShare(const v1::VolumeStack& volume, const VolumeDisks& disks) {
  const double own = DataShare(KindOf(volume), disks.parts);
  return HasPart(volume) ? own * DataShare(KindOf(PartOf(volume)), disks.per_part) : own;
}

double VolumeWriteFactor(const v1::VolumeStack& volume, const VolumeDisks& disks) {
  double factor = LogFactor(KindOf(volume)) / VolumeDataShare(volume, disks);
  if (HasPart(volume)) factor *= LogFactor(KindOf(PartOf(volume)));
  return factor;
}

}  // namespace labrack::convert
