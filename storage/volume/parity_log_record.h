// What a RAID-5's parity log writes, version 1. All integers are little-endian; each record carries
// a CRC-64 of its 104 bytes, seeded with volume, column and place: what was written elsewhere, or
// by another volume, does not check.
//
//   a column's log area, in blocks of the device:
//   | head 0 | head 1 | slot 0: entry, data ... | slot 1: entry, data ... | ...
//
//   head (the one with the higher generation counts; they are written in turn)
//    0 magic "LRP5HEAD"   8 version 4  12 mode 4   16 CRC 8   24 generation 8   32 floor 8
//   40 in use 8           48 zeros
//
//   entry
//    0 magic "LRP5SLOT"   8 version 4  12 kind 4   16 CRC 8   24 id 8   32 columns, a bit each 8
//   40 column 8          48 at 8      56 length 8  64 write at 8        72 write length 8
//   80 data length 8     88 CRC of the data 8      96 zeros 8
//
// `at` and `length`, of a prewrite: where its data belong, in bytes of the column's data; of a
// partial parity: the hull of the write, on the parity column. `write at` and `write length`: what
// the write covers, in bytes of the volume.
//
// Why there is a floor: a slot that is free keeps its entry until it is used again, and to replay
// an old entry when a newer one of the same blocks has been overwritten would bring old data back.
// Entries with ids below the floor are over. The floor is durable before a slot below it is reused.
#pragma once

#include <cstdint>

#include "storage/base/bytes.h"
#include "storage/base/result.h"

namespace labrack::volume {

// Stored; the numbers stay.
enum class ParityLogMode : std::uint32_t {
  kNone = 0,           // a power cut can leave data and parity unequal: the write hole
  kPartialParity = 1,  // the XOR of what is not written goes to the parity column first
  kPrewrite = 2,       // data and parity go to the log first
};
inline constexpr int kParityLogModeCount = 3;
const char* ParityLogModeName(ParityLogMode mode);  // "none", "ppl", "prewrite"

inline constexpr std::size_t kLogRecordSize = 104;

// What a record is bound to.
struct LogPlace {
  std::uint64_t volume_id = 0;
  std::size_t column = 0;
  Offset at;  // of the device
};

struct LogHead {
  ParityLogMode mode = ParityLogMode::kNone;
  std::uint64_t generation = 0;
  std::uint64_t floor = 1;
  bool in_use = false;  // mode none: parity may be wrong
  friend bool operator==(const LogHead&, const LogHead&) = default;
};

struct LogEntry {
  ParityLogMode mode = ParityLogMode::kPrewrite;  // never kNone
  std::uint64_t id = 0;
  std::uint64_t columns = 0;
  std::size_t column = 0;
  Bytes at;
  Bytes length;
  Offset write_at;
  Bytes write_length;
  Bytes data_length;
  std::uint64_t data_crc = 0;
  friend bool operator==(const LogEntry&, const LogEntry&) = default;
};

// `block` is at least kLogRecordSize long; the rest of it is filled with zeros.
void EncodeLogHead(const LogHead& head, const LogPlace& place, MutableView block);
void EncodeLogEntry(const LogEntry& entry, const LogPlace& place, MutableView block);

// Errors: kCorrupt, with what is wrong. Any bytes may be given.
Result<LogHead> DecodeLogHead(ConstView block, const LogPlace& place);
Result<LogEntry> DecodeLogEntry(ConstView block, const LogPlace& place);

}  // namespace labrack::volume
