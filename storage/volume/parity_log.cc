#include "storage/volume/parity_log.h"

#include <algorithm>

#include "storage/base/plant.h"
#include "storage/runtime/task_group.h"

namespace labrack::volume {
namespace {

// Of the log's own work, which no operation waits for unless all slots are used.
block::IoContext LogContext() {
  return {.purpose = block::Purpose::kLog, .priority = block::PriorityClass::kSyncWrite};
}

}  // namespace

std::size_t ParityLogShape::SlotCount(ParityLogMode mode, Bytes log_size, Bytes block,
                                      Bytes interlace) {
  if (mode == ParityLogMode::kNone || log_size < block * 2) return 0;
  return std::min<std::size_t>((log_size - block * 2) / (block + interlace), kSlotsMax);
}

Bytes ParityLogShape::LogSize(ParityLogMode mode, std::size_t slots, Bytes block, Bytes interlace) {
  if (mode == ParityLogMode::kNone) return block * 2;
  return block * 2 + (block + interlace) * slots;
}

ParityLog::ParityLog(Raid5Columns& columns, const ParityLogShape& shape)
    : columns_(columns),
      shape_(shape),
      head_({.mode = shape.mode}),
      rings_(columns.count()),
      taking_(columns.reactor()),
      cleaning_(columns.reactor()),
      progress_(columns.reactor()) {
  head_blocks_.reserve(columns.count());
  for (std::size_t i = 0; i < columns.count(); ++i) head_blocks_.emplace_back(shape.block);
}

void ParityLog::Adopt(const LogHead& head, std::uint64_t next_id) {
  head_ = head;
  next_id_ = std::max(next_id, head.floor);
}

std::uint64_t ParityLog::OldestInFlight() const {
  return in_flight_.empty() ? next_id_ : in_flight_.front();
}

bool ParityLog::SlotFree(std::size_t column) const {
  const Ring& ring = rings_[column];
  return ring.id[ring.next] < head_.floor;
}

// Ids are given out in the order in which slots are, so that the oldest slot of a ring is the next.
Task<Result<ParityLog::Ticket>> ParityLog::Take(std::uint64_t columns) {
  co_await taking_.Lock();
  runtime::Mutex::Held held(taking_);
  Result<void> usable = columns_.Usable();
  if (!usable) co_return std::unexpected(usable.error());
  Ticket ticket{.id = next_id_, .columns = columns};
  for (std::size_t column = 0; column < columns_.count(); ++column) {
    if ((columns >> column & 1) == 0) continue;
    Ring& ring = rings_[column];
    while (!SlotFree(column)) {
      if (LABRACK_PLANTED(kFloorNotWritten) && ring.id[ring.next] < OldestInFlight()) break;
      while (ring.id[ring.next] >= OldestInFlight() && !stuck_) {
        progress_.Reset();
        co_await progress_.Wait();
      }
      Result<void> cleaned = co_await Clean();
      if (!cleaned) co_return std::unexpected(cleaned.error());
    }
    ticket.slot[column] = static_cast<std::uint8_t>(ring.next);
    ring.id[ring.next] = ticket.id;
    ring.next = (ring.next + 1) % shape_.slot_count;
  }
  ++next_id_;
  in_flight_.push_back(ticket.id);
  co_return ticket;
}

void ParityLog::Done(const Ticket& ticket, bool in_place) {
  if (in_place) {
    const auto found = std::ranges::find(in_flight_, ticket.id);
    LABRACK_CHECK(found != in_flight_.end());
    in_flight_.erase(found);
  } else {
    stuck_ = true;
  }
  progress_.Set();
}

bool ParityLog::WantsCleaning() const {
  return !stuck_ && !cleaning_.locked() && (next_id_ - head_.floor) * 2 > shape_.slot_count &&
         OldestInFlight() > head_.floor;
}

Task<Result<void>> ParityLog::Clean() {
  co_await cleaning_.Lock();
  runtime::Mutex::Held held(cleaning_);
  if (stuck_) {
    LABRACK_CHECK(columns_.broken());
    co_return columns_.Usable();
  }
  const std::uint64_t floor = OldestInFlight();
  if (floor == head_.floor) co_return columns_.Usable();
  if (shape_.mode == ParityLogMode::kPrewrite && !LABRACK_PLANTED(kSlotFreedEarly)) {
    Result<void> flushed = co_await columns_.Flush(LogContext());
    if (!flushed) co_return flushed;
  }
  co_return co_await WriteHead(floor, head_.in_use);
}

Task<Result<void>> ParityLog::Seal(bool in_use) {
  co_await cleaning_.Lock();
  runtime::Mutex::Held held(cleaning_);
  co_return co_await WriteHead(OldestInFlight(), in_use);
}

// Whoever calls it cleans.
Task<Result<void>> ParityLog::WriteHead(std::uint64_t floor, bool in_use) {
  LogHead head = head_;
  head.floor = floor;
  head.in_use = in_use;
  ++head.generation;
  block::IoContext io = LogContext();
  io.durable = true;
  std::array<std::uint64_t, kRaid5ColumnsMax> terms{};
  runtime::WhenAll<Result<void>> writes(columns_.reactor(), columns_.count());
  for (std::size_t column = 0; column < columns_.count(); ++column) {
    if (!columns_.writable(column)) continue;
    const Component& component = columns_[column];
    const Offset at = shape_.HeadAt(component, head.generation);
    const MutableView block = head_blocks_[column].view();
    EncodeLogHead(head, shape_.Place(column, at), block);
    terms[column] = columns_.term(column);
    writes.Add(column, component.device->Write(io, at, block));
  }
  co_await writes.Join();
  for (std::size_t i = 0; i < writes.count(); ++i) {
    if (writes.result(i)) continue;
    const std::size_t column = writes.slot(i);
    Result<void> failed =
        co_await columns_.FailColumn(io, column, terms[column], writes.result(i).error());
    if (!failed) co_return failed;
  }
  head_ = head;
  co_return Result<void>{};
}

Task<Result<void>> ParityLog::MarkInUse() {
  co_await cleaning_.Lock();
  runtime::Mutex::Held held(cleaning_);
  if (head_.in_use) co_return columns_.Usable();
  co_return co_await WriteHead(head_.floor, true);
}

}  // namespace labrack::volume
