#include "storage/block/disk/mechanics.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

// The square root of `value`, rounded down, in integers: the same on every machine.
std::uint64_t IntegerSqrt(std::uint64_t value) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit > 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= value) root += bit;
  }
  return root;
}

// sqrt(value) in units of 1/256.
std::int64_t SqrtIn256ths(std::uint32_t value) {
  return static_cast<std::int64_t>(IntegerSqrt(static_cast<std::uint64_t>(value) << 16));
}

}  // namespace

Nanoseconds SeekCurve::Time(std::uint32_t cylinders) const {
  if (cylinders == 0) return Nanoseconds(0);
  if (cylinders < knee_cylinders) {
    return Nanoseconds(near_base_ns + near_sqrt_ns * SqrtIn256ths(cylinders) / 256);
  }
  return Nanoseconds(far_base_ns + far_linear_ps * cylinders / 1000);
}

std::vector<Zone> EvenZones(std::uint32_t cylinders, std::uint32_t outer, std::uint32_t inner,
                            std::uint32_t count) {
  LABRACK_CHECK(count > 0 && cylinders >= count && outer >= inner);
  std::vector<Zone> zones;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t begin = static_cast<std::uint32_t>(std::uint64_t{cylinders} * i / count);
    const std::uint32_t end =
        static_cast<std::uint32_t>(std::uint64_t{cylinders} * (i + 1) / count);
    const std::uint32_t fall = count == 1 ? 0 : (outer - inner) * i / (count - 1);
    zones.push_back({.cylinders = end - begin, .sectors_per_track = outer - fall});
  }
  return zones;
}

Result<void> MechanicsOptions::Validate() const {
  if (revolution_ns <= 0) {
    return Fail(Errc::kInvalidArgument, "revolution", "it takes some time: 8333333 ns at 7200 rpm");
  }
  if (surfaces == 0 || zones.empty()) {
    return Fail(Errc::kInvalidArgument, "geometry", "a disk has surfaces, and at least one zone");
  }
  for (const Zone& zone : zones) {
    if (zone.cylinders > 0 && zone.sectors_per_track > 0) continue;
    return Fail(Errc::kInvalidArgument, "geometry", "a zone has cylinders, and sectors in a track");
  }
  if (head_switch_ns < 0 || write_settle_ns < 0 || seek.near_base_ns < 0 || seek.far_base_ns < 0) {
    return Fail(Errc::kInvalidArgument, "seek", "no time is negative");
  }
  const std::int64_t to_track = head_switch_ns + write_settle_ns;
  const std::int64_t to_cylinder = seek.Time(1).count() + write_settle_ns;
  if (track_skew_ns < to_track || track_skew_ns >= revolution_ns) {
    return Fail(Errc::kInvalidArgument, "track skew",
                "from head switch and write settle to less than a revolution");
  }
  if (cylinder_skew_ns < to_cylinder || cylinder_skew_ns >= revolution_ns) {
    return Fail(Errc::kInvalidArgument, "cylinder skew",
                "from a seek of one cylinder and write settle to less than a revolution");
  }
  return {};
}

Mechanics::Mechanics(MechanicsOptions options) : options_(std::move(options)) {
  LABRACK_CHECK(options_.Validate().has_value());
  std::uint64_t sector = 0;
  std::uint32_t cylinder = 0;
  for (const Zone& zone : options_.zones) {
    zones_.push_back({sector, cylinder, zone.sectors_per_track});
    sector += std::uint64_t{zone.cylinders} * options_.surfaces * zone.sectors_per_track;
    cylinder += zone.cylinders;
  }
  capacity_ = sector * MechanicsOptions::kSector;
}

Mechanics::Address Mechanics::AddressOf(std::uint64_t sector) const {
  const auto after = std::ranges::upper_bound(zones_, sector, {}, &ZoneStart::sector);
  const ZoneStart& zone = *std::prev(after);
  const std::uint64_t within = sector - zone.sector;
  const std::uint64_t track = within / zone.sectors_per_track;
  return {.cylinder = zone.cylinder + static_cast<std::uint32_t>(track / options_.surfaces),
          .surface = static_cast<std::uint32_t>(track % options_.surfaces),
          .sector = static_cast<std::uint32_t>(within % zone.sectors_per_track),
          .sectors_per_track = zone.sectors_per_track};
}

std::int64_t Mechanics::SkewOf(const Address& address) const {
  return address.surface == 0 ? options_.cylinder_skew_ns : options_.track_skew_ns;
}

