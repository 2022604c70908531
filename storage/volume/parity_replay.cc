#include "storage/volume/parity_replay.h"

#include <algorithm>
#include <span>
#include <string>
#include <tuple>

#include "storage/base/aligned_buffer.h"
#include "storage/base/crc64.h"
#include "storage/base/plant.h"
#include "storage/volume/parity.h"

namespace labrack::volume {
namespace {

class Replay {
 public:
  Replay(Raid5Columns& columns, const Raid5Layout& layout, const ParityLogShape& shape)
      : columns_(columns),
        layout_(layout),
        shape_(shape),
        slot_(shape.slot_size()),
        other_(shape.interlace) {}

  Task<Result<ReplayReport>> Run();

 private:
  struct Found {
    LogEntry entry;
    std::size_t slot;
    bool whole;
  };

  Task<Result<void>> Once();
  Task<Result<void>> ReadHeads();
  Task<Result<void>> ReadEntries(std::size_t column);
  Task<Result<void>> ApplyPrewrites();
  Task<Result<void>> ApplyPrewrite(std::span<const Found> of_one_id);
  Task<Result<void>> ApplyPartialParities();
  Task<Result<void>> ApplyPartialParity(const Found& found);

  bool InRange(const LogEntry& entry) const;
  bool LastOfItsLine(const Found& found) const;
  bool AllWhole(std::span<const Found> of_one_id) const;
  std::uint64_t floor() const {
    return report_.head && !LABRACK_PLANTED(kReplayBelowFloor) ? report_.head->floor : 0;
  }
  MutableView slot_data(Bytes length) {
    return slot_.view().subspan(shape_.block.size(), length.size());
  }

  // These let the column fail, and set again_, when the device does not do it.
  Task<Result<void>> Read(std::size_t column, Offset at, MutableView into);
  Task<Result<void>> ReadData(std::size_t column, Bytes at, MutableView into) {
    return Read(column, columns_[column].data_at + at, into);
  }
  Task<Result<void>> WriteData(std::size_t column, Bytes at, ConstView from);
  Task<Result<void>> Failed(std::size_t column, Error why);

  static block::IoContext Context() {
    return {.purpose = block::Purpose::kReplay, .priority = block::PriorityClass::kSyncRead};
  }

