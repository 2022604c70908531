// The spool's format: what a trial has to say, in files that survive the death of whoever writes
// them.
//
//   NNNNNN.seg:  header | record | record | ... | footer
//   header:      "LRSPOOL1" | u32 version | u64 epoch | u64 first seq | u32 length |
//                assignment id | u32 CRC-32C of all before
//   record:      u32 length of (type..payload) | u32 CRC-32C of (type..payload) |
//                u8 type | u64 seq | u64 monotonic ns | payload
//   footer:      a record of type kFooter; payload u64 last seq | u64 records here |
//                u8 1 when final
//
// Numbers are little-endian. Sequence numbers start at 1 and have no gaps over all segments. A
// segment with a footer is closed; only the last one may lack it, and only there an incomplete
// record is a torn tail (the writer died or is at work) instead of damage. Payloads are serialised
// EventRecords.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/result.h"

namespace labrack::spool {

enum class RecordType : std::uint8_t {
  kState = 1,     // where the trial stands
  kDetail = 2,    // logs and results of single steps: the first to go when space is short
  kResult = 3,    // the last one
  kFooter = 255,  // the format's own; readers do not see it
};

// Whose spool it is. A spool of another assignment or epoch is refused.
struct Identity {
  std::string assignment_id;
  std::uint64_t epoch = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

struct Record {
  RecordType type = RecordType::kState;
  std::uint64_t seq = 0;
  std::int64_t mono_ns = 0;
  std::string payload;
};

constexpr std::uint32_t kVersion = 1;
constexpr Bytes kPayloadMax = 1_MiB;
constexpr std::size_t kRecordHead = 8;           // length and CRC
constexpr std::size_t kRecordFixed = 1 + 8 + 8;  // type, seq, time
constexpr std::size_t kFooterPayload = 8 + 8 + 1;
constexpr std::size_t kAssignmentIdMax = 1024;

// Text forms of the pieces, and back. Parse functions give nullopt for whatever was not written by
// us.
struct SegmentHeader {
  Identity identity;
  std::uint64_t first_seq = 1;
};
struct Footer {
  std::uint64_t last_seq = 0;
  std::uint64_t count = 0;
  bool final_segment = false;
};

std::string EncodeHeader(const SegmentHeader& header);
// The header at the start of `data` and its length.
struct ParsedHeader {
  SegmentHeader header;
  std::size_t length = 0;
};
std::optional<ParsedHeader> ParseHeader(std::string_view data);
std::string EncodeRecord(RecordType type, std::uint64_t seq, std::int64_t mono_ns,
                         std::string_view payload);
std::string EncodeFooterPayload(const Footer& footer);
std::optional<Footer> ParseFooterPayload(std::string_view payload);

enum class ParseState {
  kRecord,      // a whole, right record
  kIncomplete,  // ends before its length says, or no byte at all
  kDamaged,     // the CRC, the length or the type is wrong
};
struct ParsedRecord {
  ParseState state = ParseState::kIncomplete;
  Record record;           // of kRecord
  std::size_t length = 0;  // of kRecord: bytes taken
};
ParsedRecord ParseRecord(std::string_view data);

// "000003.seg" in `directory`, and the numbers of the segments there, ascending.
std::filesystem::path SegmentPath(const std::filesystem::path& directory, std::uint32_t number);
Result<std::vector<std::uint32_t>> ListSegments(const std::filesystem::path& directory);

}  // namespace labrack::spool
