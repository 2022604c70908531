// Resync: makes the submirrors of a mirror equal again.
//
//   after a crash    the regions that were dirty, from the first okay submirror to all others
//   online           the regions that were written while the submirror was offline
//   attach, spare    everything, from any okay submirror to the new one
//
// One chunk at a time: its range is locked against writes, read, and written to the targets; so a
// write comes wholly before the copy, or goes to the new submirror as well; those that began before
// it joined have ended by then, since a join waits for all of them.
// A region is synced when all its chunks are copied, nobody joined meanwhile, and all submirrors
// have flushed. A submirror becomes okay when it needs no region any more, has the dirty record of
// the others, and has flushed; in this order, and recorded before it is read.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/plant.h"
#include "storage/volume/mirror.h"

namespace labrack::volume {

using runtime::WhenAll;

namespace {

constexpr block::IoContext kCopy{.purpose = block::Purpose::kResync,
                                 .priority = block::PriorityClass::kScrub};

}  // namespace

void Mirror::Join(Leg& leg, Component part) {
  leg = Leg{};
  leg.part = part;
  leg.part.state = State::kResyncing;
  leg.needs.assign(dirty_.shape().count, true);
  ++join_count_;
}

void Mirror::StartRepair() {
  if (repairing_ || closing_ || options_.read_only) return;
  repairing_ = true;
  repaired_.Reset();
  background_.Spawn(Repair());
}

Task<Result<void>> Mirror::Resync() {
  StartRepair();
  if (repairing_) co_await repaired_.Wait();
  co_return repair_result_;
}

Task<void> Mirror::Repair() {
  Result<void> step;
  do {
    step = co_await RepairStep();
  } while (step && !closing_ && !RepairDone());
  repair_result_ = std::move(step);
  repairing_ = false;
  repaired_.Set();
}

Task<Result<void>> Mirror::RepairStep() {
  if (!AllRecorded()) {
    Result<void> recorded = co_await RecordStates(kCopy);
    if (!recorded) co_return recorded;
  }
  if (WantsSpare()) {
    Result<void> taken = co_await TakeSpares();
    if (!taken) co_return taken;
  }
  const std::size_t region = NextRegion();
  if (region == dirty_.shape().count) {
    Result<void> finished = co_await FinishLegs();
    co_return finished;
  }
  Result<void> copied = co_await CopyRegion(region);
  co_return copied;
}

bool Mirror::RepairDone() const {
  return AllRecorded() && !WantsSpare() && dirty_.unsynced_count() == 0 &&
         NextRegion() == dirty_.shape().count &&
         std::ranges::none_of(legs_, [](const Leg& leg) { return Live(leg) && !Okay(leg); });
}

bool Mirror::WantsSpare() const {
  return ledger_ != nullptr && !no_spare_ && std::ranges::any_of(legs_, [](const Leg& leg) {
           return leg.part.state == State::kFailed;
         });
}

Task<Result<void>> Mirror::TakeSpares() {
  RangeLock::Claim all(ranges_, Access::kWrite, Offset(0), geometry_.size);
  co_await all.Granted();
  RangeLock::Claim members(members_, Access::kWrite, Offset(0), Bytes(1));
  co_await members.Granted();
  co_await recording_.Lock();
  runtime::Mutex::Held held(recording_);
  no_spare_ = true;
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    if (legs_[slot].part.state != State::kFailed) continue;
    Result<std::optional<Component>> spare = co_await ledger_->TakeSpare(
        kCopy.For(block::Purpose::kStateDatabase), slot, geometry_.size);
    if (!spare) co_return std::unexpected(spare.error());
    if (!*spare) continue;
    Join(legs_[slot], **spare);
  }
  UpdateKeep();
  co_return {};
}

// The first region that is unsynced or that a submirror needs; their count when there is none.
std::size_t Mirror::NextRegion() const {
  const std::size_t count = dirty_.shape().count;
  for (std::size_t region = 0; region < count; ++region) {
    if (dirty_.NeedsCopy(region)) return region;
    for (const Leg& leg : legs_) {
      if (!leg.needs.empty() && leg.needs[region]) return region;
    }
  }
  return count;
}

