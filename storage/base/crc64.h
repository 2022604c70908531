// CRC-64/XZ (ECMA-182, reflected; ISO 3309 conditioning): check value of "123456789" is
// 0x995dc9bbdf1939fa. Guards records on disks; the seed binds a record to its place, so that one
// that was written or read at the wrong place does not check.
#pragma once

#include <cstdint>

#include "storage/base/bytes.h"

namespace labrack {

// `before`: the CRC of what precedes, to go on from; or a seed.
std::uint64_t Crc64(ConstView data, std::uint64_t before = 0);

}  // namespace labrack
