// What a parity log does after a power cut, before the volume is used. Entries below the floor are
// over; of the others, in the order of their ids:
//
//   prewrite   All entries of the id are whole (those on a missing column left out): all its data
//              are written in place, again. Otherwise the write was never acknowledged and nothing
//              of it is in place: it is discarded.
//   ppl        Of each line the last entry only, since a write begins when the one before it in
//              the line is in place, durably. The entry is whole: parity := partial parity ^ what
//              the written chunks hold now. Rows that the write touched on the missing column
//              cannot be made consistent, and stay. Not whole: nothing of the write is in place.
//
// Within a power-cut-safe order of events each can be done again from the beginning, so a cut
// during a replay is just another replay.
#pragma once

#include "storage/volume/parity_log.h"

namespace labrack::volume {

struct ReplayReport {
  std::optional<LogHead> head;  // none: no column has one that checks
  std::uint64_t next_id = 1;    // above every id that is on a column
  std::uint64_t applied_count = 0;
  std::uint64_t discarded_count = 0;
};

// A column whose log cannot be read fails, and the replay begins again without it. Errors:
// kCorrupt for a head of another mode; kIo when too many columns fail.
Task<Result<ReplayReport>> ReplayParityLog(Raid5Columns& columns, const Raid5Layout& layout,
                                           const ParityLogShape& shape);

}  // namespace labrack::volume
