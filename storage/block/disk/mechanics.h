// Mechanics: how long a rotating disk takes, from its geometry. Pure: a position, a request and an
// instant go in; the parts of its time come out, in whole nanoseconds.
//
//   time = seek(cylinders moved) | head switch, + write settle, + rotation, + transfer
//
//   seek(d) = a + b*sqrt(d)  below the knee       Ruemmler and Wilkes, "An introduction to disk
//             c + e*d        from the knee on     drive modeling", IEEE Computer 27(3), 1994
//
// The platter never stops: what it shows under the head at instant t is t modulo one revolution, so
// a request that comes a moment too late waits for nearly a whole one. Blocks run along a track,
// then over the surfaces of the cylinder, then to the next cylinder; each track begins later than
// the one before it by its skew, in which the heads get there, so that a sequential transfer loses
// no revolution.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::block {

// All in nanoseconds; `sqrt` and `linear` are per cylinder.
struct SeekCurve {
  std::uint32_t knee_cylinders = 0;
  std::int64_t near_base_ns = 0;   // a
  std::int64_t near_sqrt_ns = 0;   // b
  std::int64_t far_base_ns = 0;    // c
  std::int64_t far_linear_ps = 0;  // e, in picoseconds: it is well below a microsecond

  Nanoseconds Time(std::uint32_t cylinders) const;
};

struct Zone {
  std::uint32_t cylinders = 0;
  std::uint32_t sectors_per_track = 0;
};

struct MechanicsOptions {
  static constexpr Bytes kSector{512};

  std::int64_t revolution_ns = 0;
  std::uint32_t surfaces = 0;
  std::vector<Zone> zones;  // from the outer edge inwards: block 0 is outside
  SeekCurve seek;
  std::int64_t head_switch_ns = 0;   // to another surface of the cylinder
  std::int64_t write_settle_ns = 0;  // more for a write, after any move
  // How much later the next track begins, and the first track of the next cylinder.
  std::int64_t track_skew_ns = 0;
  std::int64_t cylinder_skew_ns = 0;

  // kInvalidArgument with what is wrong: no zones, no surfaces, a skew shorter than the move that
  // it is for.
  Result<void> Validate() const;
};

// Zones whose sectors per track fall evenly from `outer` to `inner`.
std::vector<Zone> EvenZones(std::uint32_t cylinders, std::uint32_t outer, std::uint32_t inner,
                            std::uint32_t count);

class Mechanics {
 public:
  // Where the heads are.
  struct Position {
    std::uint32_t cylinder = 0;
    std::uint32_t surface = 0;
  };
  struct Times {
    Nanoseconds seek{0};  // with head switch and write settle
    Nanoseconds rotation{0};
    Nanoseconds transfer{0};  // with the skews within it

    Nanoseconds total() const { return seek + rotation + transfer; }
  };

  explicit Mechanics(MechanicsOptions options);  // valid ones

  Bytes capacity() const { return capacity_; }
  Position PositionOf(Offset at) const;
  // Serves [at, at + length), whole sectors within capacity(), from `position` at `begin`, and
  // moves `position`.
  Times Serve(Position& position, Offset at, Bytes length, bool write, TimePoint begin) const;
  // Of Serve, what comes before the transfer: for a scheduler that looks for the shortest.
  Nanoseconds Positioning(Position position, Offset at, bool write, TimePoint begin) const;

  // Of a transfer that ended just before `at` and goes on: how long until [at, at + length) has
  // passed the head, and how much of it has passed after `time`, in whole sectors.
  Nanoseconds Continuing(Offset at, Bytes length) const;
  Bytes PassedAfter(Offset at, Bytes length, Nanoseconds time) const;

  const MechanicsOptions& options() const { return options_; }

 private:
  struct Address {  // of a sector
    std::uint32_t cylinder = 0;
    std::uint32_t surface = 0;
    std::uint32_t sector = 0;  // along the track
    std::uint32_t sectors_per_track = 0;
  };
  struct ZoneStart {
    std::uint64_t sector = 0;  // the first of the zone
    std::uint32_t cylinder = 0;
    std::uint32_t sectors_per_track = 0;
  };

  Address AddressOf(std::uint64_t sector) const;
  std::int64_t SkewOf(const Address& address) const;  // of its track against the one before it
  std::int64_t Angle(const Address& address) const;   // when in a revolution it passes the head
  Nanoseconds Move(Position from, const Address& to, bool write) const;

  MechanicsOptions options_;
  std::vector<ZoneStart> zones_;
  Bytes capacity_;
};

}  // namespace labrack::block
