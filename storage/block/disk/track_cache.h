// TrackCache: which parts of the medium a disk's buffer holds from reading, as a few segments of
// one size each, the longest unused to go first. Lengths only; the bytes are in the disk's image.
//
//   segment   begin ====read====> end ....to be read ahead.... limit      limit - begin <= size
//
// A stream of reads moves along: the segment's limit is its size behind where the last read began,
// and what lies before that is dropped for it.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/clock.h"

namespace labrack::block {

class TrackCache {
 public:
  struct Segment {
    Offset begin;
    Offset end;    // what is there
    Offset limit;  // what reading ahead may add
    // Where it is known before: when all of it is there, and when what lies before `earlier` is.
    TimePoint ready{};
    Offset earlier;
    TimePoint earlier_ready{};
    std::uint64_t used = 0;
    std::uint32_t going_on = 0;  // reads that went on from those before them

    bool Holds(Offset at, Bytes length) const { return at >= begin && at + length <= end; }
    TimePoint ReadyTo(Offset to) const { return to <= earlier ? earlier_ready : ready; }
  };

  // `capacity`: of the disk; nothing is read ahead beyond.
  TrackCache(std::uint32_t segments, Bytes segment_size, Bytes capacity);

  // The segment that holds all of it, marked as used, or nullptr.
  Segment* Find(Offset at, Bytes length);
  // Of a read from the medium: the segment that it goes on from, or that it takes. nullptr when
  // there are no segments, or when it is longer than one.
  Segment* Insert(Offset at, Bytes length);
  // Overwritten: no longer there.
  void Invalidate(Offset at, Bytes length);
  void Clear();

 private:
  void Use(Segment& segment, Offset at);

  std::vector<Segment> segments_;
  Bytes segment_size_;
  Bytes capacity_;
  std::uint64_t uses_ = 0;
};

}  // namespace labrack::block