std::int64_t Mechanics::Angle(const Address& address) const {
  const std::int64_t each_cylinder =
      (options_.surfaces - 1) * options_.track_skew_ns + options_.cylinder_skew_ns;
  const std::int64_t skew = address.cylinder * each_cylinder % options_.revolution_ns +
                            address.surface * options_.track_skew_ns;
  const std::int64_t along = address.sector * options_.revolution_ns / address.sectors_per_track;
  return (skew + along) % options_.revolution_ns;
}

Nanoseconds Mechanics::Move(Position from, const Address& to, bool write) const {
  const std::uint32_t distance =
      from.cylinder > to.cylinder ? from.cylinder - to.cylinder : to.cylinder - from.cylinder;
  Nanoseconds time = options_.seek.Time(distance);
  if (distance == 0 && from.surface != to.surface) time = Nanoseconds(options_.head_switch_ns);
  if (write && time.count() > 0) time += Nanoseconds(options_.write_settle_ns);
  return time;
}

Mechanics::Position Mechanics::PositionOf(Offset at) const {
  const Address address = AddressOf(at.value() / MechanicsOptions::kSector.count());
  return {address.cylinder, address.surface};
}

Nanoseconds Mechanics::Positioning(Position position, Offset at, bool write,
                                   TimePoint begin) const {
  const Address address = AddressOf(at.value() / MechanicsOptions::kSector.count());
  const Nanoseconds seek = Move(position, address, write);
  const std::int64_t arrival = (begin + seek).time_since_epoch().count() % options_.revolution_ns;
  const std::int64_t wait =
      (Angle(address) - arrival + options_.revolution_ns) % options_.revolution_ns;
  return seek + Nanoseconds(wait);
}

Mechanics::Times Mechanics::Serve(Position& position, Offset at, Bytes length, bool write,
                                  TimePoint begin) const {
  LABRACK_CHECK(IsAligned(at, MechanicsOptions::kSector) && length > Bytes(0) &&
                IsAligned(length, MechanicsOptions::kSector) &&
                Bytes(at.value()) + length <= capacity_);
  Times times;
  std::uint64_t sector = at.value() / MechanicsOptions::kSector.count();
  std::uint64_t left = length / MechanicsOptions::kSector;
  Address address = AddressOf(sector);
  times.seek = Move(position, address, write);
  times.rotation = Positioning(position, at, write, begin) - times.seek;
  for (;;) {
    const std::uint64_t here =
        std::min<std::uint64_t>(left, address.sectors_per_track - address.sector);
    times.transfer += Nanoseconds(static_cast<std::int64_t>(here) * options_.revolution_ns /
                                  address.sectors_per_track);
    sector += here;
    left -= here;
    if (left == 0) break;
    address = AddressOf(sector);
    times.transfer += Nanoseconds(SkewOf(address));
  }
  position = {address.cylinder, address.surface};
  return times;
}

Nanoseconds Mechanics::Continuing(Offset at, Bytes length) const {
  if (length == Bytes(0)) return Nanoseconds(0);
  const Address first = AddressOf(at.value() / MechanicsOptions::kSector.count());
  Position position{first.cylinder, first.surface};
  const Nanoseconds transfer = Serve(position, at, length, false, TimePoint{}).transfer;
  return transfer + Nanoseconds(first.sector == 0 ? SkewOf(first) : 0);
}

Bytes Mechanics::PassedAfter(Offset at, Bytes length, Nanoseconds time) const {
  const std::uint64_t wanted = length / MechanicsOptions::kSector;
  std::uint64_t sector = at.value() / MechanicsOptions::kSector.count();
  std::uint64_t passed = 0;
  std::int64_t left = time.count();
  while (passed < wanted) {
    const Address address = AddressOf(sector + passed);
    if (address.sector == 0) left -= SkewOf(address);
    if (left <= 0) break;
    const std::uint64_t here =
        std::min<std::uint64_t>(wanted - passed, address.sectors_per_track - address.sector);
    const std::int64_t takes =
        static_cast<std::int64_t>(here) * options_.revolution_ns / address.sectors_per_track;
    if (takes > left) {
      passed +=
          static_cast<std::uint64_t>(left * address.sectors_per_track / options_.revolution_ns);
      break;
    }
    left -= takes;
    passed += here;
  }
  return passed * MechanicsOptions::kSector;
}

}  // namespace labrack::block
