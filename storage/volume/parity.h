// Parity: the XOR of several buffers, and with it the content of any one that is missing:
//
//   P = D0 ^ D1 ^ D2      D1 = P ^ D0 ^ D2      P' = P ^ D1 ^ D1'
//
// ISA-L does it where all buffers are aligned (tens of GB/s of one core); only parity.cc knows it.
#pragma once

#include <span>

#include "storage/base/bytes.h"

namespace labrack::volume {

inline constexpr std::size_t kXorSourcesMax = 64;
inline constexpr std::size_t kXorAlignment = 64;  // of memory and length, for the fast way

// into = the XOR of all sources, 1 to kXorSourcesMax of them, each as long as `into`. A source may
// be `into` itself, and may not overlap it otherwise.
void XorInto(MutableView into, std::span<const ConstView> sources);

// into ^= source.
void XorAdd(MutableView into, ConstView source);

}  // namespace labrack::volume
