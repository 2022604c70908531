#include "storage/block/disk/controller_disk.h"

#include <algorithm>
#include <utility>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

// Calls `use(offset, length)` for each part of [at, at + length) that lies in one chunk.
template <typename Use>
void ForEachPart(Offset at, Bytes length, Bytes chunk, const Use& use) {
  while (length > Bytes(0)) {
    const Bytes part = std::min(length, chunk - Bytes(at.value() % chunk.count()));
    use(at, part);
    at += part;
    length -= part;
  }
}

}  // namespace

Result<void> ControllerDiskOptions::Validate() const {
  if (block_size == Bytes(0) || !IsAligned(block_size, MechanicsOptions::kSector)) {
    return Fail(Errc::kInvalidArgument, "block size", "is a multiple of 512 bytes");
  }
  if (size == Bytes(0) || !IsAligned(size, block_size)) {
    return Fail(Errc::kInvalidArgument, "size", "is a positive multiple of the block size");
  }
  if (queue_depth == 0 || queue_depth > ControllerDisk::kQueueDepthMax) {
    return Fail(Errc::kInvalidArgument, "queue depth",
                "is from 1 to " + std::to_string(ControllerDisk::kQueueDepthMax));
  }
  if (units == 0 || chunk == Bytes(0) || !IsAligned(chunk, block_size)) {
    return Fail(Errc::kInvalidArgument, "units",
                "there is one at least, and a chunk is a positive multiple of the block size");
  }
  for (const std::int64_t time :
       {read_command_ns, write_command_ns, read_interval_ns, write_interval_ns, chunk_read_ns,
        chunk_write_ns, part_write_min_ns, flush_ns}) {
    if (time < 0) return Fail(Errc::kInvalidArgument, "times", "no time is negative");
  }
  if (read_segments > 0 && segment_size == Bytes(0)) {
    return Fail(Errc::kInvalidArgument, "read cache", "reading ahead has a length");
  }
  if (!spindle) return {};
  if (Result<void> valid = spindle->Validate(); !valid) return valid;
  if (Mechanics(*spindle).capacity() * units < size + units * chunk) {
    return Fail(Errc::kInvalidArgument, "size", "is more than the spindles hold");
  }
  return {};
}

Result<std::unique_ptr<ControllerDisk>> ControllerDisk::Create(runtime::Reactor& reactor,
                                                               ControllerDiskOptions options,
                                                               Bus& bus) {
  if (Result<void> valid = options.Validate(); !valid) return std::unexpected(valid.error());
  return std::unique_ptr<ControllerDisk>(new ControllerDisk(reactor, std::move(options), bus));
}

ControllerDisk::ControllerDisk(runtime::Reactor& reactor, ControllerDiskOptions options, Bus& bus)
    : ModelDisk(reactor, {.geometry = {.size = options.size, .block_size = options.block_size},
                          .queue_depth = options.queue_depth}),
      options_(std::move(options)),
      bus_(bus),
      units_(options_.units),
      read_cache_(options_.read_segments, options_.segment_size, options_.size) {
  if (options_.spindle) mechanics_.emplace(*options_.spindle);
}

Task<ModelDisk::Served> ControllerDisk::ServeRead(IoContext, Offset at, Bytes length) {
  const Nanoseconds latency(options_.read_command_ns);
  const TimePoint begin = TakeInterval(options_.read_interval_ns) + latency;
  counted().command += begin - Now();
  TimePoint there = begin;
  if (const TrackCache::Segment* segment = read_cache_.Find(at, length)) {
    ++counted().cache_hits;
    there = std::max(begin, segment->ReadyTo(at + length));
    ReadAhead(at, length, begin);
  } else {
    there =
        options_.read_segments > 0 ? ReadAhead(at, length, begin) : ReadUnits(at, length, begin);
  }
  bool on = co_await SleepUntil(there);
  if (!on) co_return Served::kNoPower;
  const TimePoint done = bus_.TakeUntil(Now(), length);
  counted().bus += done - Now();
  on = co_await SleepUntil(done);
  co_return on ? Served::kYes : Served::kNoPower;
}

Task<ModelDisk::Served> ControllerDisk::ServeWrite(IoContext io, Offset at, Bytes length,
                                                   DiskImage::WriteId id) {
  const TimePoint begin = TakeInterval(options_.write_interval_ns);
  read_cache_.Invalidate(at, length);
  const TimePoint buffered_at = std::max(bus_.Take(begin, length), TakeRoom(length));
  const TimePoint done_at = WriteUnits(at, length, buffered_at);
  buffered_.push_back({done_at, length});
  buffer_used_ += length;
  TimePoint acknowledged_at = buffered_at + Nanoseconds(options_.write_command_ns);
  const bool to_medium = io.durable && !options_.buffer_safe;
  if (to_medium) acknowledged_at = std::max(acknowledged_at, done_at);
  bool on = co_await SleepUntil(acknowledged_at);
  if (!on) co_return Served::kNoPower;
  if (to_medium || options_.buffer_safe) {
    Persist(id);
  } else {
    Acknowledged(id, done_at);
  }
  co_return Served::kYes;
}

