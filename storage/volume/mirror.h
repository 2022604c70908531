// Mirror (RAID-1) of 2 to 8 submirrors.
//
//   Write --> lock range --> mark regions dirty (durable) --> every submirror --> record what
//                                                             failed (durable) --> acknowledge
//   Read  --> one okay submirror, by policy; the first okay one where regions are unsynced
//
//   submirror:  okay <--- resyncing <--- attach, hot spare, online
//                 \           \
//                  +-----------+--> failed   (or offline, by Offline)
//
// A submirror that fails a write or a flush is dropped, never retried in place: what it missed
// would come back as data. The last okay one is not dropped; its errors are the volume's. A read
// that fails on one submirror is answered by another, and the sectors are written anew.
//
// After a crash the submirrors may differ in the regions that were dirty. Both contents are right,
// but a reader must not see one and then the other; so reads of an unsynced region go to one
// submirror until the resync (resync.cc) has copied it to the others.
//
// The log of each component holds its copy of the dirty record (dirty_regions.h).
// Source: Solaris Volume Manager, mirror.c. Lives on one reactor; not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "storage/base/aligned_buffer.h"
#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"
#include "storage/runtime/sync.h"
#include "storage/runtime/task_group.h"
#include "storage/volume/component.h"
#include "storage/volume/dirty_regions.h"
#include "storage/volume/range_lock.h"

namespace labrack::volume {

// Stored; the numbers stay.
enum class ReadPolicy : std::uint8_t {
  kRoundRobin = 0,
  kGeometric = 1,  // each submirror has its part of the addresses, so its arm moves less
  kFirst = 2,
};
inline constexpr int kReadPolicyCount = 3;
enum class WriteMode : std::uint8_t {
  kParallel = 0,
  kSerial = 1,  // one submirror after the other
};
inline constexpr int kWriteModeCount = 2;

struct MirrorOptions {
  ReadPolicy read_policy = ReadPolicy::kRoundRobin;
  WriteMode write_mode = WriteMode::kParallel;
  block::FlushMode flush_mode = block::FlushMode::kPass;
  // Resync what is unsynced, and take hot spares, as soon as it is seen; otherwise by Resync only.
  bool auto_resync = true;
  Bytes resync_chunk = 256_KiB;
  // Nothing is written, not even by Close; the caller writes nothing either.
  bool read_only = false;
  // What the volume was made with: it stays when the smallest submirror has gone. Zero: as large as
  // the submirrors allow.
  Bytes size = {};
};

class Mirror final : public block::BlockDevice, private DirtyStore {
 public:
  static constexpr std::size_t kSubmirrorsMin = 2;
  static constexpr std::size_t kSubmirrorsMax = 8;
  // Of each component, for its copy of the dirty record.
  static constexpr Bytes kLogSize = Bytes(4096);

  // What a mirror of these would be; nothing is read. `size`: as of the options. Errors as Open's.
  static Result<block::Geometry> Plan(const std::vector<Component>& submirrors, Bytes size);
  // What new submirrors hold. kUnknown: all is dirty, so the first one's content will be copied to
  // the others. kEqual: they are known to hold the same, and nothing is copied.
  enum class Content : std::uint8_t { kUnknown, kEqual };
  // Errors as Open's.
  static Task<Result<void>> Format(runtime::Reactor* reactor, std::vector<Component> submirrors,
                                   Content content = Content::kUnknown);

  // A submirror without a device is missing. `ledger` may be null where no state has to survive.
  // Errors: kInvalidArgument (number of submirrors, mixed sector sizes, one device twice),
  // kUnavailable (none is okay).
  static Task<Result<std::unique_ptr<Mirror>>> Open(runtime::Reactor* reactor,
                                                    std::vector<Component> submirrors,
                                                    MirrorOptions options, Ledger* ledger);
  // Ends what runs in the background, flushes, and leaves no region dirty that is synced. Must have
  // ended before the mirror is destroyed. Nothing else runs meanwhile.
  Task<Result<void>> Close();
  ~Mirror() override;

