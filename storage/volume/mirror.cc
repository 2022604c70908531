#include "storage/volume/mirror.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/plant.h"
#include "storage/base/units.h"

namespace labrack::volume {

using runtime::WhenAll;

namespace {

constexpr const char* kKind = "mirror";
constexpr std::size_t kNone = Mirror::kSubmirrorsMax;

std::uint64_t WholeBlocks(Bytes size, Bytes block) { return size / block; }

// The geometry of a mirror of these; all is checked.
Result<block::Geometry> GeometryOf(const std::vector<Component>& submirrors, Bytes asked) {
  if (submirrors.size() < Mirror::kSubmirrorsMin || submirrors.size() > Mirror::kSubmirrorsMax) {
    return Fail(Errc::kInvalidArgument, kKind,
                "has " + std::to_string(submirrors.size()) + " submirror(s); it needs " +
                    std::to_string(Mirror::kSubmirrorsMin) + " to " +
                    std::to_string(Mirror::kSubmirrorsMax));
  }
  std::vector<Component> present;
  for (const Component& part : submirrors) {
    if (part.device != nullptr) present.push_back(part);
  }
  if (present.empty()) return Fail(Errc::kUnavailable, kKind, "has no submirror that is here");
  Result<void> fit = CheckParts(kKind, present, {}, Bytes(0));
  if (!fit) return std::unexpected(fit.error());
  const Bytes block_size = present[0].device->geometry().block_size;
  Bytes size = present[0].data_size;
  for (const Component& part : present) {
    size = std::min(size, part.data_size);
    if (part.log_size >= Mirror::kLogSize) continue;
    return Fail(Errc::kInvalidArgument, kKind,
                "a submirror has a log of " + FormatBytesExact(part.log_size) + "; it needs " +
                    FormatBytesExact(Mirror::kLogSize) + " for its dirty regions");
  }
  if (asked > size) {
    return Fail(Errc::kInvalidArgument, kKind,
                "holds " + FormatBytesExact(asked) + ", but a submirror has only " +
                    FormatBytesExact(size) + " for data; take one that is as large");
  }
  if (asked > Bytes(0)) size = asked;
  return block::Geometry{.size = block_size * WholeBlocks(size, block_size),
                         .block_size = block_size};
}

block::IoContext FormatContext() {
  return {.purpose = block::Purpose::kDirtyRegion,
          .priority = block::PriorityClass::kSyncWrite,
          .durable = true};
}

}  // namespace

Result<block::Geometry> Mirror::Plan(const std::vector<Component>& submirrors, Bytes size) {
  return GeometryOf(submirrors, size);
}

Task<Result<void>> Mirror::Format(runtime::Reactor* reactor, std::vector<Component> submirrors,
                                  Content content) {
  Result<block::Geometry> geometry = GeometryOf(submirrors, Bytes(0));
  if (!geometry) co_return std::unexpected(geometry.error());
  const DirtyShape shape = ShapeOfRegions(geometry->size, geometry->block_size);
  AlignedBuffer buffer(geometry->block_size);
  WhenAll<Result<void>> writes(*reactor, submirrors.size());
  const DirtyRecord record =
      content == Content::kEqual ? DirtyRegions::NoneDirty(shape) : DirtyRegions::AllDirty(shape);
  std::ranges::fill(buffer.view(), std::byte{0});
  std::ranges::copy(record, buffer.view().begin());
  for (std::size_t slot = 0; slot < submirrors.size(); ++slot) {
    const Component& part = submirrors[slot];
    writes.Add(slot, part.device->Write(FormatContext(), part.log_at, buffer.view()));
  }
  co_await writes.Join();
  for (std::size_t i = 0; i < writes.count(); ++i) {
    if (!writes.result(i)) co_return std::move(writes.result(i));
  }
  co_return {};
}

Task<Result<std::unique_ptr<Mirror>>> Mirror::Open(runtime::Reactor* reactor,
                                                   std::vector<Component> submirrors,
                                                   MirrorOptions options, Ledger* ledger) {
  Result<block::Geometry> geometry = GeometryOf(submirrors, options.size);
  if (!geometry) co_return std::unexpected(geometry.error());
  if (options.resync_chunk < geometry->block_size ||
      !IsAligned(options.resync_chunk, geometry->block_size)) {
    co_return Fail(Errc::kInvalidArgument, kKind,
                   "a resync chunk of " + FormatBytesExact(options.resync_chunk) +
                       " is no multiple of the sector of " +
                       FormatBytesExact(geometry->block_size));
  }
  std::unique_ptr<Mirror> mirror(
      new Mirror(*reactor, std::move(submirrors), options, ledger, *geometry));
  if (mirror->OkayCount() == 0) {
    mirror->closed_ = true;
    co_return Fail(Errc::kUnavailable, kKind,
                   "has no submirror that holds its data: all are missing, failed or being "
                   "resynced");
  }
  co_await mirror->LoadDirty();
  if (options.auto_resync && !mirror->RepairDone()) mirror->StartRepair();
  co_return mirror;
}

Mirror::Mirror(runtime::Reactor& reactor, std::vector<Component> submirrors, MirrorOptions options,
               Ledger* ledger, block::Geometry geometry)
    : reactor_(reactor),
      options_(options),
      ledger_(ledger),
      geometry_(geometry),
      dirty_(reactor, *this, ShapeOfRegions(geometry.size, geometry.block_size)),
      ranges_(reactor),
      members_(reactor),
      recording_(reactor),
      record_buffer_(geometry.block_size),
      repaired_(reactor),
      copy_buffer_(options.resync_chunk),
      background_(reactor) {
  legs_.reserve(kSubmirrorsMax);
  for (const Component& part : submirrors) {
    Leg& leg = legs_.emplace_back();
    if (part.device != nullptr && part.state == State::kResyncing) {
      Join(leg, part);
    } else {
      leg.part = part;
    }
  }
  UpdateKeep();
}

Mirror::~Mirror() { LABRACK_CHECK(closed_); }

// A record that cannot be read says as much as one that does not check: anything may differ.
Task<void> Mirror::LoadDirty() {
  const block::IoContext io{.purpose = block::Purpose::kDirtyRegion};
  for (const Leg& leg : legs_) {
    if (!Okay(leg)) continue;
    Result<void> read = co_await leg.part.device->Read(io, leg.part.log_at, record_buffer_.view());
    if (!read) std::ranges::fill(record_buffer_.view(), std::byte{0});
    dirty_.Load(record_buffer_.view());
  }
}

Task<Result<void>> Mirror::Close() {
  closing_ = true;
  if (repairing_) co_await repaired_.Wait();
  co_await background_.Join();
  closed_ = true;
  if (options_.read_only) co_return {};
  const block::IoContext io{.priority = block::PriorityClass::kSyncWrite};
  Result<void> settled = co_await FlushAndSettle(io);
  if (!settled) co_return settled;
  Result<void> cleaned = co_await dirty_.Clean(io.For(block::Purpose::kDirtyRegion), true);
  co_return cleaned;
}

std::size_t Mirror::OkayCount() const {
  return static_cast<std::size_t>(std::ranges::count_if(legs_, Okay));
}

// Stays the same as long as it is okay, even when one before it becomes so.
std::size_t Mirror::Pin() {
  if (pin_ < legs_.size() && Okay(legs_[pin_])) return pin_;
  pin_ = 0;
  while (!Okay(legs_[pin_])) ++pin_;
  return pin_;
}

std::size_t Mirror::PickReader(Offset at, Bytes length) {
  const std::size_t okay = OkayCount();
  LABRACK_CHECK(okay > 0);
  const bool anywhere = LABRACK_PLANTED(kUnsyncedReadAnywhere);
  if (dirty_.Unsynced(at, length) && !anywhere) return Pin();
  std::size_t nth = 0;
  switch (options_.read_policy) {
    case ReadPolicy::kRoundRobin:
      nth = next_reader_++ % okay;
      break;
    case ReadPolicy::kGeometric:
      nth = static_cast<std::size_t>(at.value() / (geometry_.size.count() / okay + 1));
      break;
    case ReadPolicy::kFirst:
      break;
  }
  std::size_t slot = 0;
  while (!Okay(legs_[slot]) || nth-- > 0) ++slot;
  return slot;
}

Task<Result<void>> Mirror::Read(block::IoContext io, Offset at, MutableView into) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())) && !closed_);
  if (into.empty()) co_return {};
  std::size_t unreadable = kNone;
  Result<void> read = co_await ReadAny(io, at, into, &unreadable);
  if (read && unreadable != kNone && !options_.read_only)
    co_await Rewrite(at, Bytes(into.size()), unreadable);
  co_return read;
}

