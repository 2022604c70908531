// Seeded pseudo-random numbers: xoshiro256** seeded through splitmix64 (Blackman and Vigna,
// "Scrambled Linear Pseudorandom Number Generators", 2018). One seed gives one sequence on every
// machine, so we use no std::*_distribution, whose results the standard leaves open.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "storage/base/check.h"

namespace labrack {

struct Seed {
  std::uint64_t value = 0;
  friend constexpr bool operator==(Seed, Seed) = default;
};

// One step of splitmix64: a good mixer of 64 bits.
constexpr std::uint64_t Mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The seed of a part of something seeded, so that parts draw independently of each other's number
// of draws.
constexpr Seed Derive(Seed seed, std::uint64_t part) {
  return Seed{Mix64(seed.value ^ Mix64(part + 0x632be59bd9b4e019ULL))};
}
constexpr Seed Derive(Seed seed, std::string_view part) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return Derive(seed, hash);
}

class Random {
 public:
  explicit constexpr Random(Seed seed) {
    std::uint64_t x = seed.value;
    for (std::uint64_t& word : state_) {
      word = Mix64(x);
      x += 0x9e3779b97f4a7c15ULL;
    }
  }

  constexpr std::uint64_t Next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), bound > 0. Multiply-shift (Lemire 2019); the bias is below bound / 2^64.
  constexpr std::uint64_t Below(std::uint64_t bound) {
    LABRACK_CHECK(bound > 0);
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(Next()) * bound) >> 64);
  }

  // Uniform in [0, 1).
  constexpr double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  constexpr bool Chance(double probability) { return Unit() < probability; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace labrack
