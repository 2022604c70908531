#include "storage/volume/dirty_regions.h"

#include <algorithm>
#include <cstring>

#include "storage/base/check.h"
#include "storage/base/crc64.h"
#include "storage/base/plant.h"

namespace labrack::volume {
namespace {

constexpr std::uint64_t kMagic = 0x5249442d4b43424cULL;  // "LBCK-DIR"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kBitsAt = 32;
constexpr std::size_t kBitsMax = 448 * std::size_t{8};
constexpr std::size_t kCrcAt = kDirtyRecordSize.size() - 8;

template <typename T>
void Put(DirtyRecord& record, std::size_t at, T value) {
  std::memcpy(record.data() + at, &value, sizeof(value));
}
template <typename T>
T Get(ConstView record, std::size_t at) {
  T value{};
  std::memcpy(&value, record.data() + at, sizeof(value));
  return value;
}

// Everything but the bits and the CRC.
DirtyRecord Head(DirtyShape shape, std::uint64_t sequence) {
  DirtyRecord record{};
  Put(record, 0, kMagic);
  Put(record, 8, kVersion);
  Put(record, 12, static_cast<std::uint32_t>(shape.count));
  Put(record, 16, shape.region_size.count());
  Put(record, 24, sequence);
  return record;
}

void SetBit(DirtyRecord& record, std::size_t bit) {
  record[kBitsAt + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
}

std::uint64_t CrcOf(ConstView record) { return Crc64(record.first(kCrcAt), kMagic); }

void Seal(DirtyRecord& record) { Put(record, kCrcAt, CrcOf(record)); }

bool Checks(ConstView record, DirtyShape shape) {
  return record.size() >= kDirtyRecordSize.size() &&
         Get<std::uint64_t>(record, kCrcAt) == CrcOf(record) &&
         Get<std::uint64_t>(record, 0) == kMagic && Get<std::uint32_t>(record, 8) == kVersion &&
         Get<std::uint32_t>(record, 12) == shape.count &&
         Get<std::uint64_t>(record, 16) == shape.region_size.count();
}

}  // namespace

DirtyShape ShapeOfRegions(Bytes volume_size, Bytes block_size) {
  constexpr std::uint64_t kBlocksMin = 200;
  constexpr std::uint64_t kRegions = 1000;
  const std::uint64_t blocks = volume_size / block_size;
  const std::uint64_t per_region = std::max(kBlocksMin, (blocks + kRegions - 1) / kRegions);
  return {.region_size = block_size * per_region,
          .count = static_cast<std::size_t>((blocks + per_region - 1) / per_region)};
}

DirtyRegions::DirtyRegions(runtime::Reactor& reactor, DirtyStore& store, DirtyShape shape)
    : reactor_(reactor), store_(store), shape_(shape), regions_(shape.count), storing_(reactor) {
  LABRACK_CHECK(shape.count > 0 && shape.count <= kBitsMax);
}

void DirtyRegions::Load(ConstView record) {
  const bool good = Checks(record, shape_);
  if (good) stored_sequence_ = std::max(stored_sequence_, Get<std::uint64_t>(record, 24));
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const bool set = !good || (record[kBitsAt + i / 8] & std::byte(1U << (i % 8))) != std::byte{0};
    if (!set) continue;
    // One submirror's record may lack what another's has, so the bit is not surely on all.
    regions_[i].maybe = true;
    regions_[i].unsynced = true;
  }
}

DirtyRecord DirtyRegions::AllDirty(DirtyShape shape) {
  DirtyRecord record = Head(shape, 0);
  for (std::size_t i = 0; i < shape.count; ++i) SetBit(record, i);
  Seal(record);
  return record;
}

DirtyRecord DirtyRegions::NoneDirty(DirtyShape shape) {
  DirtyRecord record = Head(shape, 0);
  Seal(record);
  return record;
}

std::size_t DirtyRegions::End(Offset at, Bytes length) const {
  return static_cast<std::size_t>((at.value() + length.count() + shape_.region_size.count() - 1) /
                                  shape_.region_size.count());
}

bool DirtyRegions::Marked(Offset at, Bytes length) const {
  for (std::size_t i = First(at); i < End(at, length); ++i) {
    if (!regions_[i].on_disk) return false;
  }
  return true;
}

void DirtyRegions::Begin(Offset at, Bytes length) {
  const TimePoint now = reactor_.Now();
  for (std::size_t i = First(at); i < End(at, length); ++i) {
    ++regions_[i].writing;
    regions_[i].touched = now;
  }
}

bool DirtyRegions::TryMark(Offset at, Bytes length) {
  if (!Marked(at, length)) return false;
  Begin(at, length);
  return true;
}

Task<Result<void>> DirtyRegions::Mark(block::IoContext io, Offset at, Bytes length) {
  Begin(at, length);
  if (LABRACK_PLANTED(kDirtyMarkSkipped)) co_return {};
  co_await storing_.Lock();
  runtime::Mutex::Held held(storing_);
  if (Marked(at, length)) co_return {};
  Result<void> stored = co_await StoreLocked(io, false);
  if (!stored) Done(at, length, true);
  co_return stored;
}

void DirtyRegions::Done(Offset at, Bytes length, bool durable) {
  ++sequence_;
  for (std::size_t i = First(at); i < End(at, length); ++i) {
    Region& region = regions_[i];
    LABRACK_CHECK(region.writing > 0);
    --region.writing;
    if (durable) continue;
    region.unsettled = true;
    region.ended = sequence_;
  }
}

void DirtyRegions::EndFlush(std::uint64_t begun) {
  for (Region& region : regions_) {
    if (region.writing == 0 && region.ended <= begun) region.unsettled = false;
    if (region.copied == 0 || region.copied > begun) continue;
    region.copied = 0;
    region.unsynced = false;
  }
}

// A region that is being written, or whose last writes a submirror may still lose, or that is not
// made equal yet, must be in the next record.
bool DirtyRegions::Wanted(const Region& region, bool all) const {
  const bool unsettled = region.unsettled && !LABRACK_PLANTED(kDirtyClearedEarly);
  if (region.writing > 0 || unsettled || region.unsynced) return true;
  if (!region.on_disk && !region.maybe) return false;
  return keep_ || (!all && reactor_.Now() - region.touched < kCleanAfter);
}

bool DirtyRegions::WouldClear(bool all) const {
  return std::ranges::any_of(regions_, [&](const Region& region) {
    return (region.on_disk || region.maybe) && !Wanted(region, all);
  });
}

Task<Result<void>> DirtyRegions::Clean(block::IoContext io, bool all) {
  if (!WouldClear(all)) co_return {};
  co_await storing_.Lock();
  runtime::Mutex::Held held(storing_);
  if (!WouldClear(all)) co_return {};
  Result<void> stored = co_await StoreLocked(io, all);
  co_return stored;
}

Task<Result<void>> DirtyRegions::Store(block::IoContext io) {
  co_await storing_.Lock();
  runtime::Mutex::Held held(storing_);
  Result<void> stored = co_await StoreLocked(io, false);
  co_return stored;
}

// While the record is on its way a bit counts as set only if it is set before and after: a write
// that comes meanwhile to a region that is being cleared has to mark it again.
Task<Result<void>> DirtyRegions::StoreLocked(block::IoContext io, bool all) {
  record_ = Head(shape_, ++stored_sequence_);
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    Region& region = regions_[i];
    const bool wanted = Wanted(region, all);
    if (wanted) SetBit(record_, i);
    region.maybe = region.maybe || region.on_disk || wanted;
    region.on_disk = region.on_disk && wanted;
  }
  Seal(record_);
  ++store_count_;
  Result<void> stored = co_await store_.StoreDirty(io, record_);
  if (!stored) co_return stored;
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const bool set = (record_[kBitsAt + i / 8] & std::byte(1U << (i % 8))) != std::byte{0};
    regions_[i].on_disk = set;
    regions_[i].maybe = set;
  }
  co_return {};
}

bool DirtyRegions::Unsynced(Offset at, Bytes length) const {
  for (std::size_t i = First(at); i < End(at, length); ++i) {
    if (regions_[i].unsynced) return true;
  }
  return false;
}

void DirtyRegions::SetUnsynced(Offset at, Bytes length) {
  for (std::size_t i = First(at); i < End(at, length); ++i) {
    regions_[i].unsynced = true;
    regions_[i].copied = 0;
  }
}

void DirtyRegions::Copied(std::size_t region) { regions_[region].copied = ++sequence_; }

std::size_t DirtyRegions::unsynced_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(regions_, &Region::unsynced));
}

bool DirtyRegions::marked(std::size_t region) const {
  return regions_[region].on_disk || regions_[region].maybe;
}

}  // namespace labrack::volume
