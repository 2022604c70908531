// The columns of a RAID-5 and their states: which can be read and written, and what happens when
// one fails. One may be missing; when a second one fails the volume is broken: its operations end
// with an error, and the second failure is not recorded, so that what that column holds stays
// there for its owner to save.
//
// A spare in a slot takes every write at once, and is read where the rebuild has passed:
//
//   lines  0 ......... rebuilt .................... end
//          | read, written |  written, regenerated  |
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/runtime/sync.h"
#include "storage/volume/component.h"
#include "storage/volume/raid5_layout.h"

namespace labrack::volume {

class Raid5Columns {
 public:
  // `ledger` may be null: then nothing remembers failures.
  Raid5Columns(runtime::Reactor& reactor, std::vector<Component> components, Ledger* ledger);

  std::size_t count() const { return components_.size(); }
  const Component& operator[](std::size_t column) const { return components_[column]; }

  bool okay(std::size_t column) const { return components_[column].state == State::kOkay; }
  // Takes writes.
  bool writable(std::size_t column) const {
    return okay(column) || components_[column].state == State::kResyncing;
  }
  bool readable(std::size_t column, std::uint64_t line) const;
  std::optional<std::size_t> NotReadable(std::uint64_t line) const;  // at most one, unless broken
  std::optional<std::size_t> NotOkay() const;
  bool AllWritable() const;

  // Which component the column has: grows when a spare takes its place.
  std::uint64_t term(std::size_t column) const { return terms_[column]; }
  // An operation on the column failed that was begun in `term`. On success the column is recorded
  // as failed, durably, and the caller goes on without it. Otherwise the volume is broken.
  Task<Result<void>> FailColumn(block::IoContext io, std::size_t column, std::uint64_t term,
                                Error why);
  // The error that broke the volume, if it is.
  Result<void> Usable() const;
  bool broken() const { return broken_.has_value(); }
  // Nothing is acknowledged any more, for a reason other than a second column.
  void Break(Error why);

  // A spare for the column that failed, from the ledger; it is in its place on return. kNotFound
  // when there is none.
  Task<Result<void>> TakeSpare(block::IoContext io, std::size_t column);
  std::uint64_t rebuilt_lines() const { return rebuilt_lines_; }
  void set_rebuilt_lines(std::uint64_t lines) { rebuilt_lines_ = lines; }
  // The spare holds everything, durably.
  Task<Result<void>> RecordOkay(block::IoContext io, std::size_t column);

  Task<Result<void>> Read(block::IoContext io, std::size_t column, Bytes at,
                          MutableView into) const;
  Task<Result<void>> Write(block::IoContext io, std::size_t column, Bytes at, ConstView from) const;
  // Of all that take writes. A column whose flush fails has lost what it should have covered, so
  // it fails as a whole.
  Task<Result<void>> Flush(block::IoContext io);

  runtime::Reactor& reactor() const { return reactor_; }

 private:
  runtime::Reactor& reactor_;
  std::vector<Component> components_;
  std::array<std::uint64_t, kRaid5ColumnsMax> terms_ = {};
  Ledger* ledger_;
  runtime::Mutex recording_;
  std::uint64_t rebuilt_lines_ = 0;
  std::optional<Error> broken_;
};

}  // namespace labrack::volume