// From the submirror of the policy. `unreadable` is that one when it could not and others could.
Task<Result<void>> Mirror::ReadAny(block::IoContext io, Offset at, MutableView into,
                                   std::size_t* unreadable) {
  RangeLock::Claim claim(ranges_, Access::kRead, at, Bytes(into.size()));
  co_await claim.Granted();
  const std::size_t slot = PickReader(at, Bytes(into.size()));
  Result<void> read = co_await legs_[slot].part.device->Read(io, At(legs_[slot], at), into);
  if (read || read.error().code() == Errc::kCancelled || OkayCount() == 1) co_return read;
  *unreadable = slot;
  Result<void> merged = co_await ReadMerged(io.After(), at, into);
  co_return merged;
}

// Each block from the first okay submirror that can read it, beginning with the pinned one: one bad
// sector must not send the readers of its neighbours elsewhere.
Task<Result<void>> Mirror::ReadMerged(block::IoContext io, Offset at, MutableView into) {
  const std::size_t block = geometry_.block_size.size();
  const std::size_t pin = Pin();
  for (std::size_t done = 0; done < into.size(); done += block) {
    Result<void> read = Fail(Errc::kUnavailable, kKind, "no okay submirror is left");
    for (std::size_t turn = 0; turn <= legs_.size() && !read; ++turn) {
      const std::size_t slot = turn == 0 ? pin : turn - 1;
      if (!Okay(legs_[slot])) continue;
      const Offset place = At(legs_[slot], at + Bytes(done));
      read = co_await legs_[slot].part.device->Read(io, place, into.subspan(done, block));
    }
    if (!read) co_return read;
  }
  co_return {};
}

