#include "storage/block/wrap/fault_plan.h"

#include <algorithm>

#include "storage/base/check.h"
#include "storage/base/units.h"
#include "storage/block/wrap/fault_atlas.h"

namespace labrack::block {

std::string_view FaultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kLatentError:
      return "latent error";
    case FaultKind::kBitRot:
      return "bit rot";
    case FaultKind::kTornWrite:
      return "torn write";
    case FaultKind::kLostWrite:
      return "lost write";
    case FaultKind::kMisdirectedWrite:
      return "misdirected write";
    case FaultKind::kMisdirectedRead:
      return "misdirected read";
    case FaultKind::kStaleRead:
      return "stale read";
    case FaultKind::kLyingFlush:
      return "lying flush";
    case FaultKind::kFailingFlush:
      return "failing flush";
    case FaultKind::kSlow:
      return "slow";
    case FaultKind::kHang:
      return "hang";
    case FaultKind::kGone:
      return "gone";
    case FaultKind::kFull:
      return "full";
  }
  return "unknown";
}

bool Fault::OfWholeDevice() const { return kind >= FaultKind::kLyingFlush; }

bool Fault::Reported() const {
  switch (kind) {
    case FaultKind::kBitRot:
    case FaultKind::kTornWrite:
    case FaultKind::kLostWrite:
    case FaultKind::kMisdirectedWrite:
    case FaultKind::kMisdirectedRead:
    case FaultKind::kStaleRead:
    case FaultKind::kLyingFlush:
      return false;
    case FaultKind::kGone:
      return time == Nanoseconds(0);
    case FaultKind::kLatentError:
    case FaultKind::kFailingFlush:
    case FaultKind::kSlow:
    case FaultKind::kHang:
    case FaultKind::kFull:
      return true;
  }
  return false;
}

std::string Fault::ToString() const {
  std::string text(FaultKindName(kind));
  if (!OfWholeDevice()) {
    text += " at " + std::to_string(at.value()) + "+" + std::to_string(length.count());
  }
  if (kind == FaultKind::kMisdirectedWrite || kind == FaultKind::kMisdirectedRead) {
    text += " elsewhere " + std::to_string(elsewhere.value());
  }
  text += " from " + FormatDuration(from.time_since_epoch());
  if (until != TimePoint::max()) text += " until " + FormatDuration(until.time_since_epoch());
  if (time != Nanoseconds(0)) text += " for " + FormatDuration(time);
  return text;
}

namespace {

std::string WhatIsWrong(const Fault& fault, const Geometry& geometry) {
  if (fault.until <= fault.from) return "it ends before it begins";
  if (fault.time < Nanoseconds(0)) return "its time is negative";
  const bool needs_time = fault.kind == FaultKind::kSlow || fault.kind == FaultKind::kHang;
  if (needs_time && fault.time == Nanoseconds(0)) return "it needs a time";
  if (fault.OfWholeDevice()) return "";
  if (fault.length == Bytes(0)) return "it concerns no blocks";
  if (!geometry.Covers(fault.at, fault.length)) return "its blocks are not within the device";
  if (fault.hits_max == 0) return "it hits no I/O";
  const bool misdirected =
      fault.kind == FaultKind::kMisdirectedWrite || fault.kind == FaultKind::kMisdirectedRead;
  if (!misdirected) return "";
  if (!geometry.Covers(fault.elsewhere, fault.length)) return "elsewhere is not within the device";
  const bool apart =
      fault.elsewhere + fault.length <= fault.at || fault.at + fault.length <= fault.elsewhere;
  return apart ? "" : "elsewhere is not elsewhere: it overlaps with its own blocks";
}

}  // namespace

Result<void> FaultPlan::Validate(const Geometry& geometry) const {
  std::string wrong;
  for (const Fault& fault : faults) {
    const std::string what = WhatIsWrong(fault, geometry);
    if (!what.empty()) wrong += (wrong.empty() ? "" : "\n") + fault.ToString() + ": " + what;
  }
  if (wrong.empty()) return {};
  return Fail(Errc::kInvalidArgument, "fault plan", wrong);
}

