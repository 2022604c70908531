// Goal: parity is the XOR of its sources, whatever their number, length and alignment, and gives
// back any one of them. Method: seeded bytes against a loop over bytes.
#include "storage/volume/parity.h"

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "storage/base/aligned_buffer.h"
#include "storage/base/random.h"

namespace labrack::volume {
namespace {

void Fill(MutableView bytes, Random& random) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
}

void ExpectXor(std::size_t count, std::size_t length, std::size_t shift, Random& random) {
  const Bytes room((length + shift + 63) / 64 * 64 + 64);
  std::vector<AlignedBuffer> memory;
  std::vector<ConstView> sources;
  for (std::size_t i = 0; i < count; ++i) {
    memory.emplace_back(room);
    const MutableView bytes = memory.back().view().subspan(shift, length);
    Fill(bytes, random);
    sources.push_back(bytes);
  }
  AlignedBuffer parity(room);
  const MutableView into = parity.view().subspan(shift, length);
  XorInto(into, sources);
  for (std::size_t at = 0; at < length; ++at) {
    std::byte expected{0};
    for (const ConstView source : sources) expected ^= source[at];
    ASSERT_EQ(into[at], expected) << count << " sources, byte " << at << " of " << length;
  }
  // The first, from the parity and the others.
  const std::vector<std::byte> first(sources[0].begin(), sources[0].end());
  sources[0] = into;
  XorInto(into, sources);
  EXPECT_TRUE(std::ranges::equal(into, first)) << "a source may be the target itself";
}

TEST(Parity, IsTheXorOfItsSources) {
  Random random(Seed{1});
  for (std::size_t count = 1; count <= 32; ++count) {
    ExpectXor(count, 64 * (1 + random.Below(40)), 0, random);
    ExpectXor(count, 1 + random.Below(3000), 0, random);
    ExpectXor(count, 64 * (1 + random.Below(40)), 1 + random.Below(63), random);
  }
  ExpectXor(5, 3 << 20, 0, random);
}

TEST(Parity, AddingTwiceTakesAway) {
  Random random(Seed{2});
  AlignedBuffer target(4_KiB);
  AlignedBuffer other(4_KiB);
  Fill(target.view(), random);
  Fill(other.view(), random);
  const std::vector<std::byte> before(target.view().begin(), target.view().end());
  XorAdd(target.view(), other.view());
  EXPECT_FALSE(std::ranges::equal(target.view(), before));
  XorAdd(target.view(), other.view());
  EXPECT_TRUE(std::ranges::equal(target.view(), before));
}

}  // namespace
}  // namespace labrack::volume
