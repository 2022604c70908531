#include <algorithm>
#include <array>
#include <string>

#include "storage/volume/parity.h"
#include "storage/volume/raid5.h"

namespace labrack::volume {

using block::IoContext;

Task<Result<void>> Raid5::Read(IoContext io, Offset at, MutableView into) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
  const Bytes row = layout_.Find(at).row;
  if (Bytes(into.size()) <= layout_.interlace() - row && !into.empty()) {
    return ReadChunk(io, at, into);
  }
  return ReadChunks(io, at, into);
}

Task<Result<void>> Raid5::ReadChunks(IoContext io, Offset at, MutableView into) {
  const std::size_t interlace = layout_.interlace().size();
  runtime::WhenAll<Result<void>> reads(reactor_, into.size() / interlace + 2);
  for (std::size_t done = 0; done < into.size();) {
    const Offset here = at + Bytes(done);
    const std::size_t left = interlace - layout_.Find(here).row.size();
    const std::size_t length = std::min(left, into.size() - done);
    reads.Add(0, ReadChunk(io, here, into.subspan(done, length)));
    done += length;
  }
  co_await reads.Join();
  for (std::size_t i = 0; i < reads.count(); ++i) {
    if (!reads.result(i)) co_return reads.result(i);
  }
  co_return Result<void>{};
}

// Within one chunk. The lock keeps it behind writes that are acknowledged and not in place yet.
Task<Result<void>> Raid5::ReadChunk(IoContext io, Offset at, MutableView into) {
  const Raid5Layout::Place place = layout_.Find(at);
  const std::size_t column = layout_.DataColumn(place.line, place.index);
  co_await locks_.Of(place.line, LockKind::kShared);
  if (columns_.readable(column, place.line) && !columns_.broken()) {
    Result<void> read =
        co_await columns_.Read(io, column, layout_.InColumn(place.line, place.row), into);
    locks_.Release(place.line, LockKind::kShared);
    if (read || read.error().code() == Errc::kCancelled) co_return read;
    io = io.After();
  } else {
    locks_.Release(place.line, LockKind::kShared);
  }
  co_return co_await RegenerateChunk(io, at, into);
}

// From the other columns; and where only a sector of the column could not be read, written to it
// again.
Task<Result<void>> Raid5::RegenerateChunk(IoContext io, Offset at, MutableView into) {
  const Raid5Layout::Place place = layout_.Find(at);
  const std::size_t column = layout_.DataColumn(place.line, place.index);
  const Rows rows{place.row, place.row + Bytes(into.size())};
  co_await locks_.Of(place.line, LockKind::kExclusive);
  co_await works_.Acquire();
  LineWork& work = works_.Get();
  work.share = {.line = place.line, .begin = Bytes(0), .end = layout_.line_size()};
  Result<void> done = columns_.Usable();
  if (done) done = co_await Regenerate(work, io, column, rows, into);
  if (done && columns_.okay(column)) {
    io = io.For(block::Purpose::kRebuild).After();
    io.cancel = nullptr;
    const std::uint64_t term = columns_.term(column);
    Result<void> repaired =
        co_await columns_.Write(io, column, layout_.InColumn(place.line, place.row), into);
    if (!repaired) done = co_await columns_.FailColumn(io, column, term, repaired.error());
  }
  works_.Put(work);
  locks_.Release(place.line, LockKind::kExclusive);
  co_return done;
}

// The rows of a column as the others make them, under the line's lock.
Task<Result<void>> Raid5::Regenerate(LineWork& work, IoContext io, std::size_t column, Rows rows,
                                     MutableView into) {
  const std::uint64_t line = work.share.line;
  std::array<ConstView, kRaid5ColumnsMax> sources;
  std::size_t count = 0;
  runtime::WhenAll<Result<void>> reads(reactor_, columns_.count());
  for (std::size_t other = 0; other < columns_.count(); ++other) {
    if (other == column) continue;
    if (!columns_.readable(other, line)) {
      co_await reads.Join();
      co_return Fail(Errc::kIo, "RAID-5",
                     "line " + std::to_string(line) + " cannot be read on column " +
                         std::to_string(column) + ", and column " + std::to_string(other) +
                         " is missing");
    }
    const MutableView old = work.Old(other, rows.length());
    sources[count++] = old;
    reads.Add(other, columns_.Read(io.For(block::Purpose::kRebuild), other,
                                   layout_.InColumn(line, rows.begin), old));
  }
  co_await reads.Join();
  for (std::size_t i = 0; i < reads.count(); ++i) {
    if (!reads.result(i)) co_return reads.result(i);
  }
  XorInto(into, std::span(sources).first(count));
  co_return Result<void>{};
}

}  // namespace labrack::volume
