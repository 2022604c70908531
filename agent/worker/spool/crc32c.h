// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78; RFC 3720, B.4), by table. Spool records are
// few and small, so that the instruction of newer processors would save nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace labrack::spool {

namespace internal {
constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = value;
  }
  return table;
}
inline constexpr std::array<std::uint32_t, 256> kCrcTable = MakeCrcTable();
}  // namespace internal

// Of `data`; give the result of an earlier piece as `before` to go on from there.
constexpr std::uint32_t Crc32c(std::string_view data, std::uint32_t before = 0) {
  std::uint32_t value = ~before;
  for (char c : data) {
    value = internal::kCrcTable[(value ^ static_cast<unsigned char>(c)) & 0xff] ^ (value >> 8);
  }
  return ~value;
}

}  // namespace labrack::spool
