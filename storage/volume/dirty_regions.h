// DirtyRegions: which regions of a mirror may differ between its submirrors after a crash.
//
//                 Mark: bit on disk          write ended      flushed        next Store
//   clean --------------------------> writing -----> unsettled -----> settled -----> clean
//     ^  \__ the write starts only when the bit is durable                 |
//     +--------------------------------------------------------------------+
//
// A bit is durable before any submirror changes, and goes only after every submirror has flushed
// what was written there; lazily, along with later marks, so that a region that is written again
// and again costs one write of the record. After a crash the set bits are `unsynced`: reads of them
// go to one submirror until a resync has made them equal.
// Marks that come while a record is on its way share the next one.
// Source: Solaris Volume Manager, mirror.c (md_min_rr_size 200 blocks, md_def_num_rr 1000).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/base/clock.h"
#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"
#include "storage/runtime/sync.h"

namespace labrack::volume {

using runtime::Task;

// Puts the record on every submirror, durably; fails when not even one took it.
class DirtyStore {
 public:
  virtual ~DirtyStore() = default;
  virtual Task<Result<void>> StoreDirty(block::IoContext io, ConstView record) = 0;
};

// The record: one sector, so it is on disk whole or not at all. Little-endian:
//   u64 magic, u32 version 1, u32 region count, u64 region size, u64 sequence, 448 bytes of bits,
//   zeros, u64 CRC-64 of all before, seeded with the magic
inline constexpr Bytes kDirtyRecordSize{512};
using DirtyRecord = std::array<std::byte, kDirtyRecordSize.size()>;

struct DirtyShape {
  Bytes region_size;  // the last region may be shorter
  std::size_t count = 0;
};
// max(200 blocks, size / 1000), in whole blocks.
DirtyShape ShapeOfRegions(Bytes volume_size, Bytes block_size);

class DirtyRegions {
 public:
  // How long a region stays marked after its last write, at least.
  static constexpr Nanoseconds kCleanAfter = std::chrono::seconds(5);

  DirtyRegions(runtime::Reactor& reactor, DirtyStore& store, DirtyShape shape);

  // What the record of one in-sync submirror says is unsynced from now on; also what others say.
  // A record that does not check, or is of another shape, says everything.
  void Load(ConstView record);
  // The record in which every region is dirty: of a new mirror, whose submirrors differ anywhere.
  static DirtyRecord AllDirty(DirtyShape shape);
  // The record in which none is: of a new mirror whose submirrors are known to be equal.
  static DirtyRecord NoneDirty(DirtyShape shape);

  // Before a write: true when nothing has to be stored first. Otherwise Mark does that; when it
  // fails the write must not start. Each is undone by one Done.
  bool TryMark(Offset at, Bytes length);
  Task<Result<void>> Mark(block::IoContext io, Offset at, Bytes length);
  // After it, whether it went well or not. `durable`: on the medium of all submirrors.
  void Done(Offset at, Bytes length, bool durable);

  // Around a flush of all submirrors: End(Begin()) once it has succeeded.
  std::uint64_t BeginFlush() const { return sequence_; }
  void EndFlush(std::uint64_t begun);

  // Stores the record if that would clear what has been settled for `kCleanAfter`, or for any time
  // at all with `all`.
  Task<Result<void>> Clean(block::IoContext io, bool all);
  // Stores the record as it must be now: a submirror has joined.
  Task<Result<void>> Store(block::IoContext io);

  // No bit goes while set: a submirror is offline and will need them.
  void set_keep(bool keep) { keep_ = keep; }

  bool Unsynced(Offset at, Bytes length) const;
  bool unsynced(std::size_t region) const { return regions_[region].unsynced; }
  // Unsynced, and not copied yet.
  bool NeedsCopy(std::size_t region) const {
    return regions_[region].unsynced && regions_[region].copied == 0;
  }
  // What a write that failed on all submirrors leaves.
  void SetUnsynced(Offset at, Bytes length);
  // A resync has made the submirrors equal there. The region is synced with the next flush: until
  // then a power cut could bring back, on all but one, what readers have seen replaced.
  void Copied(std::size_t region);
  std::size_t unsynced_count() const;
  // May be set on disk.
  bool marked(std::size_t region) const;

  DirtyShape shape() const { return shape_; }
  std::size_t store_count() const { return store_count_; }

 private:
  struct Region {
    std::uint32_t writing = 0;
    bool on_disk = false;  // surely set
    bool maybe = false;    // may be set: a store that should have cleared it has not ended well
    bool unsynced = false;
    std::uint64_t copied = 0;  // the sequence of the end of its copy; 0: not copied
    bool unsettled = false;    // written since the last flush of all
    std::uint64_t ended = 0;   // the sequence of its last write's end
    TimePoint touched{};
  };

  std::size_t First(Offset at) const { return at.value() / shape_.region_size.count(); }
  std::size_t End(Offset at, Bytes length) const;
  bool Marked(Offset at, Bytes length) const;
  void Begin(Offset at, Bytes length);
  bool Wanted(const Region& region, bool all) const;
  bool WouldClear(bool all) const;
  Task<Result<void>> StoreLocked(block::IoContext io, bool all);

  runtime::Reactor& reactor_;
  DirtyStore& store_;
  DirtyShape shape_;
  std::vector<Region> regions_;
  std::uint64_t sequence_ = 0;
  std::uint64_t stored_sequence_ = 0;
  bool keep_ = false;
  runtime::Mutex storing_;
  std::size_t store_count_ = 0;
  DirtyRecord record_{};
};

}  // namespace labrack::volume
