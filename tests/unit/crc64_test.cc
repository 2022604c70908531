// Goal: the CRC is CRC-64/XZ, whatever the length and however it is cut.
// Method: the published check value; a bitwise CRC as oracle over lengths and cuts.
#include "storage/base/crc64.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "storage/base/random.h"

namespace labrack {
namespace {

std::uint64_t Bitwise(ConstView data) {
  std::uint64_t crc = ~0ULL;
  for (const std::byte byte : data) {
    crc ^= static_cast<std::uint64_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xc96c5795d7870f42ULL : 0);
    }
  }
  return ~crc;
}

TEST(Crc64, GivesThePublishedCheckValue) {
  constexpr std::string_view kText = "123456789";
  EXPECT_EQ(Crc64(std::as_bytes(std::span(kText))), 0x995dc9bbdf1939faULL);
}

TEST(Crc64, AgreesWithTheBitwiseDefinitionAndGoesOnFromACut) {
  Random random(Seed{1});
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<std::byte> data(length);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random.Below(256));
    EXPECT_EQ(Crc64(data), Bitwise(data)) << length;
    const std::size_t cut = random.Below(length + 1);
    const ConstView view(data);
    EXPECT_EQ(Crc64(view.subspan(cut), Crc64(view.first(cut))), Bitwise(data)) << length;
  }
}

TEST(Crc64, TheSeedBindsToAPlace) {
  const std::vector<std::byte> data(32, std::byte{5});
  EXPECT_NE(Crc64(data, 1), Crc64(data, 2));
}

}  // namespace
}  // namespace labrack
