#include "agent/stack/volume_shape.h"

#include <fmt/format.h>

#include "proto/convert/volume_disks.h"
#include "storage/base/units.h"

namespace labrack::stack {
namespace {

using volume::Kind;

block::FlushMode FlushOf(v1::VolumeFlush flush) {
  switch (flush) {
    case v1::VOLUME_FLUSH_REFUSE:
      return block::FlushMode::kRefuse;
    case v1::VOLUME_FLUSH_DROP:
      return block::FlushMode::kDrop;
    default:
      return block::FlushMode::kPass;
  }
}

volume::ReadPolicy ReadOf(v1::MirrorRead read) {
  switch (read) {
    case v1::MIRROR_READ_GEOMETRIC:
      return volume::ReadPolicy::kGeometric;
    case v1::MIRROR_READ_FIRST:
      return volume::ReadPolicy::kFirst;
    default:
      return volume::ReadPolicy::kRoundRobin;
  }
}

volume::ParityLogMode LogOf(v1::ParityLog log) {
  switch (log) {
    case v1::PARITY_LOG_PPL:
      return volume::ParityLogMode::kPartialParity;
    case v1::PARITY_LOG_NONE:
      return volume::ParityLogMode::kNone;
    default:
      return volume::ParityLogMode::kPrewrite;
  }
}

// What the messages of a volume and of one below another have in common.
template <typename Stripe>
VolumeShape StripeShape(const Stripe& spec) {
  return {.kind = Kind::kStripe, .interlace = Bytes(spec.interlace()), .of = nullptr};
}

template <typename Mirror>
VolumeShape MirrorShape(const Mirror& spec) {
  return {.kind = Kind::kMirror, .read_policy = ReadOf(spec.read()), .of = nullptr};
}

template <typename Raid5>
VolumeShape Raid5Shape(const Raid5& spec) {
  return {.kind = Kind::kRaid5,
          .interlace = Bytes(spec.interlace()),
          .parity_log = LogOf(spec.parity_log()),
          .of = nullptr};
}

// Null when the disks are meant.
std::unique_ptr<VolumeShape> PartOf(const v1::PartVolume& spec) {
  switch (spec.kind_case()) {
    case v1::PartVolume::kConcat:
      return std::make_unique<VolumeShape>(VolumeShape{.kind = Kind::kConcat, .of = nullptr});
    case v1::PartVolume::kStripe:
      return std::make_unique<VolumeShape>(StripeShape(spec.stripe()));
    case v1::PartVolume::kMirror:
      return std::make_unique<VolumeShape>(MirrorShape(spec.mirror()));
    case v1::PartVolume::kRaid5:
      return std::make_unique<VolumeShape>(Raid5Shape(spec.raid5()));
    case v1::PartVolume::KIND_NOT_SET:
      return nullptr;
  }
  return nullptr;
}

template <typename Volume>
VolumeShape Whole(VolumeShape shape, const Volume& spec, const convert::VolumeDisks& disks) {
  shape.flush = FlushOf(spec.flush());
  shape.of = PartOf(spec.of());
  shape.parts = disks.parts;
  shape.per_part = disks.per_part;
  if (shape.of) {
    shape.of->parts = disks.per_part;
    shape.of->per_part = 1;
  }
  return shape;
}

}  // namespace

Result<VolumeShape> VolumeShape::From(const v1::VolumeStack& spec, std::uint32_t disks) {
  const Result<convert::VolumeDisks> share = convert::ShareDisks(spec, disks);
  if (!share) return std::unexpected(share.error());
  switch (spec.kind_case()) {
    case v1::VolumeStack::kConcat:
      return Whole({.kind = Kind::kConcat, .of = nullptr}, spec.concat(), *share);
    case v1::VolumeStack::kStripe:
      return Whole(StripeShape(spec.stripe()), spec.stripe(), *share);
    case v1::VolumeStack::kMirror:
      return Whole(MirrorShape(spec.mirror()), spec.mirror(), *share);
    case v1::VolumeStack::kRaid5:
      return Whole(Raid5Shape(spec.raid5()), spec.raid5(), *share);
    case v1::VolumeStack::KIND_NOT_SET:
      break;
  }
  return Fail(Errc::kInvalidArgument, "volume",
              "is of a kind that this agent does not know; is it older than the controller?");
}

std::string VolumeShape::Describe() const {
  std::string text(volume::KindName(kind));
  if (kind == Kind::kMirror) text += fmt::format(" ({})", parts);
  if (kind == Kind::kStripe) text += fmt::format(" ({})", FormatBytesExact(interlace));
  if (kind == Kind::kRaid5) {
    text += fmt::format(" ({}, {})", FormatBytesExact(interlace),
                        volume::ParityLogModeName(parity_log));
  }
  return of ? text + " of " + of->Describe() : text;
}

}  // namespace labrack::stack