Task<Result<void>> Mirror::Write(block::IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())) && !closed_ && !options_.read_only);
  if (from.empty()) co_return {};
  RangeLock::Claim claim(ranges_, Access::kWrite, at, Bytes(from.size()));
  co_await claim.Granted();
  if (io.cancel != nullptr && io.cancel->cancelled()) {
    co_return Fail(Errc::kCancelled, kKind, "the write was cancelled before it began");
  }
  io.cancel = nullptr;  // one that is cancelled half-way would leave the submirrors unequal
  Result<void> written = co_await WriteMarked(io, at, from);
  co_return written;
}

Task<Result<void>> Mirror::WriteMarked(block::IoContext io, Offset at, ConstView from) {
  const Bytes length(from.size());
  if (!dirty_.TryMark(at, length)) {
    Result<void> marked = co_await dirty_.Mark(io.For(block::Purpose::kDirtyRegion), at, length);
    if (!marked) co_return marked;
    io = io.After();
  }
  Result<void> result = co_await WriteLive(io, at, from);
  if (!result) {
    ++lost_write_count_;
    dirty_.SetUnsynced(at, length);
    if (options_.auto_resync) StartRepair();
  }
  // Even when this write met no failure: it may be the first that a dropped submirror has missed.
  const bool record = !LABRACK_PLANTED(kMirrorLossNotRecorded);
  if (result && !AllRecorded() && record) result = co_await RecordStates(io);
  dirty_.Done(at, length, result && io.durable);
  co_return result;
}

Task<Result<void>> Mirror::WriteLive(block::IoContext io, Offset at, ConstView from) {
  switch (options_.write_mode) {
    case WriteMode::kParallel:
      return WriteParallel(io, at, from);
    case WriteMode::kSerial:
      return WriteSerial(io, at, from);
  }
  return WriteParallel(io, at, from);
}

