// The record of a set of disks: which disks belong together, which volumes they make, and which
// component of them holds current data. Every disk carries a replica of it at its head:
//
//   disk:  | slot 0, 64 KiB | slot 1, 64 KiB | the volume's log and data ...
//
// A new generation goes to the slot that does not hold the disk's newest record, so a write that a
// power cut tears costs the new record and never the old one.
//
//   slot:  u64 magic | u32 version | u32 length | u64 set | u64 generation | u64 promised |
//          u64 disk id | u32 disk number | u32 zero | disks | volumes | spares |
//          u64 CRC-64 of all before
//
// Little-endian; the length counts everything up to the CRC; the CRC is seeded with the offset of
// the slot, so that a record which was written or read at the wrong place does not check.
// Counts and strings of bytes are bounded; decoding trusts nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/result.h"
#include "storage/block/block_device.h"
#include "storage/volume/component.h"
#include "storage/volume/mirror.h"
#include "storage/volume/parity_log_record.h"

namespace labrack::volume {

inline constexpr Bytes kSlotSize = 64_KiB;
inline constexpr std::size_t kSlotCount = 2;  // of each replica
inline constexpr Bytes kHeadSize = kSlotSize * kSlotCount;
inline constexpr std::uint32_t kRecordVersion = 1;

inline constexpr std::size_t kDisksMax = 64;  // of a set
inline constexpr std::size_t kVolumesMax = 32;
inline constexpr std::size_t kChildrenMax = 64;  // of a volume

// Stored; the numbers stay.
enum class Kind : std::uint8_t { kConcat = 1, kStripe = 2, kMirror = 3, kRaid5 = 4 };
std::string_view KindName(Kind kind);  // "concat", "stripe", "mirror", "raid5"

struct DiskEntry {
  std::uint64_t id = 0;
  Bytes size = {};
  // Its replica is kept current, and it has a voice in which generation counts.
  bool counts = true;
  // It had a voice in whether this record counts. Differs from `counts` only in a record that takes
  // or gives voices and is not known to count yet.
  bool counted = true;
  friend bool operator==(const DiskEntry&, const DiskEntry&) = default;
};

// The id of disk `number` of a set.
std::uint64_t DiskIdOf(std::uint64_t set_id, std::uint32_t number);

struct ChildEntry {
  enum class Source : std::uint8_t { kNone = 0, kDisk = 1, kVolume = 2 };
  Source source = Source::kNone;
  State state = State::kOkay;
  std::uint16_t group = 0;  // concat and stripe: appended together
  std::uint32_t index = 0;  // of the disk or the volume
  friend bool operator==(const ChildEntry&, const ChildEntry&) = default;
};

struct VolumeEntry {
  Kind kind = Kind::kConcat;
  block::FlushMode flush_mode = block::FlushMode::kPass;
  ReadPolicy read_policy = ReadPolicy::kRoundRobin;
  WriteMode write_mode = WriteMode::kParallel;
  ParityLogMode parity_log = ParityLogMode::kPrewrite;  // RAID-5
  Bytes interlace = {};                                 // stripe, RAID-5
  // What it was made with. Mirror: what it holds; RAID-5: what each component does.
  Bytes size = {};
  Bytes log_size = {};  // RAID-5: of each component
  std::vector<ChildEntry> children = {};
  friend bool operator==(const VolumeEntry&, const VolumeEntry&) = default;
};

struct SetRecord {
  std::uint64_t set_id = 0;
  std::uint64_t generation = 0;
  std::vector<DiskEntry> disks = {};       // by number, which never changes
  std::vector<VolumeEntry> volumes = {};   // a volume stands after those that it is made of
  std::vector<std::uint32_t> spares = {};  // numbers of disks
  friend bool operator==(const SetRecord&, const SetRecord&) = default;
};

// What is wrong with how a record's parts refer to each other: kInvalidArgument, all in one note.
Result<void> CheckRecord(const SetRecord& record);

struct Replica {
  SetRecord record;
  std::uint32_t disk = 0;      // whose replica this is
  std::uint64_t promised = 0;  // the disk takes no record of an epoch before (state_database.h)
};

// `at`: of the slot on the disk. Padded with zeros to a multiple of 4 KiB; at most kSlotSize.
std::vector<std::byte> EncodeReplica(const Replica& replica, Offset at);
// Errors: kNotFound (nothing of ours), kUnsupported (a version that this build does not know),
// kCorrupt (does not check, or makes no sense: what and where).
Result<Replica> DecodeReplica(ConstView slot, Offset at);

}  // namespace labrack::volume