Task<Result<void>> Mirror::CopyRegion(std::size_t region) {
  const std::uint64_t joins = join_count_;
  const std::uint64_t lost = lost_write_count_;
  const bool unsynced = dirty_.NeedsCopy(region);
  std::uint32_t targets = 0;
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    const Leg& leg = legs_[slot];
    const bool needs = !leg.needs.empty() && leg.needs[region];
    if (Live(leg) && (unsynced || needs)) targets |= 1U << slot;
  }
  const Bytes size = dirty_.shape().region_size;
  Offset at(size.count() * region);
  const Offset end = std::min(at + size, Offset(geometry_.size.count()));
  while (at < end) {
    if (closing_) co_return Fail(Errc::kCancelled, "mirror", "closed while it was resynced");
    const Bytes length = std::min(options_.resync_chunk, end - at);
    Result<void> copied = co_await CopyChunk(at, length, targets);
    if (!copied) co_return copied;
    at += length;
  }
  if (joins != join_count_) co_return {};  // who joined has not got all of it: once more
  for (Leg& leg : legs_) {
    if (!leg.needs.empty()) leg.needs[region] = false;
  }
  if (unsynced && lost == lost_write_count_) dirty_.Copied(region);
  co_return {};
}

Task<Result<void>> Mirror::CopyChunk(Offset at, Bytes length, std::uint32_t targets) {
  const Bytes locked = LABRACK_PLANTED(kResyncUnlocked) ? geometry_.block_size : length;
  RangeLock::Claim claim(ranges_, Access::kCopy, at, locked);
  co_await claim.Granted();
  if (std::popcount(targets) == 0 || LABRACK_PLANTED(kNothingCopied)) co_return {};
  MutableView buffer = copy_buffer_.first(length);
  const std::size_t pin = Pin();
  Result<void> read = co_await legs_[pin].part.device->Read(kCopy, At(legs_[pin], at), buffer);
  if (read) {
    targets &= ~(1U << pin);
  } else {
    read = co_await ReadMerged(kCopy, at, buffer);
  }
  if (!read) co_return read;
  Result<void> written = co_await WriteCopy(at, buffer, targets);
  co_return written;
}

// What fails here is dropped, but not the last okay one.
Task<Result<void>> Mirror::WriteCopy(Offset at, ConstView from, std::uint32_t targets) {
  WhenAll<Result<void>> writes(reactor_, legs_.size());
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    const Leg& leg = legs_[slot];
    if ((targets >> slot & 1U) == 0 || !Live(leg)) continue;
    writes.Add(slot, leg.part.device->Write(kCopy.After(), At(leg, at), from));
  }
  co_await writes.Join();
  for (std::size_t i = 0; i < writes.count(); ++i) {
    Leg& leg = legs_[writes.slot(i)];
    if (!writes.result(i) && Live(leg) && (!Okay(leg) || OkayCount() > 1)) Drop(leg);
  }
  if (AllRecorded()) co_return {};
  Result<void> recorded = co_await RecordStates(kCopy);
  co_return recorded;
}

// Sectors that one submirror cannot read are written to it anew from the others; a disk then puts
// them elsewhere. What it held there was what the others hold, so no region gets dirty by this.
Task<void> Mirror::Rewrite(Offset at, Bytes length, std::size_t slot) {
  RangeLock::Claim claim(ranges_, Access::kCopy, at, length);
  co_await claim.Granted();
  if (!Okay(legs_[slot]) || dirty_.Unsynced(at, length)) co_return;
  AlignedBuffer buffer(length);
  Result<void> read = co_await ReadMerged(kCopy, at, buffer.view());
  if (!read) co_return;
  // Whether the states could be recorded is for the next write to say; the read was answered.
  Result<void> written = co_await WriteCopy(at, buffer.view(), 1U << slot);
  static_cast<void>(written);
}

Task<Result<void>> Mirror::FinishLegs() {
  std::uint32_t ready = 0;
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    if (Live(legs_[slot]) && !Okay(legs_[slot])) ready |= 1U << slot;
  }
  const std::uint64_t joins = join_count_;
  if (ready != 0) {
    Result<void> stored = co_await dirty_.Store(kCopy.For(block::Purpose::kDirtyRegion));
    if (!stored) co_return stored;
  }
  Result<void> flushed;
  if (LABRACK_PLANTED(kCopiedNotFlushed)) {
    dirty_.EndFlush(dirty_.BeginFlush());
  } else {
    flushed = co_await FlushAndSettle(kCopy);
  }
  if (!flushed) co_return flushed;
  if (joins != join_count_) co_return {};
  for (std::size_t slot = 0; slot < legs_.size(); ++slot) {
    if ((ready >> slot & 1U) == 0) continue;
    Result<void> promoted = co_await Promote(slot, State::kResyncing, State::kOkay);
    if (!promoted) co_return promoted;
  }
  Result<void> cleaned = co_await dirty_.Clean(kCopy.For(block::Purpose::kDirtyRegion), true);
  co_return cleaned;
}

}  // namespace labrack::volume