Task<Result<void>> Mirror::WriteParallel(block::IoContext io, Offset at, ConstView from) {
  WhenAll<Result<void>> writes(reactor_, legs_.size());
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    const Leg& leg = legs_[slot];
    if (Live(leg)) writes.Add(slot, leg.part.device->Write(io, At(leg, at), from));
  }
  co_await writes.Join();
  Outcome outcome;
  for (std::size_t i = 0; i < writes.count(); ++i) {
    const std::size_t slot = writes.slot(i);
    outcome.tried[slot] = true;
    if (!writes.result(i)) outcome.errors[slot] = writes.result(i).error();
  }
  co_return Settle(outcome);
}

Task<Result<void>> Mirror::WriteSerial(block::IoContext io, Offset at, ConstView from) {
  Outcome outcome;
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    const Leg& leg = legs_[slot];
    if (!Live(leg)) continue;
    outcome.tried[slot] = true;
    Result<void> written = co_await leg.part.device->Write(io, At(leg, at), from);
    if (!written) outcome.errors[slot] = written.error();
    io = io.After();
  }
  co_return Settle(outcome);
}

Task<Result<void>> Mirror::Flush(block::IoContext io) {
  LABRACK_CHECK(!closed_);
  switch (options_.flush_mode) {
    case block::FlushMode::kPass:
      break;
    case block::FlushMode::kRefuse:
      co_return FlushRefused(kKind);
    case block::FlushMode::kDrop:
      co_return {};
  }
  Result<void> settled = co_await FlushAndSettle(io);
  if (!settled) co_return settled;
  if (reactor_.Now() - cleaned_ < DirtyRegions::kCleanAfter) co_return {};
  cleaned_ = reactor_.Now();
  Result<void> cleaned = co_await dirty_.Clean(io.For(block::Purpose::kDirtyRegion).After(), false);
  co_return cleaned;
}

Task<Result<void>> Mirror::FlushAndSettle(block::IoContext io) {
  io.cancel = nullptr;
  const std::uint64_t begun = dirty_.BeginFlush();
  Result<void> flushed = co_await FlushLive(io);
  if (!flushed) co_return flushed;
  if (!AllRecorded()) {
    Result<void> recorded = co_await RecordStates(io);
    if (!recorded) co_return recorded;
  }
  dirty_.EndFlush(begun);
  co_return {};
}

Task<Result<void>> Mirror::FlushLive(block::IoContext io) {
  RangeLock::Claim claim(members_, Access::kRead, Offset(0), Bytes(1));
  co_await claim.Granted();
  WhenAll<Result<void>> flushes(reactor_, legs_.size());
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    if (Live(legs_[slot])) flushes.Add(slot, legs_[slot].part.device->Flush(io));
  }
  co_await flushes.Join();
  Outcome outcome;
  for (std::size_t i = 0; i < flushes.count(); ++i) {
    const std::size_t slot = flushes.slot(i);
    outcome.tried[slot] = true;
    if (!flushes.result(i)) outcome.errors[slot] = flushes.result(i).error();
  }
  co_return Settle(outcome);
}

Task<Result<void>> Mirror::StoreDirty(block::IoContext io, ConstView record) {
  RangeLock::Claim claim(members_, Access::kRead, Offset(0), Bytes(1));
  co_await claim.Granted();
  io.durable = true;
  io.cancel = nullptr;
  std::ranges::fill(record_buffer_.view(), std::byte{0});
  std::ranges::copy(record, record_buffer_.view().begin());
  WhenAll<Result<void>> writes(reactor_, legs_.size());
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    const Component& part = legs_[slot].part;
    if (Live(legs_[slot])) {
      writes.Add(slot, part.device->Write(io, part.log_at, record_buffer_.view()));
    }
  }
  co_await writes.Join();
  Outcome outcome;
  for (std::size_t i = 0; i < writes.count(); ++i) {
    const std::size_t slot = writes.slot(i);
    outcome.tried[slot] = true;
    if (!writes.result(i)) outcome.errors[slot] = writes.result(i).error();
  }
  Result<void> settled = Settle(outcome);
  if (!settled || AllRecorded()) co_return settled;
  // A submirror whose record is old must not be asked for it after a crash.
  Result<void> recorded = co_await RecordStates(io);
  co_return recorded;
}

