#include "storage/volume/raid5_columns.h"

#include <string>
#include <utility>

#include "storage/base/plant.h"
#include "storage/runtime/task_group.h"

namespace labrack::volume {
namespace {

std::string Slot(std::size_t column) { return "column " + std::to_string(column); }

}  // namespace

Raid5Columns::Raid5Columns(runtime::Reactor& reactor, std::vector<Component> components,
                           Ledger* ledger)
    : reactor_(reactor), components_(std::move(components)), ledger_(ledger), recording_(reactor) {}

bool Raid5Columns::readable(std::size_t column, std::uint64_t line) const {
  if (okay(column)) return true;
  if (components_[column].state != State::kResyncing) return false;
  return line < rebuilt_lines_ || LABRACK_PLANTED(kSpareReadEarly);
}

std::optional<std::size_t> Raid5Columns::NotReadable(std::uint64_t line) const {
  for (std::size_t column = 0; column < count(); ++column) {
    if (!readable(column, line)) return column;
  }
  return std::nullopt;
}

std::optional<std::size_t> Raid5Columns::NotOkay() const {
  for (std::size_t column = 0; column < count(); ++column) {
    if (!okay(column)) return column;
  }
  return std::nullopt;
}

bool Raid5Columns::AllWritable() const {
  for (std::size_t column = 0; column < count(); ++column) {
    if (!writable(column)) return false;
  }
  return true;
}

Result<void> Raid5Columns::Usable() const {
  if (broken_) return std::unexpected(*broken_);
  return {};
}

void Raid5Columns::Break(Error why) {
  if (!broken_) broken_ = std::move(why);
}

// The state changes only once it is recorded: an operation that left the column out before that
// could be acknowledged, and a crash would bring the column back as it was.
Task<Result<void>> Raid5Columns::FailColumn(block::IoContext io, std::size_t column,
                                            std::uint64_t term, Error why) {
  co_await recording_.Lock();
  runtime::Mutex::Held held(recording_);
  Component& component = components_[column];
  const bool replaced = terms_[column] != term;
  if (broken_ || replaced || !writable(column)) co_return Usable();
  const std::optional<std::size_t> other = NotOkay();
  if (other && *other != column) {
    Break(Error(Errc::kIo, Slot(column),
                why.ToString() + "; " + Slot(*other) +
                    " is missing already, and a RAID-5 goes on without one only"));
    co_return Usable();
  }
  if (ledger_ != nullptr && !LABRACK_PLANTED(kFailureNotRecorded)) {
    io.cancel = nullptr;
    Result<void> recorded =
        co_await ledger_->Record(io.For(block::Purpose::kStateDatabase), column, State::kFailed);
    if (!recorded) {
      Break(Error(recorded.error().code(), Slot(column),
                  why.ToString() + "; and that it failed could not be recorded: " +
                      recorded.error().ToString()));
      co_return Usable();
    }
  }
  component.state = State::kFailed;
  rebuilt_lines_ = 0;
  co_return Result<void>{};
}

Task<Result<void>> Raid5Columns::TakeSpare(block::IoContext io, std::size_t column) {
  LABRACK_CHECK(!writable(column));
  if (ledger_ == nullptr) co_return Fail(Errc::kNotFound, Slot(column), "no hot spares are known");
  const Bytes size = components_[column].data_size;
  Result<std::optional<Component>> taken =
      co_await ledger_->TakeSpare(io.For(block::Purpose::kStateDatabase), column, size);
  if (!taken) co_return std::unexpected(taken.error());
  if (!*taken) {
    co_return Fail(Errc::kNotFound, Slot(column),
                   "no hot spare has the " + std::to_string(size.count()) + " bytes that it needs");
  }
  Component spare = **taken;
  const Component& gone = components_[column];
  const Component& other = components_[column == 0 ? 1 : 0];
  const bool fits = spare.data_size >= gone.data_size && spare.log_size >= gone.log_size &&
                    spare.device->geometry().block_size == other.device->geometry().block_size;
  if (!fits) {
    co_return Fail(Errc::kInvalidArgument, Slot(column),
                   "the hot spare has less data or log, or other blocks, than what it replaces");
  }
  spare.data_size = gone.data_size;
  spare.log_size = gone.log_size;
  spare.state = State::kResyncing;
  rebuilt_lines_ = 0;
  components_[column] = spare;
  ++terms_[column];
  co_return Result<void>{};
}

Task<Result<void>> Raid5Columns::RecordOkay(block::IoContext io, std::size_t column) {
  if (ledger_ != nullptr) {
    Result<void> recorded =
        co_await ledger_->Record(io.For(block::Purpose::kStateDatabase), column, State::kOkay);
    if (!recorded) co_return recorded;
  }
  components_[column].state = State::kOkay;
  rebuilt_lines_ = 0;
  co_return Result<void>{};
}

Task<Result<void>> Raid5Columns::Read(block::IoContext io, std::size_t column, Bytes at,
                                      MutableView into) const {
  const Component& component = components_[column];
  return component.device->Read(io, component.data_at + at, into);
}

Task<Result<void>> Raid5Columns::Write(block::IoContext io, std::size_t column, Bytes at,
                                       ConstView from) const {
  const Component& component = components_[column];
  return component.device->Write(io, component.data_at + at, from);
}

Task<Result<void>> Raid5Columns::Flush(block::IoContext io) {
  std::array<std::uint64_t, kRaid5ColumnsMax> terms{};
  runtime::WhenAll<Result<void>> flushes(reactor_, count());
  for (std::size_t column = 0; column < count(); ++column) {
    if (!writable(column)) continue;
    terms[column] = term(column);
    flushes.Add(column, components_[column].device->Flush(io));
  }
  co_await flushes.Join();
  for (std::size_t i = 0; i < flushes.count(); ++i) {
    Result<void>& flushed = flushes.result(i);
    if (flushed) continue;
    if (flushed.error().code() == Errc::kCancelled) co_return flushed;
    const std::size_t column = flushes.slot(i);
    Result<void> failed = co_await FailColumn(io, column, terms[column], flushed.error());
    if (!failed) co_return failed;
  }
  co_return Usable();
}

}  // namespace labrack::volume
