#include "storage/volume/state_database.h"

#include <algorithm>
#include <string>
#include <utility>

#include "storage/base/aligned_buffer.h"
#include "storage/base/check.h"
#include "storage/base/plant.h"

namespace labrack::volume {
namespace {

constexpr const char* kWhat = "state database";
constexpr block::IoContext kIo{.purpose = block::Purpose::kStateDatabase,
                               .priority = block::PriorityClass::kSyncWrite,
                               .durable = true};

constexpr block::IoContext kRead{.purpose = block::Purpose::kStateDatabase};

Offset SlotAt(std::size_t slot) { return Offset(kSlotSize.count() * slot); }

std::string IdText(std::uint64_t id) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(id >> shift) & 0xf];
  return text;
}

struct FoundReplica {
  std::size_t given = 0;  // which of the disks that were given
  std::size_t slot = 0;
  Replica replica;
};

std::string DiskName(std::size_t given) { return "disk " + std::to_string(given); }

bool IsNewer(const Replica& a, const Replica& b) {
  return std::pair(a.promised, a.record.generation) > std::pair(b.promised, b.record.generation);
}

// The newest record that checks of one disk.
Task<Result<FoundReplica>> ReadReplica(block::BlockDevice* disk, std::size_t given) {
  if (disk->geometry().size < kHeadSize) {
    co_return Fail(Errc::kNotFound, DiskName(given),
                   "is too small to carry a state database; it belongs to no set");
  }
  AlignedBuffer buffer(kSlotSize);
  std::optional<FoundReplica> newest;
  std::optional<Error> problem;
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) {
    Result<void> read = co_await disk->Read(kRead, SlotAt(slot), buffer.view());
    if (!read) co_return Fail(read.error().code(), DiskName(given), read.error().note());
    Result<Replica> replica = DecodeReplica(buffer.view(), SlotAt(slot));
    if (!replica) {
      if (!problem || problem->code() == Errc::kNotFound) problem = replica.error();
      continue;
    }
    if (newest && IsNewer(newest->replica, *replica)) continue;
    newest = FoundReplica{.given = given, .slot = slot, .replica = std::move(*replica)};
  }
  if (newest) co_return std::move(*newest);
  if (problem->code() == Errc::kNotFound) {
    co_return Fail(Errc::kNotFound, DiskName(given), "belongs to no set");
  }
  co_return Fail(problem->code(), DiskName(given), problem->ToString());
}

Result<void> CheckOneSet(const std::vector<FoundReplica>& found,
                         std::optional<std::uint64_t> set_id) {
  const std::uint64_t first = set_id.value_or(found[0].replica.record.set_id);
  for (const FoundReplica& one : found) {
    const std::uint64_t own = one.replica.record.set_id;
    if (own == first) continue;
    if (set_id) {
      return Fail(Errc::kInvalidArgument, DiskName(one.given),
                  "belongs to set " + IdText(own) + ", not to set " + IdText(first));
    }
    return Fail(Errc::kInvalidArgument, DiskName(one.given),
                "belongs to set " + IdText(own) + ", but disk 0 to set " + IdText(first) +
                    "; give the disks of one set");
  }
  return {};
}

// Two that differ never have one generation, unless somebody has copied disks and used both.
Result<SetRecord> ChooseNewest(const std::vector<FoundReplica>& found) {
  const SetRecord* newest = nullptr;
  for (const FoundReplica& one : found) {
    const SetRecord& record = one.replica.record;
    if (newest == nullptr || record.generation > newest->generation) newest = &record;
  }
  for (const FoundReplica& one : found) {
    const SetRecord& record = one.replica.record;
    if (record.generation != newest->generation || record == *newest) continue;
    return Fail(Errc::kCorrupt, kWhat,
                "has two histories of generation " + std::to_string(record.generation) +
                    "; give only the disks of the one that is right");
  }
  return *newest;
}

constexpr int kEpochShift = 32;  // records of one start

// Nobody is given or loses a voice by it.
bool IsSettled(const SetRecord& record) {
  return std::ranges::all_of(record.disks,
                             [](const DiskEntry& disk) { return disk.counts == disk.counted; });
}

