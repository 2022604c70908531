// Goal: records of the parity log read back as written, and nothing else is taken for one.
// Method: round trips; every bit flipped; other places; noise; the golden image of version 1.
#include "storage/volume/parity_log_record.h"

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "storage/base/random.h"
#include "tests/unit/golden.h"

namespace labrack::volume {
namespace {

using Block = std::array<std::byte, 512>;

constexpr LogPlace kPlace{.volume_id = 0x0123456789abcdef, .column = 2, .at = Offset(12288)};

LogHead Head() {
  return {.mode = ParityLogMode::kPrewrite, .generation = 7, .floor = 41, .in_use = false};
}

LogEntry Entry() {
  return {.mode = ParityLogMode::kPartialParity,
          .id = 42,
          .columns = 0b0110,
          .column = 2,
          .at = 8_KiB,
          .length = 2_KiB,
          .write_at = Offset(24576),
          .write_length = 6_KiB,
          .data_length = 1_KiB,
          .data_crc = 0xfeedfacecafebeef};
}

TEST(ParityLogRecord, ReadsBackAsWritten) {
  Block block;
  EncodeLogHead(Head(), kPlace, block);
  const Result<LogHead> head = DecodeLogHead(block, kPlace);
  ASSERT_TRUE(head) << head.error().ToString();
  EXPECT_EQ(*head, Head());
  EncodeLogEntry(Entry(), kPlace, block);
  const Result<LogEntry> entry = DecodeLogEntry(block, kPlace);
  ASSERT_TRUE(entry) << entry.error().ToString();
  EXPECT_EQ(*entry, Entry());
}

TEST(ParityLogRecord, AnyFlippedBitIsNoticed) {
  Block head;
  Block entry;
  EncodeLogHead(Head(), kPlace, head);
  EncodeLogEntry(Entry(), kPlace, entry);
  for (std::size_t bit = 0; bit < kLogRecordSize * 8; ++bit) {
    const std::byte mask{static_cast<unsigned char>(1U << (bit % 8))};
    head[bit / 8] ^= mask;
    entry[bit / 8] ^= mask;
    EXPECT_FALSE(DecodeLogHead(head, kPlace)) << bit;
    EXPECT_FALSE(DecodeLogEntry(entry, kPlace)) << bit;
    head[bit / 8] ^= mask;
    entry[bit / 8] ^= mask;
  }
}

TEST(ParityLogRecord, BelongsToOnePlaceOfOneVolume) {
  Block block;
  EncodeLogEntry(Entry(), kPlace, block);
  LogPlace other = kPlace;
  other.at = Offset(16384);
  EXPECT_FALSE(DecodeLogEntry(block, other));
  other = kPlace;
  other.column = 1;
  EXPECT_FALSE(DecodeLogEntry(block, other));
  other = kPlace;
  other.volume_id = 1;
  EXPECT_FALSE(DecodeLogEntry(block, other));
  EXPECT_FALSE(DecodeLogHead(block, kPlace)) << "an entry is no head";
}

TEST(ParityLogRecord, ValuesThatNoneIsWrittenWithAreRefusedThoughTheyCheck) {
  Block block;
  LogEntry entry = Entry();
  entry.columns = 0b0010;  // without its own
  EncodeLogEntry(entry, kPlace, block);
  EXPECT_FALSE(DecodeLogEntry(block, kPlace));
  entry = Entry();
  entry.mode = ParityLogMode::kNone;
  EncodeLogEntry(entry, kPlace, block);
  EXPECT_FALSE(DecodeLogEntry(block, kPlace));
  entry = Entry();
  entry.data_length = entry.length + Bytes(1);
  EncodeLogEntry(entry, kPlace, block);
  EXPECT_FALSE(DecodeLogEntry(block, kPlace));
}

TEST(ParityLogRecord, NoiseAndWhatIsTooShortAreRefused) {
  Random random(Seed{3});
  for (std::size_t round = 0; round < 2000; ++round) {
    Block block;
    for (std::byte& byte : block) byte = static_cast<std::byte>(random.Next());
    const ConstView some = ConstView(block).first(random.Below(block.size()));
    EXPECT_FALSE(DecodeLogHead(some, kPlace));
    EXPECT_FALSE(DecodeLogEntry(some, kPlace));
  }
  EXPECT_EQ(DecodeLogHead({}, kPlace).error().code(), Errc::kCorrupt);
}

TEST(ParityLogRecord, VersionOneIsTheGoldenImage) {
  Block head;
  Block entry;
  EncodeLogHead(Head(), kPlace, head);
  EncodeLogEntry(Entry(), kPlace, entry);
  std::string image(head.size() + entry.size(), '\0');
  std::ranges::transform(head, image.begin(),
                         [](std::byte byte) { return static_cast<char>(byte); });
  std::ranges::transform(entry, image.begin() + static_cast<std::ptrdiff_t>(head.size()),
                         [](std::byte byte) { return static_cast<char>(byte); });
  ExpectGolden("parity_log_v1.bin", image);
}

}  // namespace
}  // namespace labrack::volume
