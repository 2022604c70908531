// The parity log of a RAID-5: slots on every column, into which a write puts what makes its change
// of several columns whole after a power cut (record formats: parity_log_record.h; what is done
// with them after one: parity_replay.h).
//
//   Take(columns) --> id, a slot on each --> entries are written, durably --> ... in place ...
//        ^                                                                        |
//        +--- Clean: flush, floor --- all below the oldest write in flight <--- Done(id)
//
// Each column's slots are a ring, used in the order of ids. A slot is free when its id is below the
// durable floor. Clean raises the floor over all writes that are done, after a flush of what they
// wrote in place (with partial parities those writes are durable by themselves).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "storage/base/aligned_buffer.h"
#include "storage/runtime/sync.h"
#include "storage/volume/parity_log_record.h"
#include "storage/volume/raid5_columns.h"

namespace labrack::volume {

// Where the slots are on each column.
struct ParityLogShape {
  ParityLogMode mode = ParityLogMode::kPrewrite;
  std::uint64_t volume_id = 0;
  Bytes block;
  Bytes interlace;
  std::size_t slot_count = 0;  // per column

  static constexpr std::size_t kSlotsMax = 100;

  Bytes slot_size() const { return block + interlace; }
  Bytes head_size() const { return block * 2; }
  // As many slots as fit into `log_size`, at most kSlotsMax; none in mode none.
  static std::size_t SlotCount(ParityLogMode mode, Bytes log_size, Bytes block, Bytes interlace);
  // What `slots` slots need.
  static Bytes LogSize(ParityLogMode mode, std::size_t slots, Bytes block, Bytes interlace);

  Offset HeadAt(const Component& column, std::uint64_t generation) const {
    return column.log_at + block * (generation % 2);
  }
  Offset SlotAt(const Component& column, std::size_t slot) const {
    return column.log_at + head_size() + slot_size() * slot;
  }
  LogPlace Place(std::size_t column, Offset at) const { return {volume_id, column, at}; }
};

class ParityLog {
 public:
  ParityLog(Raid5Columns& columns, const ParityLogShape& shape);

  struct Ticket {
    std::uint64_t id = 0;
    std::uint64_t columns = 0;
    std::array<std::uint8_t, kRaid5ColumnsMax> slot = {};  // of each of the columns
  };
  // A slot on each column of the bit mask. Waits until there are some.
  Task<Result<Ticket>> Take(std::uint64_t columns);
  // All that the entry protects is in place (and durable, with partial parities); or `in_place` is
  // false, the volume is broken, and the entries stay for the next assembly.
  void Done(const Ticket& ticket, bool in_place);

  // Frees the slots of all that is done.
  Task<Result<void>> Clean();
  // More than half of the slots are used, and some could be freed.
  bool WantsCleaning() const;

  // Writes the head with the highest floor that is allowed to all columns that take writes. What
  // the writes that are done wrote in place is durable already.
  Task<Result<void>> Seal(bool in_use);
  // As the heads found at assembly say, or for a new log.
  void Adopt(const LogHead& head, std::uint64_t next_id);
  bool in_use() const { return head_.in_use; }
  // Mode none: what is written from now on may leave parity wrong; durable on return.
  Task<Result<void>> MarkInUse();

  const ParityLogShape& shape() const { return shape_; }
  std::uint64_t next_id() const { return next_id_; }

 private:
  std::uint64_t OldestInFlight() const;
  Task<Result<void>> WriteHead(std::uint64_t floor, bool in_use);
  bool SlotFree(std::size_t column) const;

  Raid5Columns& columns_;
  ParityLogShape shape_;
  LogHead head_;
  std::uint64_t next_id_ = 1;
  bool stuck_ = false;
  std::vector<std::uint64_t> in_flight_;  // ids, ascending
  struct Ring {
    std::size_t next = 0;
    std::array<std::uint64_t, ParityLogShape::kSlotsMax> id = {};  // the last user of each slot
  };
  std::vector<Ring> rings_;
  std::vector<AlignedBuffer> head_blocks_;  // one per column
  runtime::Mutex taking_;
  runtime::Mutex cleaning_;
  runtime::Event progress_;
};

}  // namespace labrack::volume
