#include <algorithm>
#include <array>

#include "storage/base/plant.h"
#include "storage/volume/parity.h"
#include "storage/volume/raid5.h"

namespace labrack::volume {

using block::IoContext;
using block::PriorityClass;
using block::Purpose;

Task<Result<void>> Raid5::Rebuild(IoContext io) {
  io = io.For(Purpose::kRebuild);
  io.priority = PriorityClass::kScrub;
  const std::optional<std::size_t> missing = columns_.NotOkay();
  Result<void> usable = columns_.Usable();
  if (!missing || !usable) co_return usable;
  const std::size_t column = *missing;
  if (!columns_.writable(column)) {
    Result<void> taken = co_await columns_.TakeSpare(io, column);
    if (!taken) co_return taken;
  }
  for (std::uint64_t line = 0; line < layout_.lines(); ++line) {
    if (io.cancel != nullptr && io.cancel->cancelled()) {
      co_return Fail(Errc::kCancelled, "RAID-5", "the rebuild was cancelled; it can begin again");
    }
    Result<void> rebuilt = co_await RebuildLine(io, column, line);
    if (!rebuilt) co_return rebuilt;
  }
  co_return co_await FinishRebuild(io, column);
}

Task<Result<void>> Raid5::RebuildLine(IoContext io, std::size_t column, std::uint64_t line) {
  const bool locked = !LABRACK_PLANTED(kRebuildUnlocked);
  if (locked) co_await locks_.Of(line, LockKind::kExclusive);
  co_await works_.Acquire();
  LineWork& work = works_.Get();
  work.share = {.line = line, .begin = Bytes(0), .end = layout_.line_size()};
  const Rows chunk{Bytes(0), layout_.interlace()};
  const MutableView content = work.New(column, chunk.length());
  Result<void> done = co_await Regenerate(work, io, column, chunk, content);
  if (done && columns_.writable(column)) {
    const std::uint64_t term = columns_.term(column);
    IoContext write = io.After();
    write.cancel = nullptr;
    done = co_await columns_.Write(write, column, layout_.InColumn(line, Bytes(0)), content);
    if (!done) {
      Result<void> failed = co_await columns_.FailColumn(write, column, term, done.error());
      if (!failed) done = failed;
    }
  }
  if (done && !columns_.writable(column)) {
    done = Fail(Errc::kIo, "RAID-5", "the spare failed while it was rebuilt");
  }
  if (done) columns_.set_rebuilt_lines(line + 1);
  works_.Put(work);
  if (locked) locks_.Release(line, LockKind::kExclusive);
  co_return done;
}

// No write may be under way when the spare begins to count: one that logged its change for the
// other columns alone would be replayed without it.
Task<Result<void>> Raid5::FinishRebuild(IoContext io, std::size_t column) {
  for (std::uint64_t lock = 0; lock < LineLocks::kLockCount; ++lock) {
    co_await locks_.Of(lock, LockKind::kExclusive);
  }
  io.cancel = nullptr;
  Result<void> done = co_await columns_.Flush(io);
  if (done) done = co_await log_.Seal(log_.in_use());
  if (done && !columns_.writable(column)) {
    done = Fail(Errc::kIo, "RAID-5", "the spare failed when its rebuild was finished");
  }
  if (done) done = co_await columns_.RecordOkay(io, column);
  for (std::uint64_t lock = 0; lock < LineLocks::kLockCount; ++lock) {
    locks_.Release(lock, LockKind::kExclusive);
  }
  co_return done;
}

Task<Result<std::uint64_t>> Raid5::CheckParity(IoContext io, bool repair) {
  io = io.For(Purpose::kResync);
  std::uint64_t wrong = 0;
  if (columns_.NotOkay()) {
    co_return Fail(Errc::kUnavailable, "RAID-5",
                   "parity cannot be checked while a column is missing; rebuild it first");
  }
  for (std::uint64_t line = 0; line < layout_.lines(); ++line) {
    co_await locks_.Of(line, LockKind::kExclusive);
    Result<bool> right = co_await CheckLine(io, line, repair);
    locks_.Release(line, LockKind::kExclusive);
    if (!right) co_return std::unexpected(right.error());
    if (!*right) ++wrong;
  }
  co_return wrong;
}

// Under the line's lock. A sector of parity that cannot be read is wrong as well.
Task<Result<bool>> Raid5::CheckLine(IoContext io, std::uint64_t line, bool repair) {
  const std::size_t column = layout_.ParityColumn(line);
  co_await works_.Acquire();
  LineWork& work = works_.Get();
  work.share = {.line = line, .begin = Bytes(0), .end = layout_.line_size()};
  const MutableView expected = work.New(column, layout_.interlace());
  const MutableView actual = work.Old(column, layout_.interlace());
  const Rows chunk{Bytes(0), layout_.interlace()};
  Result<void> done = co_await Regenerate(work, io, column, chunk, expected);
  bool right = false;
  if (done) {
    Result<void> read =
        co_await columns_.Read(io, column, layout_.InColumn(line, Bytes(0)), actual);
    right = read && std::ranges::equal(expected, actual);
  }
  if (done && !right && repair) {
    const std::uint64_t term = columns_.term(column);
    done = co_await columns_.Write(io.After(), column, layout_.InColumn(line, Bytes(0)), expected);
    if (!done) done = co_await columns_.FailColumn(io, column, term, done.error());
  }
  works_.Put(work);
  if (!done) co_return std::unexpected(done.error());
  co_return right;
}

}  // namespace labrack::volume
