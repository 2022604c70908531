#include "storage/volume/parity.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <isa-l/raid.h>

#include "storage/base/check.h"

namespace labrack::volume {
namespace {

bool Aligned(const std::byte* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % kXorAlignment == 0;
}

// ISA-L takes an int for a length, and buffers that fit into the second-level cache do best.
constexpr std::size_t kStepMax = std::size_t{1} << 20;

void XorAligned(MutableView into, std::span<const ConstView> sources) {
  std::array<void*, kXorSourcesMax + 1> vectors;
  for (std::size_t done = 0; done < into.size(); done += kStepMax) {
    const std::size_t step = std::min(kStepMax, into.size() - done);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      vectors[i] = const_cast<std::byte*>(sources[i].data() + done);  // read only
    }
    vectors[sources.size()] = into.data() + done;
    const int failed =
        xor_gen(static_cast<int>(sources.size() + 1), static_cast<int>(step), vectors.data());
    LABRACK_CHECK(failed == 0);
  }
}

void XorUnaligned(MutableView into, std::span<const ConstView> sources) {
  for (std::size_t at = 0; at < into.size();) {
    std::uint64_t word = 0;
    const std::size_t step = std::min(sizeof word, into.size() - at);
    for (const ConstView source : sources) {
      std::uint64_t other = 0;
      std::memcpy(&other, source.data() + at, step);
      word ^= other;
    }
    std::memcpy(into.data() + at, &word, step);
    at += step;
  }
}

}  // namespace

void XorInto(MutableView into, std::span<const ConstView> sources) {
  LABRACK_CHECK(!sources.empty() && sources.size() <= kXorSourcesMax);
  bool aligned = Aligned(into.data()) && into.size() % kXorAlignment == 0;
  for (const ConstView source : sources) {
    LABRACK_CHECK(source.size() == into.size());
    aligned = aligned && Aligned(source.data());
  }
  if (into.empty()) return;
  if (sources.size() == 1) {
    if (sources[0].data() != into.data()) {
      std::memcpy(into.data(), sources[0].data(), into.size());
    }
  } else if (aligned) {
    XorAligned(into, sources);
  } else {
    XorUnaligned(into, sources);
  }
}

void XorAdd(MutableView into, ConstView source) {
  const std::array<ConstView, 2> sources{into, source};
  XorInto(into, sources);
}

}  // namespace labrack::volume
