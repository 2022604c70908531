// RAID-5 (Patterson, Gibson and Katz 1988; what illumos md does, in our own code): the data of n
// disks less one, and one of them may be lost. Layout and choice of reads: raid5_layout.h. What
// happens when a column fails, and to a spare: raid5_columns.h. The log: parity_log.h.
//
// A small write, depth d, and where it is acknowledged (|):
//
//   none       read old data, old parity (d) -> data, parity in place (d+1) |
//   ppl        ... (d) -> partial parity (d+1) -> data, parity in place, durable (d+2) |
//   prewrite   ... (d) -> data and parity into the log, durable (d+1) | -> both in place (d+2)
//
// A whole line reads nothing, and each stage comes one earlier. What survives:
//
//   none       A power cut while a line is written leaves its parity wrong; a resync at assembly
//              repairs that, unless a column is missing by then: the write hole. Such a volume is
//              not assembled.
//   ppl        The hole is closed for chunks that the write did not touch. Of what it did touch, a
//              chunk on a lost column is lost too, even what it held before.
//              In-place writes are durable each, so that a later write of the same line may rely
//              on them; to flush only where lines meet again was the harder way to the same end.
//   prewrite   The hole is closed. What is acknowledged is durable, so Flush has nothing to do.
//
// A sector that cannot be read is worked out from the others and written again; a column fails
// when it does not take a write or a flush, and that is durable before what it missed is
// acknowledged. A cancelled operation ends before its first write, or not at all: half a write
// would leave parity wrong.
//
// Lives on one reactor; not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/runtime/task_group.h"
#include "storage/volume/parity_log.h"
#include "storage/volume/raid5_buffers.h"
#include "storage/volume/raid5_columns.h"
#include "storage/volume/raid5_layout.h"
#include "storage/volume/raid5_locks.h"

namespace labrack::volume {

struct Raid5Options {
  Bytes interlace = 16_KiB;  // a multiple of the block, at least two of them, at most 1 MiB
  ParityLogMode parity_log = ParityLogMode::kPrewrite;
  std::uint64_t volume_id = 0;  // of this volume alone: the log's records are bound to it
  // The components read as zeros, so the parity of a volume that was never written is right; else
  // it is worked out at the first Open.
  bool zeroed = false;
  // Assembles what kRefusedBySafety stands for all the same: the owner would rather have what is
  // right of it than nothing (as mdadm --assemble --force).
  bool force = false;
  block::FlushMode flush_mode = block::FlushMode::kPass;
};

class Raid5 final : public block::BlockDevice {
 public:
  static constexpr Bytes kInterlaceMax = 1_MiB;

  // What a RAID-5 of these would be; nothing is read. Errors as Open's.
  static Result<block::Geometry> Plan(const std::vector<Component>& components,
                                      const Raid5Options& options);
  // Of the log of each component: as many slots as there can be, so that small writes seldom wait
  // for a flush to free some; but no more than a small share of the component.
  static Bytes DefaultLogSize(ParityLogMode mode, const block::Geometry& component,
                              Bytes interlace);

  // Assembles the volume from its columns in their order, and makes it whole after a power cut. At
  // most one column may be other than kOkay; its device may be null. Sizes of data and log are what
  // they were when the volume was made. Errors: kInvalidArgument for components that cannot
  // make the volume (all problems in one note); kUnavailable when two are missing;
  // kRefusedBySafety for a volume that lacks a column and whose parity may be wrong; kCorrupt for
  // one that was made with another log. `ledger` may be null.
  static Task<Result<std::unique_ptr<Raid5>>> Open(runtime::Reactor& reactor,
                                                   std::vector<Component> components,
                                                   Raid5Options options, Ledger* ledger);
  ~Raid5() override;

  block::Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(block::IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(block::IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(block::IoContext io) override;

  // Works out the missing column on the spare in its slot, or on one from the ledger, beside reads
  // and writes. Returns at once when nothing is missing. Errors: kNotFound without a spare; kIo
  // when another column cannot be read: nothing is marked good that was not verified.
  Task<Result<void>> Rebuild(block::IoContext io);
  // The number of lines whose parity is not that of their data. With `repair` it is made so.
  Task<Result<std::uint64_t>> CheckParity(block::IoContext io, bool repair);
  // Waits for what goes on behind acknowledgements, and marks the volume clean. Must end before
  // the volume is destroyed, whatever it returns.
  Task<Result<void>> Close(block::IoContext io);

  const Raid5Layout& layout() const { return layout_; }
  const Raid5Columns& columns() const { return columns_; }

 private:
  Raid5(runtime::Reactor& reactor, std::vector<Component> components, const Raid5Options& options,
        const Raid5Layout& layout, Bytes block, std::size_t slot_count, Ledger* ledger);

  Task<Result<void>> Recover(const Raid5Options& options);

  // Writing (raid5_write.cc)
  Task<Result<void>> WriteLines(block::IoContext io, Offset at, ConstView from);
  Task<Result<void>> WriteLine(block::IoContext io, LineShare share, ConstView from);
  Task<Result<bool>> WriteLocked(LineWork& work);
  Task<Result<void>> Prepare(LineWork& work);
  Task<Result<std::optional<MissingColumn>>> ReadPlanned(LineWork& work);
  void ComputeParity(LineWork& work, std::optional<MissingColumn> missing);
  ConstView NewData(LineWork& work, std::size_t index);
  bool WritesParity(const LineWork& work) const;
  Task<Result<void>> LogPrewrites(LineWork& work, block::IoContext io);
  Task<Result<void>> LogPartialParity(LineWork& work, block::IoContext io);
  Task<Result<void>> WriteEntries(LineWork& work, block::IoContext io, std::uint64_t columns);
  Task<Result<void>> WriteInPlace(LineWork& work, block::IoContext io);
  Task<void> FinishBehind(LineWork& work, block::IoContext io);
  Task<void> CleanLog();
  void CleanLogIfNeeded();

  // Reading (raid5_read.cc)
  Task<Result<void>> ReadChunks(block::IoContext io, Offset at, MutableView into);
  Task<Result<void>> ReadChunk(block::IoContext io, Offset at, MutableView into);
  Task<Result<void>> RegenerateChunk(block::IoContext io, Offset at, MutableView into);
  Task<Result<void>> Regenerate(LineWork& work, block::IoContext io, std::size_t column, Rows rows,
                                MutableView into);

  // Rebuilding (raid5_rebuild.cc)
  Task<Result<void>> RebuildLine(block::IoContext io, std::size_t column, std::uint64_t line);
  Task<Result<void>> FinishRebuild(block::IoContext io, std::size_t column);
  Task<Result<bool>> CheckLine(block::IoContext io, std::uint64_t line, bool repair);

  runtime::Reactor& reactor_;
  Raid5Layout layout_;
  block::Geometry geometry_;
  block::FlushMode flush_mode_;
  Raid5Columns columns_;
  ParityLog log_;
  LineLocks locks_;
  LineWorkPool works_;
  runtime::TaskGroup behind_;  // writes in place after their acknowledgement, and log cleaning
};

}  // namespace labrack::volume