std::uint64_t FirstOfEpoch(std::uint64_t epoch) { return epoch << kEpochShift; }

}  // namespace

std::unique_ptr<StateDatabase> StateDatabase::Make(runtime::Reactor& reactor,
                                                   std::vector<block::BlockDevice*> disks,
                                                   SetRecord record) {
  LABRACK_CHECK(disks.size() == record.disks.size());
  std::unique_ptr<StateDatabase> database(new StateDatabase(reactor));
  for (block::BlockDevice* disk : disks) database->replicas_.push_back({.device = disk});
  database->record_ = std::move(record);
  return database;
}

Task<Result<void>> StateDatabase::Erase() {
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    Result<void> wiped = co_await Wipe(kIo, replicas_[i].device);
    if (wiped) continue;
    co_return Fail(wiped.error().code(), DiskName(i), "cannot be written: " + wiped.error().note());
  }
  co_return {};
}

Task<Result<void>> StateDatabase::WriteFirst() {
  record_.generation = generation_ = FirstOfEpoch(epoch_);
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    Result<void> written = co_await WriteReplica(kIo, &record_, i);
    if (written) continue;
    co_return Fail(written.error().code(), DiskName(i),
                   "cannot be written: " + written.error().note());
  }
  co_return {};
}

Task<Result<std::unique_ptr<StateDatabase>>> StateDatabase::Find(
    runtime::Reactor* reactor, std::vector<block::BlockDevice*> disks,
    std::optional<std::uint64_t> set_id) {
  if (disks.empty()) co_return Fail(Errc::kInvalidArgument, kWhat, "no disk was given");
  std::vector<FoundReplica> found;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    Result<FoundReplica> replica = co_await ReadReplica(disks[i], i);
    if (!replica) co_return std::unexpected(replica.error());
    found.push_back(std::move(*replica));
  }
  const Result<void> one_set = CheckOneSet(found, set_id);
  if (!one_set) co_return std::unexpected(one_set.error());
  Result<SetRecord> newest = ChooseNewest(found);
  if (!newest) co_return std::unexpected(newest.error());

  std::unique_ptr<StateDatabase> database(new StateDatabase(*reactor));
  database->record_ = std::move(*newest);
  database->generation_ = database->record_.generation;
  database->replicas_.resize(database->record_.disks.size());
  for (const FoundReplica& one : found) {
    const std::uint32_t number = one.replica.disk;
    const std::uint64_t id = one.replica.record.disks[number].id;
    if (number >= database->replicas_.size() || database->record_.disks[number].id != id) {
      co_return Fail(Errc::kInvalidArgument, DiskName(one.given),
                     "belongs to the set no longer: its place was given to another disk");
    }
    Place& place = database->replicas_[number];
    if (place.device != nullptr) {
      co_return Fail(Errc::kInvalidArgument, DiskName(one.given),
                     "was given twice, or is a copy of another one");
    }
    place = {.device = disks[one.given], .newest_slot = one.slot, .record = one.replica.record};
    database->epoch_ = std::max(database->epoch_, one.replica.promised);
  }
  co_return database;
}

// Both among those that have a voice in the newest record and among those that had one in whether
// it counts: a record that takes voices away may be the trace of a change that came to nothing.
Result<void> StateDatabase::CheckVoices(bool read_only) const {
  for (bool DiskEntry::* voice : {&DiskEntry::counts, &DiskEntry::counted}) {
    Result<void> enough = CheckVoicesOf(voice, read_only);
    if (!enough) return enough;
  }
  return {};
}

