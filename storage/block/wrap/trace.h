// TraceDevice: the last I/Os of a device as fixed records in a ring, oldest overwritten first, and
// all of them in the trace hash of the reactor: what shows that two runs of a seed did the same
// I/Os at the same times with the same results, and what is printed when a seed fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"

namespace labrack::block {

struct TraceRecord {
  enum class Kind : std::uint8_t { kRead, kWrite, kDurableWrite, kFlush };
  static constexpr std::uint8_t kDone = 0;

  std::int64_t begin_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t at = 0;      // bytes from the start of the device
  std::uint32_t length = 0;  // bytes
  Kind kind = Kind::kRead;
  Purpose purpose = Purpose::kUserData;
  std::uint8_t depth = 0;
  std::uint8_t result = kDone;  // otherwise 1 + the Errc

  // "1.5 ms +392 us write 4096 at 8192, user data, depth 1: I/O error"
  std::string ToString() const;
  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};
static_assert(sizeof(TraceRecord) == 32);

class TraceDevice final : public BlockDevice {
 public:
  // Reactor and device outlive this. `number` tells this device from the others in the hash; the
  // ring keeps `capacity` records, at least one.
  TraceDevice(runtime::Reactor& reactor, BlockDevice& device, std::uint32_t number,
              std::size_t capacity);

  Geometry geometry() const override { return device_.geometry(); }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override;

  // By completion, oldest first.
  std::vector<TraceRecord> Records() const;
  std::uint64_t overwritten_count() const;

 private:
  TraceRecord Begun(TraceRecord::Kind kind, const IoContext& io, Offset at,
                    std::size_t length) const;
  void Ended(TraceRecord record, const Result<void>& done);

  runtime::Reactor& reactor_;
  BlockDevice& device_;
  std::uint32_t number_;
  std::vector<TraceRecord> ring_;
  std::uint64_t count_ = 0;  // of all I/Os that completed
};

}  // namespace labrack::block