Task<ModelDisk::Served> ControllerDisk::ServeFlush(IoContext) {
  TimePoint flushed_at = TakeInterval(options_.write_interval_ns);
  std::deque<Unflushed> covered;
  covered.swap(unflushed_);
  if (!options_.buffer_safe) flushed_at = std::max(flushed_at, drained_at_);
  bool on = co_await SleepUntil(flushed_at + Nanoseconds(options_.flush_ns));
  if (!on) co_return Served::kNoPower;
  for (const Unflushed& write : covered) Persist(write.id);
  co_return Served::kYes;
}

void ControllerDisk::LosePower() {
  units_.assign(options_.units, {});
  next_command_at_ = Now();
  drained_at_ = Now();
  read_cache_.Clear();
  buffered_.clear();
  buffer_used_ = Bytes(0);
  unflushed_.clear();
}

TimePoint ControllerDisk::TakeInterval(std::int64_t interval_ns) {
  const TimePoint begin = std::max(next_command_at_, Now());
  counted().queue += begin - Now();
  next_command_at_ = begin + Nanoseconds(interval_ns);
  return begin;
}

TimePoint ControllerDisk::ReadUnits(Offset at, Bytes length, TimePoint begin) {
  TimePoint end = begin;
  ForEachPart(at, length, options_.chunk, [&](Offset part, Bytes part_length) {
    end = std::max(end, ReadPart(part, part_length, begin));
  });
  return end;
}

TimePoint ControllerDisk::ReadPart(Offset at, Bytes length, TimePoint begin) {
  const std::uint64_t chunk = at.value() / options_.chunk.count();
  Unit& unit = units_[chunk % units_.size()];
  TimePoint from = std::max(begin, unit.read_free_at);
  if (unit.write_free_at > from && options_.chunk_write_ns > 0) {
    from += (unit.write_free_at - from) % options_.chunk_write_ns;
  }
  Nanoseconds takes(options_.chunk_read_ns);
  if (mechanics_) {
    const Offset there(chunk / units_.size() * options_.chunk.count() +
                       at.value() % options_.chunk.count());
    const Mechanics::Times times = mechanics_->Serve(unit.position, there, length, false, from);
    counted().seek += times.seek;
    counted().rotation += times.rotation;
    takes = times.total();
  }
  counted().transfer += takes;
  unit.read_free_at = from + takes;
  if (unit.write_free_at > from) unit.write_free_at += takes;  // which waited meanwhile
  return unit.read_free_at;
}

// Reads, and when a stream goes on, its continuation with it: when [at, at + length) is there.
TimePoint ControllerDisk::ReadAhead(Offset at, Bytes length, TimePoint begin) {
  const bool there = read_cache_.Find(at, length) != nullptr;
  const TimePoint end = there ? begin : ReadUnits(at, length, begin);
  TrackCache::Segment* segment = read_cache_.Insert(at, length);
  if (segment == nullptr) return end;
  if (!there) segment->ready = std::max(segment->ready, end);
  const Bytes left = segment->limit - segment->end;
  if (segment->going_on == 0 || left * 2 < options_.segment_size) return end;
  segment->earlier = segment->end;
  segment->earlier_ready = segment->ready;
  segment->ready = std::max(segment->ready, ReadUnits(segment->end, left, begin));
  segment->end = segment->limit;
  return end;
}

TimePoint ControllerDisk::WriteUnits(Offset at, Bytes length, TimePoint begin) {
  const bool goes_on = at == written_to_;
  const Nanoseconds least(goes_on ? 0 : options_.part_write_min_ns);
  TimePoint end = begin;
  ForEachPart(at, length, options_.chunk, [&](Offset, Bytes part) {
    const auto share = static_cast<std::int64_t>(part.count()) * options_.chunk_write_ns /
                       static_cast<std::int64_t>(options_.chunk.count());
    Unit& unit = units_[next_unit_];
    next_unit_ = (next_unit_ + 1) % units_.size();
    unit.write_free_at = std::max(unit.write_free_at, begin) + std::max(least, Nanoseconds(share));
    end = std::max(end, unit.write_free_at);
  });
  written_to_ = at + length;
  drained_at_ = std::max(drained_at_, end);
  return end;
}

// When the buffer has room for `length`, which it takes: what was buffered first leaves first.
TimePoint ControllerDisk::TakeRoom(Bytes length) {
  TimePoint at = Now();
  while (!buffered_.empty()) {
    const Buffered& first = buffered_.front();
    const bool needed = buffer_used_ + length > options_.buffer;
    if (first.done_at > at && !needed) break;
    at = std::max(at, first.done_at);
    buffer_used_ -= first.length;
    buffered_.pop_front();
  }
  return at;
}

void ControllerDisk::Acknowledged(DiskImage::WriteId id, TimePoint done_at) {
  unflushed_.push_back({id, done_at});
  while (unflushed_.size() > kUnflushedMax && unflushed_.front().done_at <= Now()) {
    Persist(unflushed_.front().id);
    unflushed_.pop_front();
  }
}

}  // namespace labrack::block
