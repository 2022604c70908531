// Goal: sizes, times, percentages and numbers are read exactly or refused with what would be right;
// what is printed reads back as the same value. Method: tables of texts, and seeded values there
// and back.
#include "storage/base/units.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/base/random.h"

namespace labrack {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::string NoteOf(const Result<T>& result) {
  if (result) return "(no error)";
  EXPECT_EQ(result.error().code(), Errc::kInvalidArgument);
  return result.error().note();
}

TEST(UnitsTest, SizesAreReadExactly) {
  const std::vector<std::pair<const char*, std::uint64_t>> cases{
      {"0B", 0},
      {"512B", 512},
      {"4KiB", 4096},
      {"4kB", 4000},
      {"1.5GiB", 1610612736},
      {"2MB", 2000000},
      {"1TiB", 1ULL << 40},
      {"0.5KiB", 512},
      {"3TB", 3000000000000},
      {"18446744073709551615B", UINT64_MAX}};
  for (const auto& [text, bytes] : cases) {
    const Result<Bytes> got = ParseBytes(text);
    ASSERT_TRUE(got) << text << ": " << got.error().ToString();
    EXPECT_EQ(got->count(), bytes) << text;
  }
}

TEST(UnitsTest, SizesThatCouldBeMisreadGetBothReadings) {
  EXPECT_EQ(NoteOf(ParseBytes("4k")),
            "`4k` can be read in two ways; write 4KiB (4096 bytes) or 4kB (4000 bytes)");
  EXPECT_EQ(NoteOf(ParseBytes("4KB")),
            "`4KB` can be read in two ways; write 4KiB (4096 bytes) or 4kB (4000 bytes)");
  EXPECT_EQ(NoteOf(ParseBytes("1.5g")),
            "`1.5g` can be read in two ways; write 1.5GiB (1610612736 bytes) or 1.5GB (1500000000 "
            "bytes)");
}

TEST(UnitsTest, OtherWrongSizesSayWhatToWrite) {
  EXPECT_EQ(NoteOf(ParseBytes("4096")), "`4096` has no unit; write 4096B, 4096KiB or 4096MiB");
  EXPECT_EQ(NoteOf(ParseBytes("4 KiB")), "`4 KiB` is not written as a size; write 4KiB");
  EXPECT_EQ(NoteOf(ParseBytes("4kib")), "`4kib` is not written as a size; write 4KiB");
  EXPECT_EQ(NoteOf(ParseBytes("4Mi")), "`4Mi` is not written as a size; write 4MiB");
  EXPECT_EQ(NoteOf(ParseBytes("4 bytes")), "`4 bytes` is not written as a size; write 4B");
  EXPECT_EQ(NoteOf(ParseBytes("-4KiB")), "`-4KiB` is negative; write a size like 4KiB");
  EXPECT_EQ(NoteOf(ParseBytes("big")), "`big` is not a size; write a size like 4KiB");
  EXPECT_EQ(NoteOf(ParseBytes("")), "nothing is written; write a size like 4KiB");
  EXPECT_THAT(NoteOf(ParseBytes("4q")), HasSubstr("unknown unit; write 4 with B, KiB"));
  EXPECT_THAT(NoteOf(ParseBytes("1.3B")), HasSubstr("not a whole number of bytes"));
  EXPECT_THAT(NoteOf(ParseBytes("16777216TiB")), HasSubstr("too large"));
  EXPECT_THAT(NoteOf(ParseBytes("99999999999999999999999999B")), HasSubstr("too large"));
  EXPECT_THAT(NoteOf(ParseBytes(".5KiB")), HasSubstr("is not a size"));
  EXPECT_THAT(NoteOf(ParseBytes("1.KiB")), HasSubstr("unknown unit"));
}

TEST(UnitsTest, LongTextsAreCutBetweenCharacters) {
  std::string text(39, 'x');
  text += "\xe2\x82\xac\xe2\x82\xac";
  EXPECT_THAT(NoteOf(ParseBytes(text)), HasSubstr("`" + std::string(39, 'x') + "...` is not"));
}

TEST(UnitsTest, TimesAreReadExactly) {
  const std::vector<std::pair<const char*, std::int64_t>> cases{{"0s", 0},
                                                                {"17ns", 17},
                                                                {"5us", 5000},
                                                                {"1.5s", 1500000000},
                                                                {"200ms", 200000000},
                                                                {"2min", 120000000000},
                                                                {"24h", 86400000000000},
                                                                {"0.25h", 900000000000}};
  for (const auto& [text, ns] : cases) {
    const Result<Nanoseconds> got = ParseDuration(text);
    ASSERT_TRUE(got) << text << ": " << got.error().ToString();
    EXPECT_EQ(got->count(), ns) << text;
  }
}

TEST(UnitsTest, WrongTimesSayWhatToWrite) {
  EXPECT_EQ(NoteOf(ParseDuration("20")),
            "`20` has no unit; write 20s, 20ms or 20min (ns, us, ms, s, min, h)");
  EXPECT_EQ(NoteOf(ParseDuration("5m")), "`5m` can be read in two ways; write 5min or 5ms");
  EXPECT_EQ(NoteOf(ParseDuration("5 sec")), "`5 sec` is not written as a time; write 5s");
  EXPECT_EQ(NoteOf(ParseDuration("5\xc2\xb5s")),
            "`5\xc2\xb5s` is not written as a time; write 5us");
  EXPECT_EQ(NoteOf(ParseDuration("2d")), "`2d` has an unknown unit; write 48h");
  EXPECT_EQ(NoteOf(ParseDuration("-5s")), "`-5s` is negative; write a time like 20s");
  EXPECT_THAT(NoteOf(ParseDuration("1.5ns")), HasSubstr("not a whole number of nanoseconds"));
  EXPECT_THAT(NoteOf(ParseDuration("2562048h")), HasSubstr("too long"));
  EXPECT_THAT(NoteOf(ParseDuration("forever")), HasSubstr("is not a time"));
}

TEST(UnitsTest, PercentagesAndFactors) {
  EXPECT_DOUBLE_EQ(*ParsePercent("3%"), 0.03);
  EXPECT_DOUBLE_EQ(*ParsePercent("99.9%"), 0.999);
  EXPECT_EQ(NoteOf(ParsePercent("3")), "`3` has no %; write 3%");
  EXPECT_EQ(NoteOf(ParsePercent("0.03")), "`0.03` has no %; write 0.03%, or 3% for the share");
  EXPECT_EQ(NoteOf(ParsePercent("-3%")), "`-3%` is negative; write a percentage like 3%");
  EXPECT_DOUBLE_EQ(*ParseFactor("1.5x"), 1.5);
  EXPECT_EQ(NoteOf(ParseFactor("1.5")), "`1.5` has no x; write 1.5x");
  EXPECT_THAT(NoteOf(ParseFactor("nanx")), HasSubstr("is not a factor"));
  EXPECT_THAT(NoteOf(ParseFactor("1e3x")), HasSubstr("is not a factor"));
}

TEST(UnitsTest, NumbersHaveNoExponent) {
  EXPECT_DOUBLE_EQ(*ParseNumber("12.5"), 12.5);
  EXPECT_DOUBLE_EQ(*ParseNumber("0"), 0);
  for (const char* text : {"", "-1", "1e3", "inf", "nan", "0x1", ".5", "5."}) {
    EXPECT_THAT(NoteOf(ParseNumber(text)), HasSubstr("; write a number like 12.5")) << text;
  }
}

TEST(UnitsTest, IntegersAreDecimalOnly) {
  EXPECT_EQ(*ParseInteger("0"), 0);
  EXPECT_EQ(*ParseInteger("-12"), -12);
  EXPECT_EQ(*ParseInteger("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(NoteOf(ParseInteger("010")), "`010` has a leading zero; write 10");
  EXPECT_EQ(NoteOf(ParseInteger("00")), "`00` has a leading zero; write 0");
  for (const char* text : {"", "4k", "1_000", "0x10", "1e3", "1.0", "+5", " 5", "-", "yes"}) {
    EXPECT_THAT(NoteOf(ParseInteger(text)), HasSubstr("write decimal digits only")) << text;
  }
  EXPECT_THAT(NoteOf(ParseInteger("9223372036854775808")), HasSubstr("too large"));
}

TEST(UnitsTest, EveryErrorHasAProblemAndAHelp) {
  for (const char* text : {"", "4k", "x", "-1", "1.5", "9999999999999999999999", "1q", "01"}) {
    for (const std::string& note :
         {NoteOf(ParseBytes(text)), NoteOf(ParseDuration(text)), NoteOf(ParsePercent(text)),
          NoteOf(ParseFactor(text)), NoteOf(ParseInteger(text))}) {
      if (note == "(no error)") continue;
      EXPECT_THAT(note, HasSubstr("; write ")) << text;
    }
  }
}

TEST(UnitsTest, ExactFormsAreShortAndReadBack) {
  EXPECT_EQ(FormatBytesExact(0_B), "0B");
  EXPECT_EQ(FormatBytesExact(4_KiB), "4KiB");
  EXPECT_EQ(FormatBytesExact(1000_B), "1kB");
  EXPECT_EQ(FormatBytesExact(1001_B), "1001B");
  EXPECT_EQ(FormatBytesExact(500_KiB), "500KiB");
  EXPECT_EQ(FormatBytesExact(Bytes(10'000'000'000)), "10GB");
  EXPECT_EQ(FormatBytesExact(64 * 1024_GiB), "64TiB");
  EXPECT_EQ(FormatDurationExact(Nanoseconds(0)), "0s");
  EXPECT_EQ(FormatDurationExact(std::chrono::milliseconds(1500)), "1500ms");
  EXPECT_EQ(FormatDurationExact(std::chrono::seconds(20)), "20s");
  EXPECT_EQ(FormatDurationExact(std::chrono::minutes(90)), "90min");
  Random random(Seed{7});
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value = random.Next() >> random.Below(64);
    EXPECT_EQ(*ParseBytes(FormatBytesExact(Bytes(value))), Bytes(value));
    const Nanoseconds time(static_cast<std::int64_t>(value >> 1));
    EXPECT_EQ(*ParseDuration(FormatDurationExact(time)), time);
  }
}

TEST(UnitsTest, TableFormsHaveThreeDigits) {
  EXPECT_EQ(FormatBytes(0_B), "0 B");
  EXPECT_EQ(FormatBytes(512_B), "512 B");
  EXPECT_EQ(FormatBytes(4_KiB), "4.00 KiB");
  EXPECT_EQ(FormatBytes(Bytes(1'299'227'607)), "1.21 GiB");
  EXPECT_EQ(FormatBytes(1000_KiB), "0.977 MiB");
  EXPECT_EQ(FormatBytes(Bytes(UINT64_MAX)), "16.0 EiB");
  EXPECT_EQ(FormatDuration(Nanoseconds(85)), "85 ns");
  EXPECT_EQ(FormatDuration(std::chrono::microseconds(392)), "392 us");
  EXPECT_EQ(FormatDuration(std::chrono::microseconds(1552)), "1.55 ms");
  EXPECT_EQ(FormatDuration(Nanoseconds(999'499)), "999 us");
  EXPECT_EQ(FormatDuration(Nanoseconds(999'500)), "1.00 ms");
  EXPECT_EQ(FormatDuration(Nanoseconds(9'996)), "10.0 us");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(20)), "20.0 s");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(125)), "2 min 5 s");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(120)), "2 min");
  EXPECT_EQ(FormatDuration(std::chrono::minutes(62)), "1 h 2 min");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(-3)), "-3.00 s");
  EXPECT_EQ(FormatDuration(Nanoseconds::min()).substr(0, 1), "-");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(7), "7");
  EXPECT_EQ(FormatCount(12.34), "12.3");
  EXPECT_EQ(FormatCount(9812), "9 812");
  EXPECT_EQ(FormatCount(18'230), "18.2 k");
  EXPECT_EQ(FormatCount(512'000), "512 k");
  EXPECT_EQ(FormatCount(999'600), "1.00 M");
  EXPECT_EQ(FormatCount(1'214'000), "1.21 M");
  EXPECT_EQ(FormatCount(-18'230), "-18.2 k");
  EXPECT_EQ(FormatCount(std::numeric_limits<double>::quiet_NaN()), "-");
}

}  // namespace
}  // namespace labrack
