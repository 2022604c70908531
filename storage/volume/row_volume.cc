#include "storage/volume/row_volume.h"

#include <algorithm>
#include <utility>

#include "storage/base/check.h"
#include "storage/runtime/task_group.h"

namespace labrack::volume {

using runtime::WhenAll;

namespace {

Result<void> FirstError(WhenAll<Result<void>>& results) {
  for (std::size_t i = 0; i < results.count(); ++i) {
    if (!results.result(i)) return std::move(results.result(i));
  }
  return {};
}

}  // namespace

Piece RowVolume::Locate(Offset at, Bytes length) const {
  const auto after = std::ranges::upper_bound(rows_, at, {}, &Row::begin);
  LABRACK_CHECK(after != rows_.begin());
  const Row& row = *std::prev(after);
  const Bytes within = at - row.begin;
  const Bytes rest = row.size - within;
  const std::uint64_t columns = row.columns.size();
  if (columns == 1) {
    return {row.columns[0].device, row.columns[0].at + within, std::min(length, rest)};
  }
  const std::uint64_t segment = within / row.interlace;
  const Bytes into = within % row.interlace;
  const Row::Column& column = row.columns[segment % columns];
  return {column.device, column.at + row.interlace * (segment / columns) + into,
          std::min(length, row.interlace - into)};
}

std::size_t RowVolume::CountPieces(Offset at, Bytes length) const {
  std::size_t count = 0;
  while (length > Bytes(0)) {
    const Piece piece = Locate(at, length);
    at += piece.length;
    length -= piece.length;
    ++count;
  }
  return count;
}

Task<Result<void>> RowVolume::Read(block::IoContext io, Offset at, MutableView into) {
  const Bytes length(into.size());
  LABRACK_CHECK(geometry_.Covers(at, length));
  if (length == Bytes(0)) return Answered({});
  const Piece piece = Locate(at, length);
  if (piece.length == length) return piece.device->Read(io, piece.at, into);
  return ReadPieces(io, at, into);
}

Task<Result<void>> RowVolume::Write(block::IoContext io, Offset at, ConstView from) {
  const Bytes length(from.size());
  LABRACK_CHECK(geometry_.Covers(at, length));
  if (length == Bytes(0)) return Answered({});
  const Piece piece = Locate(at, length);
  if (piece.length == length) return piece.device->Write(io, piece.at, from);
  return WritePieces(io, at, from);
}

Task<Result<void>> RowVolume::ReadPieces(block::IoContext io, Offset at, MutableView into) {
  WhenAll<Result<void>> reads(reactor_, CountPieces(at, Bytes(into.size())));
  for (std::size_t done = 0; done < into.size();) {
    const Piece piece = Locate(at + Bytes(done), Bytes(into.size() - done));
    const std::size_t here = piece.length.size();
    reads.Add(done, piece.device->Read(io, piece.at, into.subspan(done, here)));
    done += here;
  }
  co_await reads.Join();
  co_return FirstError(reads);
}

Task<Result<void>> RowVolume::WritePieces(block::IoContext io, Offset at, ConstView from) {
  WhenAll<Result<void>> writes(reactor_, CountPieces(at, Bytes(from.size())));
  for (std::size_t done = 0; done < from.size();) {
    const Piece piece = Locate(at + Bytes(done), Bytes(from.size() - done));
    const std::size_t here = piece.length.size();
    writes.Add(done, piece.device->Write(io, piece.at, from.subspan(done, here)));
    done += here;
  }
  co_await writes.Join();
  co_return FirstError(writes);
}

Task<Result<void>> RowVolume::Flush(block::IoContext io) {
  switch (flush_) {
    case block::FlushMode::kPass:
      return FlushAll(io);
    case block::FlushMode::kRefuse:
      return Answered(FlushRefused("volume"));
    case block::FlushMode::kDrop:
      return Answered({});
  }
  return Answered({});
}

Task<Result<void>> RowVolume::FlushAll(block::IoContext io) {
  WhenAll<Result<void>> flushes(reactor_, devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) flushes.Add(i, devices_[i]->Flush(io));
  co_await flushes.Join();
  co_return FirstError(flushes);
}

void RowVolume::AppendRow(std::vector<Row::Column> columns, Bytes per_column, Bytes interlace) {
  const Bytes size = per_column * columns.size();
  rows_.push_back({.begin = Offset(geometry_.size.count()),
                   .size = size,
                   .interlace = interlace,
                   .columns = std::move(columns)});
  geometry_.size += size;
}

Result<void> RowVolume::Grow(std::span<const Component> components) {
  Result<void> fit = CheckGrow(components);
  if (!fit) return fit;
  AppendRows(components);
  for (const Component& component : components) devices_.push_back(component.device);
  return {};
}

Task<Result<void>> Answered(Result<void> answer) { co_return answer; }

}  // namespace labrack::volume
