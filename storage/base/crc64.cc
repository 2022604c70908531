#include "storage/base/crc64.h"

#include <array>
#include <bit>
#include <cstring>

namespace labrack {
namespace {

constexpr std::uint64_t kPolynomial = 0xc96c5795d7870f42ULL;  // reflected

// tables[k][b]: what byte b does when k more bytes follow ("slicing by 8", Kounavis and Berry,
// ISCC 2005).
constexpr std::array<std::array<std::uint64_t, 256>, 8> MakeTables() {
  std::array<std::array<std::uint64_t, 256>, 8> tables{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::uint64_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t value = tables[k - 1][byte];
      tables[k][byte] = (value >> 8) ^ tables[0][value & 0xff];
    }
  }
  return tables;
}

constexpr std::array<std::array<std::uint64_t, 256>, 8> kTables = MakeTables();

}  // namespace

static_assert(std::endian::native == std::endian::little);

std::uint64_t Crc64(ConstView data, std::uint64_t before) {
  std::uint64_t crc = ~before;
  std::size_t done = 0;
  for (; data.size() - done >= 8; done += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + done, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; done < data.size(); ++done) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint64_t>(data[done])) & 0xff];
  }
  return ~crc;
}

}  // namespace labrack
