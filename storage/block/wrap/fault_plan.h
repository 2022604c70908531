// What goes wrong with a device, and when: a plan of faults for FaultDevice (fault.h), written by
// hand or drawn from a seed within what the fault atlas (fault_atlas.h) allows.
//
//   kind               what happens                                            reported  one I/O
//   latent error       reads of the blocks fail until they are rewritten       yes
//   bit rot            bits of the blocks have flipped, until rewritten
//   torn write         acknowledged; only the first part of it arrives                   x
//   lost write         acknowledged; nothing of it arrives                               x
//   misdirected write  acknowledged; lands at `elsewhere`                                x
//   misdirected read   gives what stands at `elsewhere`                                  x
//   stale read         gives what stood there before the last write                      x
//   lying flush        flushes, and durable writes, promise what is not so
//   failing flush      a flush fails, and from then on all do (block_device.h) yes
//   slow               every I/O takes `time` longer
//   hang               every I/O takes `time`, then kTimedOut, and is not done yes
//   gone               every I/O fails: kUnavailable. With `time`, what comes  yes, but for the
//                      back is the content of that long before it went         old content
//   full               every write fails: kNoSpace                             yes
//
// All hold from `from` until `until`. Those marked "one I/O" concern the part of an I/O that lies
// within the blocks of the fault, and `hits_max` of them; the rest of such an I/O is done as it
// should be. Faults of blocks begin with the blocks as they are at `from`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/base/random.h"
#include "storage/base/result.h"
#include "storage/block/block_device.h"

namespace labrack::block {

class FaultAtlas;

enum class FaultKind : std::uint8_t {
  kLatentError,
  kBitRot,
  kTornWrite,
  kLostWrite,
  kMisdirectedWrite,
  kMisdirectedRead,
  kStaleRead,
  kLyingFlush,
  kFailingFlush,
  kSlow,
  kHang,
  kGone,
  kFull,
};
inline constexpr int kFaultKindCount = 13;
std::string_view FaultKindName(FaultKind kind);  // "latent error", ...

struct Fault {
  FaultKind kind = FaultKind::kLatentError;
  TimePoint from{};
  TimePoint until = TimePoint::max();
  Offset at;         // the blocks that it concerns; of a fault of the whole device: nothing
  Bytes length;      // likewise
  Offset elsewhere;  // misdirected: as many blocks, from here on
  std::uint32_t hits_max = 1;
  Nanoseconds time{0};
  Seed seed;  // which bits flip, how much of a write arrives

  bool OfWholeDevice() const;
  // What stands above is told, or can tell from a time; otherwise only a checksum shows it.
  bool Reported() const;
  // "lost write at 8192+4096 from 1.5 ms until 3 ms": for people who replay a seed.
  std::string ToString() const;
};

struct FaultPlan {
  std::vector<Fault> faults;

  // kInvalidArgument with all that is wrong with it on a device of this geometry.
  Result<void> Validate(const Geometry& geometry) const;
};

// What to draw faults from.
struct FaultDraw {
  std::uint32_t disk_count = 1;
  Geometry geometry;  // of each disk
  TimePoint from{};   // when the first may begin
  TimePoint until{};  // when the last has begun, and windows have ended
  std::uint32_t faults_max = 8;
  std::uint32_t blocks_max = 8;  // of one fault
  Nanoseconds time_max = std::chrono::milliseconds(100);
  // Of a fault that the atlas finds to be beyond what can be repaired: to be planned all the same.
  double beyond_chance = 0;
};

// A plan for each disk. A draw omits each kind with an even chance, so that seeds differ in what
// they do not do (swarm testing: Groce et al., ISSTA 2012); `atlas` learns what was planned.
std::vector<FaultPlan> DrawFaults(const FaultDraw& draw, FaultAtlas& atlas, Random& random);

}  // namespace labrack::block