Result<void> StateDatabase::CheckVoicesOf(bool DiskEntry::* voice, bool read_only) const {
  std::size_t voices = 0;
  std::size_t here = 0;
  std::string missing;
  for (std::size_t i = 0; i < record_.disks.size(); ++i) {
    if (!(record_.disks[i].*voice)) continue;
    ++voices;
    if (replicas_[i].device != nullptr) {
      ++here;
    } else {
      missing += (missing.empty() ? "" : ", ") + std::to_string(i) + " (id " +
                 IdText(record_.disks[i].id) + ")";
    }
  }
  const bool half = read_only || LABRACK_PLANTED(kHalfStarts);
  const bool enough = half ? 2 * here >= voices : 2 * here > voices;
  if (enough) return {};
  return Fail(Errc::kUnavailable, "set " + IdText(record_.set_id),
              std::to_string(here) + " of " + std::to_string(voices) +
                  " disks that count are here; " +
                  (read_only ? "reading needs half of them"
                             : "writing needs more than half of them, since the others may have "
                               "gone on without these") +
                  "; missing: " + missing);
}

Task<Result<void>> StateDatabase::WriteReplica(block::IoContext io, const SetRecord* record,
                                               std::uint32_t number) {
  Place& place = replicas_[number];
  const std::size_t slot = (place.newest_slot + 1) % kSlotCount;
  const std::vector<std::byte> bytes =
      EncodeReplica({.record = *record, .disk = number, .promised = epoch_}, SlotAt(slot));
  AlignedBuffer buffer{Bytes(bytes.size())};
  std::ranges::copy(bytes, buffer.view().begin());
  io.durable = true;
  io.cancel = nullptr;
  Result<void> written = co_await place.device->Write(io, SlotAt(slot), buffer.view());
  if (written) {
    place.newest_slot = slot;
    if (record != &place.record) place.record = *record;
  }
  co_return written;
}

// Both of those that have a voice in the newest record, and of those that had one in whether it
// counts.
Result<void> StateDatabase::HalfHold(const std::vector<bool>& holds) const {
  for (bool DiskEntry::* voice : {&DiskEntry::counts, &DiskEntry::counted}) {
    std::size_t voices = 0;
    std::size_t held = 0;
    for (std::size_t i = 0; i < record_.disks.size(); ++i) {
      if (!(record_.disks[i].*voice)) continue;
      ++voices;
      if (holds[i]) ++held;
    }
    if (held > 0 && 2 * held >= voices) continue;
    return Fail(Errc::kUnavailable, kWhat,
                std::to_string(held) + " of " + std::to_string(voices) +
                    " disks took a change; half of them must");
  }
  return {};
}

// One disk after the other, and again from the first when one did not take it: every record that
// stays newest on some disk must name who has a voice.
Task<Result<void>> StateDatabase::WriteToVoices(block::IoContext io, SetRecord* next,
                                                std::vector<bool>* holds) {
  for (bool all = false; !all;) {
    all = true;
    next->generation = ++generation_;
    LABRACK_CHECK(generation_ < FirstOfEpoch(epoch_ + 1));
    holds->assign(replicas_.size(), false);
    for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
      const DiskEntry& disk = next->disks[i];
      if (replicas_[i].device == nullptr || (!disk.counts && !disk.counted)) continue;
      Result<void> written = co_await WriteReplica(io, next, i);
      (*holds)[i] = written.has_value();
    }
    // After the round, so that all that was written of this generation is the same.
    for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
      DiskEntry& disk = next->disks[i];
      if (!disk.counts || (*holds)[i]) continue;
      disk.counts = false;
      all = false;
    }
  }
  co_return HalfHold(*holds);
}

// `next` says who has a voice from now on, and who had one until now.
Task<Result<void>> StateDatabase::Propose(block::IoContext io, SetRecord next) {
  if (broken_) {
    co_return Fail(Errc::kUnavailable, kWhat,
                   "too few disks took an earlier change; assemble the set anew");
  }
  std::vector<bool> holds;
  Result<void> taken = co_await WriteToVoices(io, &next, &holds);
  broken_ = !taken;
  if (!taken) co_return taken;
  const bool settled = IsSettled(next);
  record_ = std::move(next);
  // It counts, so now the new voices alone decide; and the disks are told.
  for (DiskEntry& disk : record_.disks) disk.counted = disk.counts;
  if (settled) co_return {};
  SetRecord confirmed = record_;
  co_return co_await Propose(io, std::move(confirmed));
}