  block::Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(block::IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(block::IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(block::IoContext io) override;

  // Whether Attach would take it.
  Result<void> CheckAttach(std::size_t slot, const Component& submirror) const;
  // A new submirror in an empty slot, or in place of a failed one; it is resynced whole. Its
  // owner has recorded it already, as resyncing. Errors: kInvalidArgument (too small, another
  // sector size, slot in use).
  Task<Result<void>> Attach(std::size_t slot, Component submirror);
  // Takes a submirror out, recorded as failed; no I/O of it is left on return. Errors:
  // kInvalidArgument (no such submirror), kBusy (it is the last okay one, or an okay one while
  // regions are unsynced), the ledger's.
  Task<Result<void>> Detach(std::size_t slot);
  // Sets an okay submirror aside (errors as Detach's), and takes it back: then only what was
  // written meanwhile is copied.
  Task<Result<void>> Offline(std::size_t slot);
  Task<Result<void>> Online(std::size_t slot);

  // Copies until all live submirrors are equal. With auto_resync, waits for the one that runs.
  // Errors: what stopped it; the submirrors keep their states then.
  Task<Result<void>> Resync();

  std::size_t slot_count() const { return legs_.size(); }
  bool empty(std::size_t slot) const { return legs_[slot].part.device == nullptr; }
  State state(std::size_t slot) const { return legs_[slot].part.state; }
  const Component& component(std::size_t slot) const { return legs_[slot].part; }
  std::size_t unsynced_count() const { return dirty_.unsynced_count(); }
  const DirtyRegions& dirty() const { return dirty_; }

 private:
  struct Leg {
    Component part;            // no device: the slot is empty
    bool recorded = true;      // the ledger knows the state, or need not
    bool was_offline = false;  // the ledger says offline until the resync is over
    std::vector<bool> needs;   // regions to be copied while resyncing
  };
  // What an I/O to all live submirrors came to.
  struct Outcome {
    std::array<bool, kSubmirrorsMax> tried{};
    std::array<std::optional<Error>, kSubmirrorsMax> errors;
  };

  Mirror(runtime::Reactor& reactor, std::vector<Component> submirrors, MirrorOptions options,
         Ledger* ledger, block::Geometry geometry);
  Task<void> LoadDirty();

  static bool Okay(const Leg& leg) {
    return leg.part.device != nullptr && leg.part.state == State::kOkay;
  }
  // Gets every write.
  static bool Live(const Leg& leg) {
    return Okay(leg) || (leg.part.device != nullptr && leg.part.state == State::kResyncing);
  }
  static Offset At(const Leg& leg, Offset at) { return leg.part.data_at + Bytes(at.value()); }
  std::size_t OkayCount() const;
  std::size_t Pin();  // whom readers of unsynced regions are sent to
  std::size_t PickReader(Offset at, Bytes length);
  Result<void> CheckLeaves(std::size_t slot) const;

  Task<Result<void>> ReadAny(block::IoContext io, Offset at, MutableView into,
                             std::size_t* unreadable);
  Task<Result<void>> ReadMerged(block::IoContext io, Offset at, MutableView into);
  Task<Result<void>> WriteMarked(block::IoContext io, Offset at, ConstView from);
  Task<Result<void>> WriteLive(block::IoContext io, Offset at, ConstView from);
  Task<Result<void>> WriteParallel(block::IoContext io, Offset at, ConstView from);
  Task<Result<void>> WriteSerial(block::IoContext io, Offset at, ConstView from);
  Task<Result<void>> FlushLive(block::IoContext io);
  Task<Result<void>> FlushAndSettle(block::IoContext io);
  Task<Result<void>> StoreDirty(block::IoContext io, ConstView record) override;

  // Drops what failed, if an okay submirror did not; otherwise gives the error.
  Result<void> Settle(const Outcome& outcome);
  void Drop(Leg& leg);
  bool AllRecorded() const;
  Task<Result<void>> RecordStates(block::IoContext io);
  Task<Result<void>> Promote(std::size_t slot, State from, State to);
  void UpdateKeep();

  // resync.cc
  void Join(Leg& leg, Component part);
  void StartRepair();
  Task<void> Repair();
  Task<Result<void>> RepairStep();
  bool RepairDone() const;
  bool WantsSpare() const;
  Task<Result<void>> TakeSpares();
  std::size_t NextRegion() const;
  Task<Result<void>> CopyRegion(std::size_t region);
  Task<Result<void>> CopyChunk(Offset at, Bytes length, std::uint32_t targets);
  Task<Result<void>> WriteCopy(Offset at, ConstView from, std::uint32_t targets);
  Task<void> Rewrite(Offset at, Bytes length, std::size_t slot);
  Task<Result<void>> FinishLegs();

  runtime::Reactor& reactor_;
  MirrorOptions options_;
  Ledger* ledger_;
  block::Geometry geometry_;
  std::vector<Leg> legs_;  // by slot, which never changes
  DirtyRegions dirty_;
  RangeLock ranges_;
  // Claimed for reading by what uses submirrors without a range, for writing by what swaps one.
  // After ranges_, never before.
  RangeLock members_;
  runtime::Mutex recording_;
  AlignedBuffer record_buffer_;
  std::size_t next_reader_ = 0;
  std::size_t pin_ = 0;
  TimePoint cleaned_{};

  std::uint64_t join_count_ = 0;
  std::uint64_t lost_write_count_ = 0;  // writes that failed on all submirrors
  bool no_spare_ = false;               // that fits, until another submirror fails
  bool repairing_ = false;
  bool closing_ = false;
  bool closed_ = false;
  Result<void> repair_result_;
  runtime::Event repaired_;
  AlignedBuffer copy_buffer_;
  runtime::TaskGroup background_;
};

}  // namespace labrack::volume
