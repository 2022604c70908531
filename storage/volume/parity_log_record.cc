#include "storage/volume/parity_log_record.h"

#include <algorithm>
#include <array>
#include <string>

#include "storage/base/check.h"
#include "storage/base/crc64.h"
#include "storage/base/random.h"

namespace labrack::volume {
namespace {

constexpr std::uint64_t kHeadMagic = 0x444145483550524cULL;   // "LRP5HEAD"
constexpr std::uint64_t kEntryMagic = 0x544f4c533550524cULL;  // "LRP5SLOT"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kCrcAt = 16;

template <typename Word>
void Put(MutableView block, std::size_t at, Word value) {
  for (std::size_t i = 0; i < sizeof(Word); ++i) {
    block[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
  }
}

template <typename Word>
Word Get(ConstView block, std::size_t at) {
  Word value = 0;
  for (std::size_t i = sizeof(Word); i-- > 0;) {
    value = static_cast<Word>(value << 8 | static_cast<Word>(block[at + i]));
  }
  return value;
}

// Over the record with zeros where the CRC stands.
std::uint64_t RecordCrc(ConstView block, const LogPlace& place) {
  std::array<std::byte, kLogRecordSize> record;
  std::ranges::copy(block.first(kLogRecordSize), record.begin());
  Put<std::uint64_t>(record, kCrcAt, 0);
  const Seed volume{place.volume_id};
  return Crc64(record, Derive(Derive(volume, place.column), place.at.value()).value);
}

struct Kind {
  std::uint64_t magic;
  std::uint32_t code;  // mode or kind
};

void Begin(MutableView block, Kind kind) {
  LABRACK_CHECK(block.size() >= kLogRecordSize);
  std::ranges::fill(block, std::byte{0});
  Put(block, 0, kind.magic);
  Put(block, 8, kVersion);
  Put(block, 12, kind.code);
}

Result<void> CheckRecord(ConstView block, const LogPlace& place, std::uint64_t magic) {
  if (block.size() < kLogRecordSize) {
    return Fail(Errc::kCorrupt, "a record of a parity log has " + std::to_string(kLogRecordSize) +
                                    " bytes, not " + std::to_string(block.size()));
  }
  if (Get<std::uint64_t>(block, 0) != magic) {
    return Fail(Errc::kCorrupt, "this is no record of a parity log: its first bytes are others");
  }
  const auto version = Get<std::uint32_t>(block, 8);
  if (version != kVersion) {
    return Fail(Errc::kCorrupt, "a record of a parity log has version " + std::to_string(version) +
                                    "; this build reads " + std::to_string(kVersion));
  }
  if (Get<std::uint64_t>(block, kCrcAt) != RecordCrc(block, place)) {
    return Fail(Errc::kCorrupt,
                "a record of a parity log does not check: it is damaged, torn or of another place");
  }
  return {};
}

}  // namespace

const char* ParityLogModeName(ParityLogMode mode) {
  switch (mode) {
    case ParityLogMode::kNone:
      return "none";
    case ParityLogMode::kPartialParity:
      return "ppl";
    case ParityLogMode::kPrewrite:
      return "prewrite";
  }
  return "unknown";
}

void EncodeLogHead(const LogHead& head, const LogPlace& place, MutableView block) {
  Begin(block, {kHeadMagic, static_cast<std::uint32_t>(head.mode)});
  Put(block, 24, head.generation);
  Put(block, 32, head.floor);
  Put(block, 40, std::uint64_t{head.in_use});
  Put(block, kCrcAt, RecordCrc(block, place));
}

Result<LogHead> DecodeLogHead(ConstView block, const LogPlace& place) {
  Result<void> checked = CheckRecord(block, place, kHeadMagic);
  if (!checked) return std::unexpected(checked.error());
  const auto mode = Get<std::uint32_t>(block, 12);
  const auto in_use = Get<std::uint64_t>(block, 40);
  if (mode >= kParityLogModeCount || in_use > 1) {
    return Fail(Errc::kCorrupt, "the head of a parity log has values that none is written with");
  }
  return LogHead{.mode = static_cast<ParityLogMode>(mode),
                 .generation = Get<std::uint64_t>(block, 24),
                 .floor = Get<std::uint64_t>(block, 32),
                 .in_use = in_use == 1};
}

void EncodeLogEntry(const LogEntry& entry, const LogPlace& place, MutableView block) {
  Begin(block, {kEntryMagic, static_cast<std::uint32_t>(entry.mode)});
  Put(block, 24, entry.id);
  Put(block, 32, entry.columns);
  Put(block, 40, std::uint64_t{entry.column});
  Put(block, 48, entry.at.count());
  Put(block, 56, entry.length.count());
  Put(block, 64, entry.write_at.value());
  Put(block, 72, entry.write_length.count());
  Put(block, 80, entry.data_length.count());
  Put(block, 88, entry.data_crc);
  Put(block, kCrcAt, RecordCrc(block, place));
}

Result<LogEntry> DecodeLogEntry(ConstView block, const LogPlace& place) {
  Result<void> checked = CheckRecord(block, place, kEntryMagic);
  if (!checked) return std::unexpected(checked.error());
  const auto mode = Get<std::uint32_t>(block, 12);
  const LogEntry entry{.mode = static_cast<ParityLogMode>(mode),
                       .id = Get<std::uint64_t>(block, 24),
                       .columns = Get<std::uint64_t>(block, 32),
                       .column = static_cast<std::size_t>(Get<std::uint64_t>(block, 40)),
                       .at = Bytes(Get<std::uint64_t>(block, 48)),
                       .length = Bytes(Get<std::uint64_t>(block, 56)),
                       .write_at = Offset(Get<std::uint64_t>(block, 64)),
                       .write_length = Bytes(Get<std::uint64_t>(block, 72)),
                       .data_length = Bytes(Get<std::uint64_t>(block, 80)),
                       .data_crc = Get<std::uint64_t>(block, 88)};
  const bool known = mode == static_cast<std::uint32_t>(ParityLogMode::kPartialParity) ||
                     mode == static_cast<std::uint32_t>(ParityLogMode::kPrewrite);
  const bool placed =
      entry.column == place.column && entry.column < 64 && (entry.columns >> entry.column & 1) == 1;
  if (!known || !placed || entry.length.count() == 0 || entry.data_length > entry.length) {
    return Fail(Errc::kCorrupt, "an entry of a parity log has values that none is written with");
  }
  return entry;
}

}  // namespace labrack::volume
