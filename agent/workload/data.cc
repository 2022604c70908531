#include "agent/workload/data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace labrack::workload {
namespace {

constexpr std::size_t kWords = 64;  // in a sector
constexpr std::size_t kLanes = 8;
static_assert(kWords * sizeof(std::uint64_t) == kSector.count());
static_assert(std::endian::native == std::endian::little, "the same data on every machine");

// The finaliser of MurmurHash3 and its inverse.
constexpr std::uint64_t Scramble(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}
constexpr std::uint64_t Unscramble(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0x9cb4b2f8129337dbULL;
  x = (x ^ (x >> 33)) * 0x4f74430c22a54005ULL;
  return x ^ (x >> 33);
}
static_assert(Unscramble(Scramble(0x0123456789abcdefULL)) == 0x0123456789abcdefULL);

using Lanes = std::array<std::uint64_t, kLanes>;

// The body of a sector from its first two words.
inline void Expand(std::uint64_t word0, std::uint64_t word1, std::uint64_t* words) {
  Lanes lanes;
  lanes[0] = word0;
  lanes[1] = word1;
  const std::uint64_t state = word0 ^ std::rotl(word1, 32);
  for (std::size_t lane = 2; lane < kLanes; ++lane) lanes[lane] = Mix64(state + lane);
  std::memcpy(words, lanes.data(), sizeof lanes);
  for (std::size_t row = 1; row < kWords / kLanes; ++row) {
    for (std::uint64_t& lane : lanes) {
      lane ^= lane << 13;
      lane ^= lane >> 7;
      lane ^= lane << 17;
    }
    std::memcpy(words + row * kLanes, lanes.data(), sizeof lanes);
  }
}

bool IsZero(ConstView view) {
  return std::all_of(view.begin(), view.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::size_t FirstDifference(ConstView a, ConstView b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

}  // namespace

Data::Data(Seed seed, v1::DataKind kind) : key_(Derive(seed, "data").value), kind_(kind) {}

void Data::FillSector(FileId file, std::uint64_t sector, Generation generation,
                      std::uint64_t* words) const {
  const std::uint64_t word0 = Scramble(sector ^ key_);
  const std::uint64_t identity = std::uint64_t{file.value} << 32 | generation.value;
  Expand(word0, Scramble(identity ^ word0), words);
}

std::optional<Data::Origin> Data::Identify(const std::uint64_t* words) const {
  const std::uint64_t sector = Unscramble(words[0]) ^ key_;
  const std::uint64_t identity = Unscramble(words[1]) ^ words[0];
  const Origin origin{.sector = sector,
                      .file = FileId{static_cast<std::uint32_t>(identity >> 32)},
                      .generation = Generation{static_cast<std::uint32_t>(identity)}};
  std::array<std::uint64_t, kWords> expected;
  Expand(words[0], words[1], expected.data());
  if (std::memcmp(expected.data(), words, sizeof expected) != 0) return std::nullopt;
  return origin;
}

void Data::Fill(FileId file, Offset at, Generation generation, MutableView into) const {
  LABRACK_CHECK(IsAligned(at, kSector));
  if (kind_ == v1::DATA_KIND_ZEROS) {
    std::memset(into.data(), 0, into.size());
    return;
  }
  std::uint64_t sector = at.value() / kSector.count();
  alignas(64) std::array<std::uint64_t, kWords> words;
  while (into.size() >= sizeof words) {
    FillSector(file, sector++, generation, words.data());
    std::memcpy(into.data(), words.data(), sizeof words);
    into = into.subspan(sizeof words);
  }
  if (into.empty()) return;
  FillSector(file, sector, generation, words.data());
  std::memcpy(into.data(), words.data(), into.size());
}

std::optional<Mismatch> Data::Compare(FileId file, Offset at, Generation generation,
                                      ConstView got) const {
  LABRACK_CHECK(IsAligned(at, kSector));
  alignas(64) std::array<std::uint64_t, kWords> words{};
  std::uint64_t sector = at.value() / kSector.count();
  for (std::size_t done = 0; done < got.size(); done += sizeof words, ++sector) {
    const ConstView part = got.subspan(done, std::min(sizeof words, got.size() - done));
    if (kind_ != v1::DATA_KIND_ZEROS) FillSector(file, sector, generation, words.data());
    if (std::memcmp(part.data(), words.data(), part.size()) == 0) continue;
    const ConstView expected = std::as_bytes(std::span(words)).first(part.size());
    return Mismatch{.at = at + Bytes(done + FirstDifference(part, expected)),
                    .what = Explain(file, sector, generation, part)};
  }
  return std::nullopt;
}

std::string Data::Explain(FileId file, std::uint64_t sector, Generation generation,
                          ConstView got) const {
  if (kind_ == v1::DATA_KIND_ZEROS) return "expected zeros";
  if (IsZero(got)) return "expected data, got zeros (a write was lost, or a hole is in its place)";
  std::array<std::uint64_t, kWords> words{};
  std::memcpy(words.data(), got.data(), got.size());
  const std::optional<Origin> origin =
      got.size() == sizeof words ? Identify(words.data()) : std::nullopt;
  if (origin && origin->file.value == file.value && origin->sector == sector) {
    return fmt::format("holds generation {} of this place, expected {} ({})",
                       origin->generation.value, generation.value,
                       origin->generation.value < generation.value ? "an acknowledged write is lost"
                                                                   : "written after the last one");
  }
  if (origin && origin->sector < (std::uint64_t{1} << 55)) {
    return fmt::format("holds what belongs to byte {} of file {}, generation {} (a wrong place)",
                       origin->sector * kSector.count(), origin->file.value,
                       origin->generation.value);
  }
  std::array<std::uint64_t, kWords> expected;
  FillSector(file, sector, generation, expected.data());
  const ConstView right = std::as_bytes(std::span(expected));
  const std::size_t first = FirstDifference(got, right.first(got.size()));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != right[i];
  return fmt::format("expected 0x{:02x}, got 0x{:02x}; {} of {} bytes of this sector differ ({})",
                     static_cast<unsigned>(right[first]), static_cast<unsigned>(got[first]), wrong,
                     got.size(), wrong > got.size() / 2 ? "foreign data" : "damaged or torn");
}

}  // namespace labrack::workload
