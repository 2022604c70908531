// Goal: no bytes crash the readers of the parity log's records, and what they take is what would be
// written. Method: libFuzzer. The input is read as it is, at the place that the corpus has; then
// it gives the fields of records, which must read back as they are or be refused.
//   build/release/tests/parity_log_fuzz -max_total_time=600 NEW_DIR tests/fuzz/corpus/parity_log
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "storage/base/check.h"
#include "storage/volume/parity_log_record.h"

namespace labrack::volume {
namespace {

constexpr LogPlace kPlace{.volume_id = 0x0123456789abcdef, .column = 2, .at = Offset(12288)};
using Record = std::array<std::byte, kLogRecordSize>;

// A record that is taken is, byte for byte, the one that is written for what it says.
void CheckBytes(ConstView bytes) {
  Record again;
  if (const Result<LogHead> head = DecodeLogHead(bytes, kPlace)) {
    EncodeLogHead(*head, kPlace, again);
    LABRACK_CHECK(std::ranges::equal(again, bytes.first(again.size())));
  }
  if (const Result<LogEntry> entry = DecodeLogEntry(bytes, kPlace)) {
    EncodeLogEntry(*entry, kPlace, again);
    LABRACK_CHECK(std::ranges::equal(again, bytes.first(again.size())));
  }
}

void CheckFields(ConstView bytes) {
  std::array<std::uint64_t, 9> words{};
  std::memcpy(words.data(), bytes.data(), std::min(bytes.size(), sizeof words));
  const LogEntry entry{.mode = static_cast<ParityLogMode>(words[0] % 4),
                       .id = words[1],
                       .columns = words[2],
                       .column = static_cast<std::size_t>(words[0] >> 8),
                       .at = Bytes(words[3]),
                       .length = Bytes(words[4]),
                       .write_at = Offset(words[5]),
                       .write_length = Bytes(words[6]),
                       .data_length = Bytes(words[7]),
                       .data_crc = words[8]};
  Record record;
  EncodeLogEntry(entry, kPlace, record);
  const Result<LogEntry> read = DecodeLogEntry(record, kPlace);
  LABRACK_CHECK(!read || *read == entry);
}

}  // namespace
}  // namespace labrack::volume

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const labrack::ConstView bytes(reinterpret_cast<const std::byte*>(data), size);
  labrack::volume::CheckBytes(bytes);
  labrack::volume::CheckFields(bytes);
  return 0;
}