Result<void> Mirror::Settle(const Outcome& outcome) {
  std::size_t failed = kNone;
  bool held = false;
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    if (!outcome.tried[slot] || !Okay(legs_[slot])) continue;
    if (!outcome.errors[slot]) held = true;
    if (outcome.errors[slot] && failed == kNone) failed = slot;
  }
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    Leg& leg = legs_[slot];
    if (outcome.errors[slot] && Live(leg) && (held || !Okay(leg))) Drop(leg);
  }
  if (held) return {};
  if (failed != kNone) return std::unexpected(*outcome.errors[failed]);
  return Fail(Errc::kIo, kKind, "every submirror that was written has failed meanwhile");
}

void Mirror::Drop(Leg& leg) {
  leg.part.state = State::kFailed;
  leg.recorded = false;
  leg.needs.clear();
  no_spare_ = false;
  if (options_.auto_resync) StartRepair();
}

bool Mirror::AllRecorded() const { return std::ranges::all_of(legs_, &Leg::recorded); }

Task<Result<void>> Mirror::RecordStates(block::IoContext io) {
  co_await recording_.Lock();
  runtime::Mutex::Held held(recording_);
  io = io.For(block::Purpose::kStateDatabase).After();
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    Leg& leg = legs_[slot];
    if (leg.recorded) continue;
    const State state = leg.part.state;
    if (ledger_ != nullptr) {
      Result<void> recorded = co_await ledger_->Record(io, slot, state);
      if (!recorded) co_return recorded;
    }
    leg.recorded = leg.part.state == state;
    leg.was_offline = false;
  }
  UpdateKeep();
  co_return {};
}

// Recorded first, then so. A submirror that fails while this is recorded stays failed, and is
// recorded again.
Task<Result<void>> Mirror::Promote(std::size_t slot, State from, State to) {
  co_await recording_.Lock();
  runtime::Mutex::Held held(recording_);
  Leg& leg = legs_[slot];
  if (leg.part.state != from) co_return {};
  if (ledger_ != nullptr) {
    const block::IoContext io{.purpose = block::Purpose::kStateDatabase,
                              .priority = block::PriorityClass::kSyncWrite};
    Result<void> recorded = co_await ledger_->Record(io, slot, to);
    if (!recorded) co_return recorded;
  }
  if (leg.part.state != from) co_return {};
  leg.part.state = to;
  leg.was_offline = false;
  UpdateKeep();
  co_return {};
}

void Mirror::UpdateKeep() {
  dirty_.set_keep(std::ranges::any_of(
      legs_, [](const Leg& leg) { return leg.part.state == State::kOffline || leg.was_offline; }));
}

Result<void> Mirror::CheckAttach(std::size_t slot, const Component& part) const {
  const bool fresh = slot == legs_.size() && slot < kSubmirrorsMax;
  const bool replaces = slot < legs_.size() && (legs_[slot].part.device == nullptr ||
                                                legs_[slot].part.state == State::kFailed);
  if (!fresh && !replaces) {
    return Fail(Errc::kInvalidArgument, kKind,
                "slot " + std::to_string(slot) +
                    " cannot take a submirror: it is in use, or past " + "the next free one");
  }
  std::vector<block::BlockDevice*> present;
  for (std::size_t other = 0; other < legs_.size(); ++other) {
    if (other != slot && !empty(other)) present.push_back(legs_[other].part.device);
  }
  Result<void> fit = CheckParts(kKind, std::span(&part, 1), present, geometry_.block_size);
  if (!fit) return fit;
  if (part.data_size < geometry_.size || part.log_size < kLogSize) {
    return Fail(Errc::kInvalidArgument, kKind,
                "the new submirror is too small: it has " + FormatBytesExact(part.data_size) +
                    " for data, the mirror holds " + FormatBytesExact(geometry_.size));
  }
  return {};
}

