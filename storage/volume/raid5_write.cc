#include <algorithm>
#include <array>
#include <string>

#include "storage/base/crc64.h"
#include "storage/base/plant.h"
#include "storage/volume/parity.h"
#include "storage/volume/raid5.h"

namespace labrack::volume {
namespace {

using block::IoContext;
using block::PriorityClass;
using block::Purpose;

// Somebody waits for what is read on behalf of a write as long as somebody waits for the write.
IoContext ForReading(IoContext io) {
  if (io.priority == PriorityClass::kSyncWrite) io.priority = PriorityClass::kSyncRead;
  if (io.priority == PriorityClass::kAsyncWrite) io.priority = PriorityClass::kAsyncRead;
  io.durable = false;
  return io;
}

std::uint64_t Bit(std::size_t column) { return std::uint64_t{1} << column; }

}  // namespace

Task<Result<void>> Raid5::Write(IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
  const LineShare share = layout_.FirstShare(at, Bytes(from.size()));
  if ((share.end - share.begin).size() == from.size() && !from.empty()) {
    return WriteLine(io, share, from);
  }
  return WriteLines(io, at, from);
}

Task<Result<void>> Raid5::WriteLines(IoContext io, Offset at, ConstView from) {
  const std::size_t lines = from.size() / layout_.line_size().size() + 2;
  runtime::WhenAll<Result<void>> writes(reactor_, lines);
  for (std::size_t done = 0; done < from.size();) {
    const LineShare share = layout_.FirstShare(at + Bytes(done), Bytes(from.size() - done));
    const std::size_t length = (share.end - share.begin).size();
    writes.Add(0, WriteLine(io, share, from.subspan(done, length)));
    done += length;
  }
  co_await writes.Join();
  for (std::size_t i = 0; i < writes.count(); ++i) {
    if (!writes.result(i)) co_return writes.result(i);
  }
  co_return Result<void>{};
}

Task<Result<void>> Raid5::WriteLine(IoContext io, LineShare share, ConstView from) {
  co_await locks_.Of(share.line, LockKind::kExclusive);
  co_await works_.Acquire();
  LineWork& work = works_.Get();
  work.share = share;
  work.from = from;
  work.io = io;
  Result<bool> behind = co_await WriteLocked(work);
  if (!behind || !*behind) {
    works_.Put(work);
    locks_.Release(share.line, LockKind::kExclusive);
    CleanLogIfNeeded();
  }
  if (!behind) co_return std::unexpected(behind.error());
  co_return Result<void>{};
}

// True: the write is acknowledged, and what is left of it owns lock and memory.
Task<Result<bool>> Raid5::WriteLocked(LineWork& work) {
  Result<void> done = co_await Prepare(work);
  if (!done) co_return std::unexpected(done.error());
  IoContext io = work.io;
  io.cancel = nullptr;  // from here on all of it is done, or none
  switch (log_.shape().mode) {
    case ParityLogMode::kNone:
      if (!log_.in_use()) done = co_await log_.MarkInUse();
      if (done) done = co_await WriteInPlace(work, io);
      break;
    case ParityLogMode::kPartialParity:
      done = co_await LogPartialParity(work, io);
      break;
    case ParityLogMode::kPrewrite:
      done = co_await LogPrewrites(work, io);
      if (!done) break;
      io = io.After().Behind(PriorityClass::kAsyncWrite);
      io.durable = false;
      behind_.Spawn(FinishBehind(work, io));
      co_return true;
  }
  if (!done) co_return std::unexpected(done.error());
  co_return false;
}

// Reads what the plan says, and anew with another plan when a sector cannot be read.
Task<Result<void>> Raid5::Prepare(LineWork& work) {
  Result<void> usable = columns_.Usable();
  if (!usable) co_return usable;
  std::optional<MissingColumn> missing;
  if (const std::optional<std::size_t> column = columns_.NotReadable(work.share.line)) {
    missing = MissingColumn{.column = *column, .writable = false};
  }
  while (true) {
    if (work.io.cancel != nullptr && work.io.cancel->cancelled()) {
      co_return Fail(Errc::kCancelled, "RAID-5", "the write was cancelled before it began");
    }
    work.plan = PlanWrite(layout_, work.share, missing);
    if (work.plan.read_count == 0) break;
    Result<std::optional<MissingColumn>> unreadable = co_await ReadPlanned(work);
    if (!unreadable) co_return std::unexpected(unreadable.error());
    work.io = work.io.After();
    if (!*unreadable) break;
    if (missing) {
      co_return Fail(Errc::kIo, "RAID-5",
                     "line " + std::to_string(work.share.line) + " cannot be read on columns " +
                         std::to_string(missing->column) + " and " +
                         std::to_string((*unreadable)->column));
    }
    missing = *unreadable;
  }
  ComputeParity(work, missing);
  co_return Result<void>{};
}

Task<Result<std::optional<MissingColumn>>> Raid5::ReadPlanned(LineWork& work) {
  const std::uint64_t line = work.share.line;
  const std::size_t parity = layout_.ParityColumn(line);
  const Rows hull = layout_.Hull(work.share);
  const IoContext io = ForReading(work.io);
  runtime::WhenAll<Result<void>> reads(reactor_, work.plan.read_count);
  for (const PlannedRead& read : work.plan.reads()) {
    const bool is_parity = read.column == parity;
    // The old parity is changed where the new one will be.
    const bool in_new = is_parity && work.plan.kind == WriteKind::kModify;
    const MutableView image =
        in_new ? work.New(read.column, hull.length()) : work.Old(read.column, hull.length());
    const MutableView into =
        image.subspan((read.rows.begin - hull.begin).size(), read.rows.length().size());
    reads.Add(read.column,
              columns_.Read(io.For(is_parity ? Purpose::kOldParity : Purpose::kOldData),
                            read.column, layout_.InColumn(line, read.rows.begin), into));
  }
  co_await reads.Join();
  std::optional<MissingColumn> unreadable;
  for (std::size_t i = 0; i < reads.count(); ++i) {
    if (reads.result(i)) continue;
    const Error& error = reads.result(i).error();
    if (error.code() == Errc::kCancelled || unreadable) co_return std::unexpected(error);
    unreadable = MissingColumn{.column = reads.slot(i), .writable = columns_.okay(reads.slot(i))};
  }
  co_return unreadable;
}

ConstView Raid5::NewData(LineWork& work, std::size_t index) {
  const Bytes length = layout_.Touched(work.share, index).length();
  if (log_.shape().mode == ParityLogMode::kPrewrite) {
    return work.New(layout_.DataColumn(work.share.line, index), length);
  }
  return work.from.subspan(layout_.WithinShare(work.share, index).size(), length.size());
}

// The new parity of the hull, in New() of the parity column. With prewrites, the new data go to
// New() of theirs first.
void Raid5::ComputeParity(LineWork& work, std::optional<MissingColumn> missing) {
  const std::uint64_t line = work.share.line;
  const Rows hull = layout_.Hull(work.share);
  const std::size_t parity_column = layout_.ParityColumn(line);
  const MutableView parity = work.New(parity_column, hull.length());
  const WriteKind kind = work.plan.kind;
  std::array<ConstView, kRaid5ColumnsMax> sources;
  if (kind == WriteKind::kRegenerate) {
    std::size_t count = 0;
    for (std::size_t column = 0; column < layout_.columns(); ++column) {
      if (column != missing->column) sources[count++] = work.Old(column, hull.length());
    }
    XorInto(work.Old(missing->column, hull.length()), std::span(sources).first(count));
  }
  std::size_t count = 0;
  for (std::size_t index = 0; index < layout_.data_columns(); ++index) {
    const std::size_t column = layout_.DataColumn(line, index);
    const Rows touched = layout_.Touched(work.share, index);
    const std::size_t within = (touched.empty() ? Bytes() : touched.begin - hull.begin).size();
    if (!touched.empty() && log_.shape().mode == ParityLogMode::kPrewrite) {
      const std::size_t at = layout_.WithinShare(work.share, index).size();
      std::ranges::copy(work.from.subspan(at, touched.length().size()),
                        work.New(column, touched.length()).begin());
    }
    if (kind == WriteKind::kDataOnly) continue;
    const MutableView image = work.Old(column, hull.length());
    if (kind == WriteKind::kModify) {
      if (touched.empty()) continue;
      const MutableView part = parity.subspan(within, touched.length().size());
      XorAdd(part, image.subspan(within, part.size()));
      if (!LABRACK_PLANTED(kParityOfOldData)) XorAdd(part, NewData(work, index));
    } else if (touched == hull) {
      if (LABRACK_PLANTED(kDegradedFullLine) && missing && missing->column == column) continue;
      sources[count++] = NewData(work, index);
    } else {
      if (!touched.empty()) std::ranges::copy(NewData(work, index), image.subspan(within).begin());
      sources[count++] = image;
    }
  }
  if (count > 0) XorInto(parity, std::span(sources).first(count));
}

bool Raid5::WritesParity(const LineWork& work) const {
  return work.plan.kind != WriteKind::kDataOnly &&
         columns_.writable(layout_.ParityColumn(work.share.line));
}

Task<Result<void>> Raid5::LogPrewrites(LineWork& work, IoContext io) {
  const std::uint64_t line = work.share.line;
  const std::size_t parity = layout_.ParityColumn(line);
  std::uint64_t columns = 0;
  for (std::size_t index = 0; index < layout_.data_columns(); ++index) {
    const std::size_t column = layout_.DataColumn(line, index);
    if (!layout_.Touched(work.share, index).empty() && columns_.okay(column)) {
      columns |= Bit(column);
    }
  }
  if (WritesParity(work) && columns_.okay(parity)) columns |= Bit(parity);
  Result<ParityLog::Ticket> ticket = co_await log_.Take(columns);
  if (!ticket) co_return std::unexpected(ticket.error());
  work.ticket = *ticket;
  Result<void> written = co_await WriteEntries(work, io, columns);
  if (!written) log_.Done(work.ticket, false);
  co_return written;
}

Task<Result<void>> Raid5::WriteEntries(LineWork& work, IoContext io, std::uint64_t columns) {
  io = io.For(Purpose::kPrewrite);
  io.durable = !LABRACK_PLANTED(kPrewriteNotDurable);
  const std::uint64_t line = work.share.line;
  std::array<std::uint64_t, kRaid5ColumnsMax> terms{};
  runtime::WhenAll<Result<void>> writes(reactor_, columns_.count());
  for (std::size_t column = 0; column < columns_.count(); ++column) {
    if ((columns & Bit(column)) == 0) continue;
    const bool is_parity = column == layout_.ParityColumn(line);
    const Rows rows = is_parity ? layout_.Hull(work.share)
                                : layout_.Touched(work.share, layout_.DataIndex(line, column));
    const Component& component = columns_[column];
    const Offset at = log_.shape().SlotAt(component, work.ticket.slot[column]);
    const LogEntry entry{.mode = ParityLogMode::kPrewrite,
                         .id = work.ticket.id,
                         .columns = columns,
                         .column = column,
                         .at = layout_.InColumn(line, rows.begin),
                         .length = rows.length(),
                         .write_at = Offset(),
                         .write_length = Bytes(),
                         .data_length = rows.length(),
                         .data_crc = Crc64(work.New(column, rows.length()))};
    EncodeLogEntry(entry, log_.shape().Place(column, at), work.Entry(column));
    terms[column] = columns_.term(column);
    writes.Add(column, component.device->Write(io, at, work.Slot(column, rows.length())));
  }
  co_await writes.Join();
  for (std::size_t i = 0; i < writes.count(); ++i) {
    if (writes.result(i)) continue;
    const std::size_t column = writes.slot(i);
    Result<void> failed =
        co_await columns_.FailColumn(io, column, terms[column], writes.result(i).error());
    if (!failed) co_return failed;
  }
  co_return columns_.Usable();
}

// The entry is made in memory of a data column, which this mode leaves unused.
Task<Result<void>> Raid5::LogPartialParity(LineWork& work, IoContext io) {
  const std::uint64_t line = work.share.line;
  const std::size_t parity = layout_.ParityColumn(line);
  IoContext in_place = io;
  in_place.durable = true;
  if (!WritesParity(work) || !columns_.okay(parity))
    co_return co_await WriteInPlace(work, in_place);

  const Rows hull = layout_.Hull(work.share);
  const std::size_t spare_memory = layout_.DataColumn(line, 0);
  const MutableView partial = work.New(spare_memory, hull.length());
  std::ranges::copy(work.New(parity, hull.length()), partial.begin());
  bool whole_line = true;
  for (std::size_t index = 0; index < layout_.data_columns(); ++index) {
    const Rows touched = layout_.Touched(work.share, index);
    whole_line = whole_line && touched == hull;
    if (touched.empty() || LABRACK_PLANTED(kPartialParityWhole)) continue;
    XorAdd(partial.subspan((touched.begin - hull.begin).size(), touched.length().size()),
           NewData(work, index));
  }
  const Bytes logged = whole_line ? Bytes(0) : hull.length();
  Result<ParityLog::Ticket> ticket = co_await log_.Take(Bit(parity));
  if (!ticket) co_return std::unexpected(ticket.error());
  work.ticket = *ticket;
  const Component& component = columns_[parity];
  const std::uint64_t term = columns_.term(parity);
  const Offset at = log_.shape().SlotAt(component, work.ticket.slot[parity]);
  const LogEntry entry{.mode = ParityLogMode::kPartialParity,
                       .id = work.ticket.id,
                       .columns = Bit(parity),
                       .column = parity,
                       .at = layout_.InColumn(line, hull.begin),
                       .length = hull.length(),
                       .write_at = Offset((layout_.line_size() * line + work.share.begin).count()),
                       .write_length = work.share.end - work.share.begin,
                       .data_length = logged,
                       .data_crc = Crc64(partial.first(logged.size()))};
  EncodeLogEntry(entry, log_.shape().Place(parity, at), work.Entry(spare_memory));
  IoContext log_io = io.For(Purpose::kPrewrite);
  log_io.durable = true;
  Result<void> written;
  if (LABRACK_PLANTED(kPartialParityLate)) written = co_await WriteInPlace(work, in_place);
  Result<void> entered =
      co_await component.device->Write(log_io, at, work.Slot(spare_memory, logged));
  if (!entered) {
    entered = co_await columns_.FailColumn(log_io, parity, term, entered.error());
  }
  if (entered && !LABRACK_PLANTED(kPartialParityLate)) {
    written = co_await WriteInPlace(work, in_place.After());
  }
  const bool in_place_now = entered && written;
  log_.Done(work.ticket, in_place_now);
  co_return entered ? written : entered;
}

Task<Result<void>> Raid5::WriteInPlace(LineWork& work, IoContext io) {
  const std::uint64_t line = work.share.line;
  const Rows hull = layout_.Hull(work.share);
  std::array<std::uint64_t, kRaid5ColumnsMax> terms{};
  runtime::WhenAll<Result<void>> writes(reactor_, columns_.count());
  for (std::size_t index = 0; index < layout_.data_columns(); ++index) {
    const std::size_t column = layout_.DataColumn(line, index);
    const Rows touched = layout_.Touched(work.share, index);
    if (touched.empty() || !columns_.writable(column)) continue;
    if (LABRACK_PLANTED(kSpareWritesSkipped) && !columns_.okay(column)) continue;
    terms[column] = columns_.term(column);
    writes.Add(column, columns_.Write(io, column, layout_.InColumn(line, touched.begin),
                                      NewData(work, index)));
  }
  if (WritesParity(work)) {
    const std::size_t column = layout_.ParityColumn(line);
    terms[column] = columns_.term(column);
    writes.Add(column,
               columns_.Write(io.For(Purpose::kParity), column, layout_.InColumn(line, hull.begin),
                              work.New(column, hull.length())));
  }
  co_await writes.Join();
  for (std::size_t i = 0; i < writes.count(); ++i) {
    if (writes.result(i)) continue;
    const std::size_t column = writes.slot(i);
    Result<void> failed =
        co_await columns_.FailColumn(io, column, terms[column], writes.result(i).error());
    if (!failed) co_return failed;
  }
  co_return columns_.Usable();
}

Task<void> Raid5::FinishBehind(LineWork& work, IoContext io) {
  Result<void> written = co_await WriteInPlace(work, io);
  log_.Done(work.ticket, written.has_value());
  const std::uint64_t line = work.share.line;
  works_.Put(work);
  locks_.Release(line, LockKind::kExclusive);
  CleanLogIfNeeded();
}

void Raid5::CleanLogIfNeeded() {
  if (log_.WantsCleaning()) behind_.Spawn(CleanLog());
}

// What it cannot do breaks the volume, which every later operation says.
Task<void> Raid5::CleanLog() {
  Result<void> cleaned = co_await log_.Clean();
  if (!cleaned) LABRACK_CHECK(columns_.broken());
}

}  // namespace labrack::volume