Task<Result<void>> StateDatabase::Commit(block::IoContext io, SetRecord next) {
  for (std::size_t i = 0; i < next.disks.size(); ++i) {
    next.disks[i].counted = i < record_.disks.size() && record_.disks[i].counts;
  }
  co_return co_await Propose(io, std::move(next));
}

// What a disk holds stays as it is. A disk that does not take the promise is missing from now on.
Task<Result<void>> StateDatabase::Promise() {
  ++epoch_;
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    if (replicas_[i].device == nullptr || LABRACK_PLANTED(kPromiseSkipped)) continue;
    Result<void> promised = co_await WriteReplica(kIo, &replicas_[i].record, i);
    if (!promised) replicas_[i].device = nullptr;
  }
  generation_ = FirstOfEpoch(epoch_);
  co_return CheckVoices(false);
}

Task<Result<void>> StateDatabase::Start(Change change) {
  co_await updating_.Lock();
  runtime::Mutex::Held held(updating_);
  Result<void> enough = CheckVoices(false);
  if (enough) enough = co_await Promise();
  if (!enough) co_return enough;
  if (!IsSettled(record_)) {
    // Whether it has counted is not known: now it does, or this start fails.
    SetRecord again = record_;
    Result<void> settled = co_await Propose(kIo, std::move(again));
    if (!settled) co_return settled;
  }
  SetRecord next = record_;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    next.disks[i].counts = replicas_[i].device != nullptr;
  }
  change(next);
  Result<void> committed = co_await Commit(kIo, std::move(next));
  co_return committed;
}

Task<Result<void>> StateDatabase::Update(block::IoContext io, Change change) {
  co_await updating_.Lock();
  runtime::Mutex::Held held(updating_);
  SetRecord next = record_;
  change(next);
  Result<void> committed = co_await Commit(io.For(block::Purpose::kStateDatabase), std::move(next));
  co_return committed;
}

Task<Result<void>> StateDatabase::CheckBlank(block::BlockDevice* disk, std::size_t given) {
  Result<FoundReplica> found = co_await ReadReplica(disk, given);
  if (found) {
    co_return Fail(Errc::kAlreadyExists, DiskName(given),
                   "belongs to set " + IdText(found->replica.record.set_id) +
                       "; take another disk, or say that it may be overwritten");
  }
  if (found.error().code() == Errc::kNotFound) co_return {};
  if (found.error().code() == Errc::kIo) co_return std::unexpected(found.error());
  co_return Fail(Errc::kAlreadyExists, DiskName(given),
                 "carries what looks like a state database (" + found.error().note() +
                     "); take another disk, or say that it may be overwritten");
}

// What a disk has carried before must not be found beside what it will.
Task<Result<void>> StateDatabase::Wipe(block::IoContext io, block::BlockDevice* disk) {
  AlignedBuffer zeros(disk->geometry().block_size);
  std::ranges::fill(zeros.view(), std::byte{0});
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) {
    Result<void> wiped = co_await disk->Write(io, SlotAt(slot), zeros.view());
    if (!wiped) co_return wiped;
  }
  co_return {};
}

Task<Result<std::uint32_t>> StateDatabase::AddDisk(block::IoContext io,
                                                   block::BlockDevice* device) {
  const auto given = static_cast<std::uint32_t>(replicas_.size());
  if (given == kDisksMax) {
    co_return Fail(Errc::kExhausted, kWhat,
                   "the set has " + std::to_string(kDisksMax) + " disks, the most possible");
  }
  Result<void> blank = co_await CheckBlank(device, given);
  if (!blank) co_return std::unexpected(blank.error());
  io.durable = true;
  Result<void> wiped = co_await Wipe(io, device);
  if (!wiped) co_return std::unexpected(wiped.error());
  co_await updating_.Lock();
  runtime::Mutex::Held held(updating_);
  const auto number = static_cast<std::uint32_t>(replicas_.size());
  SetRecord next = record_;
  next.disks.push_back({.id = DiskIdOf(next.set_id, number), .size = device->geometry().size});
  replicas_.push_back({.device = device});
  Result<void> committed = co_await Commit(io, std::move(next));
  if (!committed) co_return std::unexpected(committed.error());
  co_return number;
}

}  // namespace labrack::volume