Task<Result<void>> Mirror::Attach(std::size_t slot, Component submirror) {
  RangeLock::Claim all(ranges_, Access::kWrite, Offset(0), geometry_.size);
  co_await all.Granted();
  RangeLock::Claim members(members_, Access::kWrite, Offset(0), Bytes(1));
  co_await members.Granted();
  Result<void> fit = CheckAttach(slot, submirror);
  if (!fit) co_return fit;
  if (slot == legs_.size()) legs_.emplace_back();
  Join(legs_[slot], submirror);
  if (options_.auto_resync) StartRepair();
  co_return {};
}

Result<void> Mirror::CheckLeaves(std::size_t slot) const {
  if (slot >= legs_.size() || empty(slot)) {
    return Fail(Errc::kInvalidArgument, kKind, "has no submirror in slot " + std::to_string(slot));
  }
  if (Okay(legs_[slot]) && OkayCount() == 1) {
    return Fail(Errc::kBusy, kKind,
                "submirror " + std::to_string(slot) +
                    " is the only one that holds the data; resync another one first");
  }
  if (Okay(legs_[slot]) && dirty_.unsynced_count() > 0) {
    return Fail(Errc::kBusy, kKind,
                "is unsynced in " + std::to_string(dirty_.unsynced_count()) +
                    " region(s) after a crash; no okay submirror can go before a resync");
  }
  return {};
}

Task<Result<void>> Mirror::Detach(std::size_t slot) {
  RangeLock::Claim all(ranges_, Access::kWrite, Offset(0), geometry_.size);
  co_await all.Granted();
  RangeLock::Claim members(members_, Access::kWrite, Offset(0), Bytes(1));
  co_await members.Granted();
  Result<void> may = CheckLeaves(slot);
  if (!may) co_return may;
  // From here on it misses writes: recorded before the first of them, as if it had failed.
  legs_[slot].part.state = State::kFailed;
  legs_[slot].recorded = false;
  Result<void> recorded = co_await RecordStates({.priority = block::PriorityClass::kSyncWrite});
  if (!recorded) co_return recorded;
  legs_[slot] = Leg{};
  UpdateKeep();
  co_return {};
}

Task<Result<void>> Mirror::Offline(std::size_t slot) {
  RangeLock::Claim all(ranges_, Access::kWrite, Offset(0), geometry_.size);
  co_await all.Granted();
  RangeLock::Claim members(members_, Access::kWrite, Offset(0), Bytes(1));
  co_await members.Granted();
  Result<void> may = CheckLeaves(slot);
  if (!may) co_return may;
  if (!Okay(legs_[slot])) {
    co_return Fail(Errc::kInvalidArgument, kKind,
                   "submirror " + std::to_string(slot) + " is " +
                       std::string(StateName(legs_[slot].part.state)) +
                       "; only an okay one can be set offline");
  }
  Result<void> done = co_await Promote(slot, State::kOkay, State::kOffline);
  co_return done;
}

Task<Result<void>> Mirror::Online(std::size_t slot) {
  RangeLock::Claim all(ranges_, Access::kWrite, Offset(0), geometry_.size);
  co_await all.Granted();
  RangeLock::Claim members(members_, Access::kWrite, Offset(0), Bytes(1));
  co_await members.Granted();
  if (slot >= legs_.size() || empty(slot) || legs_[slot].part.state != State::kOffline) {
    co_return Fail(Errc::kInvalidArgument, kKind,
                   "submirror " + std::to_string(slot) + " is not offline");
  }
  Leg& leg = legs_[slot];
  Join(leg, leg.part);
  leg.was_offline = true;  // so after a crash it is offline again, and nothing is forgotten
  for (std::size_t i = 0; i < leg.needs.size(); ++i) leg.needs[i] = dirty_.marked(i);
  UpdateKeep();
  if (options_.auto_resync) StartRepair();
  co_return {};
}

}  // namespace labrack::volume
