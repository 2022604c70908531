#include "storage/block/wrap/trace.h"

#include <algorithm>
#include <array>
#include <bit>

#include "storage/base/check.h"
#include "storage/base/units.h"

namespace labrack::block {
namespace {

const char* KindName(TraceRecord::Kind kind) {
  switch (kind) {
    case TraceRecord::Kind::kRead:
      return "read";
    case TraceRecord::Kind::kWrite:
      return "write";
    case TraceRecord::Kind::kDurableWrite:
      return "durable write";
    case TraceRecord::Kind::kFlush:
      return "flush";
  }
  return "unknown";
}

}  // namespace

std::string TraceRecord::ToString() const {
  std::string text = FormatDuration(Nanoseconds(begin_ns)) + " +" +
                     FormatDuration(Nanoseconds(duration_ns)) + " " + KindName(kind);
  if (kind != Kind::kFlush) text += " " + std::to_string(length) + " at " + std::to_string(at);
  text += ", " + std::string(PurposeName(purpose)) + ", depth " + std::to_string(depth) + ": ";
  if (result == kDone) return text + "done";
  return text + std::string(ErrcName(static_cast<Errc>(result - 1)));
}

TraceDevice::TraceDevice(runtime::Reactor& reactor, BlockDevice& device, std::uint32_t number,
                         std::size_t capacity)
    : reactor_(reactor), device_(device), number_(number), ring_(capacity) {
  LABRACK_CHECK(capacity > 0);
}

TraceRecord TraceDevice::Begun(TraceRecord::Kind kind, const IoContext& io, Offset at,
                               std::size_t length) const {
  return {.begin_ns = reactor_.Now().time_since_epoch().count(),
          .at = at.value(),
          .length = static_cast<std::uint32_t>(length),
          .kind = kind,
          .purpose = io.purpose,
          .depth = io.depth};
}

void TraceDevice::Ended(TraceRecord record, const Result<void>& done) {
  record.duration_ns = reactor_.Now().time_since_epoch().count() - record.begin_ns;
  if (!done) record.result = static_cast<std::uint8_t>(1 + static_cast<int>(done.error().code()));
  ring_[count_ % ring_.size()] = record;
  ++count_;
  const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(record);
  reactor_.Record(number_, words[0]);
  reactor_.Record(words[1], words[2]);
  reactor_.Record(number_, words[3]);
}

Task<Result<void>> TraceDevice::Read(IoContext io, Offset at, MutableView into) {
  const TraceRecord record = Begun(TraceRecord::Kind::kRead, io, at, into.size());
  Result<void> done = co_await device_.Read(io, at, into);
  Ended(record, done);
  co_return done;
}

Task<Result<void>> TraceDevice::Write(IoContext io, Offset at, ConstView from) {
  const auto kind = io.durable ? TraceRecord::Kind::kDurableWrite : TraceRecord::Kind::kWrite;
  const TraceRecord record = Begun(kind, io, at, from.size());
  Result<void> done = co_await device_.Write(io, at, from);
  Ended(record, done);
  co_return done;
}

Task<Result<void>> TraceDevice::Flush(IoContext io) {
  const TraceRecord record = Begun(TraceRecord::Kind::kFlush, io, Offset(), 0);
  Result<void> done = co_await device_.Flush(io);
  Ended(record, done);
  co_return done;
}

std::vector<TraceRecord> TraceDevice::Records() const {
  const std::uint64_t kept = std::min<std::uint64_t>(count_, ring_.size());
  std::vector<TraceRecord> records;
  for (std::uint64_t i = count_ - kept; i < count_; ++i) {
    records.push_back(ring_[i % ring_.size()]);
  }
  return records;
}

std::uint64_t TraceDevice::overwritten_count() const {
  return count_ > ring_.size() ? count_ - ring_.size() : 0;
}

}  // namespace labrack::block
