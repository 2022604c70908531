// Planted faults: real mistakes that the simulations must find, one at a time. Code that holds one
// says `if (LABRACK_PLANTED(kSkipX)) wrong; else right;`. Only a test program that compiles the
// code anew with LABRACK_PLANTS can switch it on; everywhere else the macro is the constant false,
// and nothing of it is left. tests/sim/README.md lists what finds each.
#pragma once

#ifdef LABRACK_PLANTS

namespace labrack {

enum class Plant {
  kNone,
  // RAID-5, parity log
  kPrewriteNotDurable,  // acknowledged while prewrites are in the disks' caches only
  kSlotFreedEarly,      // a slot is used again before its writes in place are durable
  kFloorNotWritten,     // a slot is used again while its predecessors could still be replayed
  kReplayIncomplete,    // a write is replayed though one of its entries is not whole
  kReplayUnsorted,      // in the order of the slots, not of the ids
  kReplayBelowFloor,    // what is over is replayed again
  kPartialParityLate,   // logged while the writes in place are under way
  kPartialParityWhole,  // the whole parity is logged instead
  // RAID-5, columns
  kFailureNotRecorded,    // acknowledged before the loss of a column is durable
  kSpareReadEarly,        // a spare is read where nothing was rebuilt yet
  kSpareWritesSkipped,    // a write to what is rebuilt already leaves the spare out
  kRebuildUnlocked,       // a line is rebuilt beside a write to it
  kDirtyDegradedStarted,  // without a log, and parity may be wrong
  kParityOfOldData,       // read-modify-write leaves the new data out
  kDegradedFullLine,      // the missing chunk of a whole line is left out of parity
  // Mirror
  kDirtyMarkSkipped,       // written before its region is marked
  kDirtyClearedEarly,      // a mark goes while a submirror may still lose the write
  kUnsyncedReadAnywhere,   // what may differ is read from any submirror
  kMirrorLossNotRecorded,  // acknowledged before the loss of a submirror is durable
  kResyncUnlocked,         // a copy beside writes to what it copies
  kCopiedNotFlushed,       // in sync before the copies are durable
  kNothingCopied,          // a submirror counts as whole without having been written
  // Sets of disks
  kHalfStarts,        // half of the disks may start
  kPromiseSkipped,    // a start asks for no promise
  kMissingNotFailed,  // a component that is missing at the start is not recorded as failed
};

extern Plant planted;  // of the test program

}  // namespace labrack

#define LABRACK_PLANTED(fault) (::labrack::planted == ::labrack::Plant::fault)

#else

#define LABRACK_PLANTED(fault) false

#endif