namespace {

TimePoint DrawTime(TimePoint from, TimePoint until, Random& random) {
  const auto span = static_cast<std::uint64_t>((until - from).count());
  return from + Nanoseconds(static_cast<std::int64_t>(random.Below(span)));
}

// A place for `length`, away from `other`.
Offset DrawElsewhere(Offset other, std::uint64_t blocks, const Geometry& geometry, Random& random) {
  const std::uint64_t places = geometry.size / geometry.block_size;
  const std::uint64_t first = other.value() / geometry.block_size.count();
  // Places below and above the blocks themselves; a plan of a device without any is not valid.
  const std::uint64_t below = first >= blocks ? first - blocks + 1 : 0;
  const std::uint64_t above = places >= first + 2 * blocks ? places - first - 2 * blocks + 1 : 0;
  LABRACK_CHECK(below + above > 0);
  const std::uint64_t drawn = random.Below(below + above);
  const std::uint64_t block = drawn < below ? drawn : first + blocks + (drawn - below);
  return Offset(block * geometry.block_size.count());
}

Fault DrawFault(const FaultDraw& draw, FaultKind kind, Random& random) {
  const std::uint64_t device_blocks = draw.geometry.size / draw.geometry.block_size;
  Fault fault;
  fault.kind = kind;
  fault.seed = Seed{random.Next()};
  fault.from = DrawTime(draw.from, draw.until, random);
  fault.until = DrawTime(fault.from, draw.until, random) + Nanoseconds(1);
  if (kind == FaultKind::kLatentError || kind == FaultKind::kBitRot) {
    fault.until = TimePoint::max();
  }
  fault.hits_max = 1 + static_cast<std::uint32_t>(random.Below(3));
  const auto time_max = static_cast<std::uint64_t>(draw.time_max.count());
  fault.time = Nanoseconds(static_cast<std::int64_t>(1 + random.Below(time_max)));
  if (kind == FaultKind::kGone && random.Chance(0.5)) fault.time = Nanoseconds(0);
  if (fault.OfWholeDevice()) return fault;
  const std::uint64_t blocks = 1 + random.Below(draw.blocks_max);
  fault.time = Nanoseconds(0);
  fault.length = blocks * draw.geometry.block_size;
  fault.at = Offset(random.Below(device_blocks - blocks + 1) * draw.geometry.block_size.count());
  fault.elsewhere = DrawElsewhere(fault.at, blocks, draw.geometry, random);
  return fault;
}

}  // namespace

std::vector<FaultPlan> DrawFaults(const FaultDraw& draw, FaultAtlas& atlas, Random& random) {
  LABRACK_CHECK(draw.disk_count > 0 && draw.until > draw.from && draw.blocks_max > 0);
  LABRACK_CHECK(draw.geometry.size >= 4 * (draw.blocks_max * draw.geometry.block_size));
  std::vector<FaultPlan> plans(draw.disk_count);
  std::vector<FaultKind> kinds;
  for (int i = 0; i < kFaultKindCount; ++i) {
    if (random.Chance(0.5)) kinds.push_back(static_cast<FaultKind>(i));
  }
  const std::uint64_t count = kinds.empty() ? 0 : random.Below(draw.faults_max + 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Fault fault = DrawFault(draw, kinds[random.Below(kinds.size())], random);
    const auto disk = static_cast<std::uint32_t>(random.Below(draw.disk_count));
    const bool dare = random.Chance(draw.beyond_chance);
    const FaultVerdict verdict = atlas.Judge(disk, fault);
    if (verdict == FaultVerdict::kNever || (verdict == FaultVerdict::kBeyond && !dare)) continue;
    atlas.Add(disk, fault);
    plans[disk].faults.push_back(fault);
  }
  return plans;
}

}  // namespace labrack::block