  Raid5Columns& columns_;
  const Raid5Layout& layout_;
  const ParityLogShape& shape_;
  AlignedBuffer slot_;
  AlignedBuffer other_;
  std::vector<Found> found_;
  ReplayReport report_;
  bool again_ = false;
};

Task<Result<void>> Replay::Failed(std::size_t column, Error why) {
  again_ = true;
  return columns_.FailColumn(Context(), column, columns_.term(column), std::move(why));
}

Task<Result<void>> Replay::Read(std::size_t column, Offset at, MutableView into) {
  Result<void> read = co_await columns_[column].device->Read(Context(), at, into);
  if (read) co_return read;
  co_return co_await Failed(column, read.error());
}

Task<Result<void>> Replay::WriteData(std::size_t column, Bytes at, ConstView from) {
  Result<void> written = co_await columns_.Write(Context(), column, at, from);
  if (written) co_return written;
  co_return co_await Failed(column, written.error());
}

Task<Result<ReplayReport>> Replay::Run() {
  do {
    again_ = false;
    found_.clear();
    report_ = {};
    Result<void> done = co_await Once();
    if (!done) co_return std::unexpected(done.error());
  } while (again_);  // at most as often as columns can fail
  co_return report_;
}

Task<Result<void>> Replay::Once() {
  Result<void> heads = co_await ReadHeads();
  if (!heads || again_) co_return heads;
  if (shape_.mode == ParityLogMode::kNone) co_return heads;
  for (std::size_t column = 0; column < columns_.count(); ++column) {
    if (!columns_.okay(column)) continue;
    Result<void> read = co_await ReadEntries(column);
    if (!read || again_) co_return read;
  }
  if (!LABRACK_PLANTED(kReplayUnsorted)) {
    std::ranges::sort(found_, {}, [](const Found& found) {
      return std::tuple(found.entry.id, found.entry.column);
    });
  }
  const bool prewrites = shape_.mode == ParityLogMode::kPrewrite;
  Task<Result<void>> apply = prewrites ? ApplyPrewrites() : ApplyPartialParities();
  Result<void> applied = co_await std::move(apply);
  if (!applied || again_) co_return applied;
  co_return co_await columns_.Flush(Context());
}

Task<Result<void>> Replay::ReadHeads() {
  for (std::size_t column = 0; column < columns_.count(); ++column) {
    if (!columns_.okay(column)) continue;
    for (std::uint64_t turn = 0; turn < 2; ++turn) {
      const Offset at = shape_.HeadAt(columns_[column], turn);
      const MutableView block = slot_.first(shape_.block);
      Result<void> read = co_await Read(column, at, block);
      if (!read || again_) co_return read;
      const Result<LogHead> head = DecodeLogHead(block, shape_.Place(column, at));
      if (!head) continue;
      if (head->mode != shape_.mode) {
        co_return Fail(Errc::kCorrupt, "column " + std::to_string(column),
                       std::string("this RAID-5 was made with parity log ") +
                           ParityLogModeName(head->mode) + "; it is assembled with " +
                           ParityLogModeName(shape_.mode));
      }
      if (!report_.head || report_.head->generation < head->generation) report_.head = *head;
    }
  }
  co_return Result<void>{};
}

Task<Result<void>> Replay::ReadEntries(std::size_t column) {
  for (std::size_t slot = 0; slot < shape_.slot_count; ++slot) {
    const Offset at = shape_.SlotAt(columns_[column], slot);
    const MutableView block = slot_.first(shape_.block);
    Result<void> read = co_await Read(column, at, block);
    if (!read || again_) co_return read;
    const Result<LogEntry> entry = DecodeLogEntry(block, shape_.Place(column, at));
    if (!entry || entry->mode != shape_.mode) continue;
    report_.next_id = std::max(report_.next_id, entry->id + 1);
    if (entry->id < floor() || !InRange(*entry)) continue;
    bool whole = true;
    if (entry->data_length.count() > 0) {
      const MutableView data = slot_data(entry->data_length);
      read = co_await Read(column, at + shape_.block, data);
      if (!read || again_) co_return read;
      whole = Crc64(data) == entry->data_crc;
    }
    found_.push_back({*entry, slot, whole});
  }
  co_return Result<void>{};
}

// A record that checks was written by this volume; what it says is looked at all the same, since
// it says where to write.
bool Replay::InRange(const LogEntry& entry) const {
  const auto aligned = [this](Bytes length) { return IsAligned(length, shape_.block); };
  const Bytes end = layout_.interlace() * layout_.lines();
  if (!aligned(entry.at) || !aligned(entry.length) || !aligned(entry.data_length)) return false;
  if (entry.at > end || entry.length > end - entry.at) return false;
  if (entry.at % shape_.interlace + entry.length > shape_.interlace) return false;
  if (entry.mode == ParityLogMode::kPrewrite) return entry.data_length == entry.length;
  const Offset size(layout_.size().count());
  if (entry.write_at > size || entry.write_length > size - entry.write_at) return false;
  if (entry.write_length.count() == 0) return false;
  const LineShare share = layout_.FirstShare(entry.write_at, entry.write_length);
  const Rows hull = layout_.Hull(share);
  return share.end - share.begin == entry.write_length &&
         entry.column == layout_.ParityColumn(share.line) &&
         entry.at == layout_.InColumn(share.line, hull.begin) && entry.length == hull.length() &&
         (entry.data_length.count() == 0 || entry.data_length == entry.length);
}

bool Replay::AllWhole(std::span<const Found> of_one_id) const {
  if (LABRACK_PLANTED(kReplayIncomplete)) return true;
  std::uint64_t needed = of_one_id.front().entry.columns;
  for (std::size_t column = 0; column < columns_.count(); ++column) {
    if (!columns_.okay(column)) needed &= ~(std::uint64_t{1} << column);
  }
  for (const Found& found : of_one_id) {
    if (found.whole) needed &= ~(std::uint64_t{1} << found.entry.column);
  }
  return needed == 0;
}

Task<Result<void>> Replay::ApplyPrewrites() {
  for (std::size_t first = 0; first < found_.size();) {
    std::size_t last = first;
    while (last < found_.size() && found_[last].entry.id == found_[first].entry.id) ++last;
    const std::span<const Found> of_one_id(found_.data() + first, last - first);
    first = last;
    if (!AllWhole(of_one_id)) {
      ++report_.discarded_count;
      continue;
    }
    Result<void> applied = co_await ApplyPrewrite(of_one_id);
    if (!applied || again_) co_return applied;
    ++report_.applied_count;
  }
  co_return Result<void>{};
}

Task<Result<void>> Replay::ApplyPrewrite(std::span<const Found> of_one_id) {
  for (const Found& found : of_one_id) {
    if (!found.whole) continue;
    const std::size_t column = found.entry.column;
    const MutableView data = slot_data(found.entry.data_length);
    const Offset at = shape_.SlotAt(columns_[column], found.slot) + shape_.block;
    Result<void> moved = co_await Read(column, at, data);
    if (!moved || again_) co_return moved;
    moved = co_await WriteData(column, found.entry.at, data);
    if (!moved || again_) co_return moved;
  }
  co_return Result<void>{};
}

bool Replay::LastOfItsLine(const Found& found) const {
  return std::ranges::none_of(found_, [&](const Found& other) {
    return other.entry.id > found.entry.id &&
           other.entry.at / shape_.interlace == found.entry.at / shape_.interlace;
  });
}

Task<Result<void>> Replay::ApplyPartialParities() {
  for (const Found& found : found_) {
    if (!LastOfItsLine(found)) continue;
    if (!found.whole) {
      ++report_.discarded_count;
      continue;
    }
    Result<void> applied = co_await ApplyPartialParity(found);
    if (!applied || again_) co_return applied;
    ++report_.applied_count;
  }
  co_return Result<void>{};
}

Task<Result<void>> Replay::ApplyPartialParity(const Found& found) {
  const LogEntry& entry = found.entry;
  const LineShare share = layout_.FirstShare(entry.write_at, entry.write_length);
  const Rows hull = layout_.Hull(share);
  const MutableView parity = slot_data(entry.length);
  std::ranges::fill(parity, std::byte{0});
  if (entry.data_length.count() > 0) {
    const Offset at = shape_.SlotAt(columns_[entry.column], found.slot) + shape_.block;
    Result<void> read = co_await Read(entry.column, at, parity);
    if (!read || again_) co_return read;
  }
  Rows known = hull;
  for (std::size_t index = 0; index < layout_.data_columns(); ++index) {
    const Rows touched = layout_.Touched(share, index);
    if (touched.empty()) continue;
    const std::size_t column = layout_.DataColumn(share.line, index);
    if (!columns_.okay(column)) {
      known = layout_.Untouched(share, index);
      continue;
    }
    const MutableView data = other_.first(touched.length());
    Result<void> read =
        co_await ReadData(column, layout_.InColumn(share.line, touched.begin), data);
    if (!read || again_) co_return read;
    XorAdd(parity.subspan((touched.begin - hull.begin).size(), data.size()), data);
  }
  if (known.empty()) co_return Result<void>{};
  const ConstView part = parity.subspan((known.begin - hull.begin).size(), known.length().size());
  co_return co_await WriteData(entry.column, layout_.InColumn(share.line, known.begin), part);
}

}  // namespace

Task<Result<ReplayReport>> ReplayParityLog(Raid5Columns& columns, const Raid5Layout& layout,
                                           const ParityLogShape& shape) {
  Replay replay(columns, layout, shape);
  co_return co_await replay.Run();
}

}  // namespace labrack::volume
