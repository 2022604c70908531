// Goal: no bytes crash the reader of a set's record, and what it takes is what would be written.
// Method: libFuzzer. The input is read as it is, and again with length and checksum made right, so
// that what stands behind them is reached.
//   build/release/tests/volume_set_fuzz -max_total_time=600 NEW_DIR tests/fuzz/corpus/volume_set
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "storage/base/check.h"
#include "storage/base/crc64.h"
#include "storage/volume/records.h"

namespace labrack::volume {
namespace {

constexpr std::size_t kLengthAt = 12;

void Check(ConstView slot) {
  for (const Offset at : {Offset(0), Offset(kSlotSize.count())}) {
    const Result<Replica> replica = DecodeReplica(slot, at);
    if (!replica) continue;
    const std::vector<std::byte> again = EncodeReplica(*replica, at);
    std::uint32_t length = 0;
    std::memcpy(&length, again.data() + kLengthAt, sizeof length);
    LABRACK_CHECK(std::ranges::equal(ConstView(again).first(length + sizeof(std::uint64_t)),
                                     slot.first(length + sizeof(std::uint64_t))));
  }
}

void CheckSealed(ConstView bytes) {
  if (bytes.size() < kLengthAt + sizeof(std::uint32_t) || bytes.size() > kSlotSize.size() / 2)
    return;
  std::vector<std::byte> slot(bytes.begin(), bytes.end());
  const auto length = static_cast<std::uint32_t>(slot.size());
  std::memcpy(slot.data() + kLengthAt, &length, sizeof length);
  const std::uint64_t crc = Crc64(slot, 0);
  slot.resize(slot.size() + sizeof crc);
  std::memcpy(slot.data() + length, &crc, sizeof crc);
  Check(slot);
}

}  // namespace
}  // namespace labrack::volume

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const labrack::ConstView bytes = std::as_bytes(std::span(data, size));
  labrack::volume::Check(bytes);
  labrack::volume::CheckSealed(bytes);
  return 0;
}
