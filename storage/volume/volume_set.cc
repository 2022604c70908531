#include "storage/volume/volume_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/plant.h"
#include "storage/base/random.h"
#include "storage/base/units.h"
#include "storage/block/null_device.h"
#include "storage/volume/concat.h"
#include "storage/volume/stripe.h"

namespace labrack::volume {
namespace {

using Devices = std::vector<block::BlockDevice*>;  // nullptr: not there

std::string VolumeName(const SetRecord& record, std::size_t index) {
  return "volume " + std::to_string(index) + " (" +
         std::string(KindName(record.volumes[index].kind)) + ")";
}

// What is wrong with a part of a volume, told of the volume.
Error Within(const SetRecord& record, std::size_t index, const Error& error) {
  const std::string part = error.subject().empty() ? "" : ", " + error.subject();
  return {error.code(), VolumeName(record, index) + part, error.note()};
}

std::string ChildName(const ChildEntry& child) {
  return (child.source == ChildEntry::Source::kDisk ? "disk " : "volume ") +
         std::to_string(child.index);
}

block::BlockDevice* DeviceOf(const ChildEntry& child, const Devices& disks,
                             const Devices& volumes) {
  switch (child.source) {
    case ChildEntry::Source::kNone:
      return nullptr;
    case ChildEntry::Source::kDisk:
      return disks[child.index];
    case ChildEntry::Source::kVolume:
      return volumes[child.index];
  }
  return nullptr;
}

bool IsRedundant(const VolumeEntry& entry) {
  return entry.kind == Kind::kMirror || entry.kind == Kind::kRaid5;
}

Bytes LogSizeOf(const VolumeEntry& entry) {
  return entry.kind == Kind::kMirror ? Mirror::kLogSize : entry.log_size;
}

Result<Component> Place(const VolumeEntry& entry, const ChildEntry& child,
                        block::BlockDevice* device) {
  const Bytes head = child.source == ChildEntry::Source::kDisk ? kHeadSize : Bytes(0);
  Result<Component> part =
      PlaceComponent(*device, head, LogSizeOf(entry), device->geometry().block_size);
  if (!part) return Fail(part.error().code(), ChildName(child), part.error().note());
  part->state = child.state;
  const bool made = entry.kind == Kind::kRaid5 && entry.size > Bytes(0);
  if (made && part->data_size < entry.size) {
    return Fail(Errc::kInvalidArgument, ChildName(child),
                "holds " + FormatBytesExact(part->data_size) + " of data; " +
                    FormatBytesExact(entry.size) + " are needed");
  }
  if (made) part->data_size = entry.size;
  return part;
}

// The components of a volume. Some of those that are redundant may be missing.
Result<std::vector<Component>> PartsOf(const SetRecord& record, std::size_t index,
                                       const Devices& disks, const Devices& volumes) {
  const VolumeEntry& entry = record.volumes[index];
  std::vector<Component> parts;
  for (const ChildEntry& child : entry.children) {
    block::BlockDevice* device = DeviceOf(child, disks, volumes);
    if (device != nullptr) {
      Result<Component> part = Place(entry, child, device);
      if (!part) return std::unexpected(Within(record, index, part.error()));
      parts.push_back(*part);
    } else if (IsRedundant(entry)) {
      parts.push_back(
          {.data_size = entry.size, .log_size = LogSizeOf(entry), .state = child.state});
    } else {
      return Fail(Errc::kUnavailable, VolumeName(record, index),
                  "needs " + ChildName(child) + ", which is missing; it has no redundancy");
    }
  }
  return parts;
}

Raid5Options OptionsOf(const SetRecord& record, std::size_t index) {
  const VolumeEntry& entry = record.volumes[index];
  return {.interlace = entry.interlace,
          .parity_log = entry.parity_log,
          .volume_id = Mix64(record.set_id ^ Mix64(~static_cast<std::uint64_t>(index))),
          .flush_mode = entry.flush_mode};
}

// What a volume of a new set is to have in its record.
void FillIn(const Devices& disks, const Devices& volumes, VolumeEntry& entry) {
  if (entry.kind != Kind::kRaid5 || entry.log_size > Bytes(0)) return;
  std::optional<block::Geometry> smallest;
  for (const ChildEntry& child : entry.children) {
    const block::BlockDevice* device = DeviceOf(child, disks, volumes);
    if (device == nullptr) continue;
    if (!smallest || device->geometry().size < smallest->size) smallest = device->geometry();
  }
  if (smallest) {
    entry.log_size = Raid5::DefaultLogSize(entry.parity_log, *smallest, entry.interlace);
  }
}

// A concat or a stripe, as it was made and then grown.
Result<std::unique_ptr<RowVolume>> MakeRows(runtime::Reactor& reactor, const VolumeEntry& entry,
                                            const std::vector<Component>& parts) {
  std::unique_ptr<RowVolume> rows;
  for (std::size_t done = 0; done < parts.size();) {
    std::size_t end = done;
    while (end < parts.size() && entry.children[end].group == entry.children[done].group) ++end;
    const std::span<const Component> group(parts.data() + done, end - done);
    Result<void> grown;
    if (rows != nullptr) {
      grown = rows->Grow(group);
    } else if (entry.kind == Kind::kConcat) {
      auto concat = Concat::Create(reactor, group, entry.flush_mode);
      if (!concat) return std::unexpected(concat.error());
      rows = std::move(*concat);
    } else {
      auto stripe = Stripe::Create(reactor, group, entry.interlace, entry.flush_mode);
      if (!stripe) return std::unexpected(stripe.error());
      rows = std::move(*stripe);
    }
    if (!grown) return std::unexpected(grown.error());
    done = end;
  }
  return rows;
}

// What the volumes of a record would be, with nothing read or written: a mirror is stood for by a
// device of its geometry.
struct Plan {
  std::vector<std::unique_ptr<block::BlockDevice>> owned;
  Devices volumes;
};

// Plans the next volume. What a mirror is to hold, or a component of a RAID-5, is put into the
// record.
Result<void> PlanNext(runtime::Reactor& reactor, SetRecord& record, const Devices& disks,
                      Plan& plan) {
  const std::size_t index = plan.volumes.size();
  VolumeEntry& entry = record.volumes[index];
  FillIn(disks, plan.volumes, entry);
  const Result<std::vector<Component>> parts = PartsOf(record, index, disks, plan.volumes);
  if (!parts) return std::unexpected(parts.error());
  if (entry.kind == Kind::kRaid5) {
    const Result<block::Geometry> geometry = Raid5::Plan(*parts, OptionsOf(record, index));
    if (!geometry) return std::unexpected(Within(record, index, geometry.error()));
    for (const Component& part : *parts) {
      if (part.device != nullptr && (entry.size == Bytes(0) || part.data_size < entry.size)) {
        entry.size = part.data_size;
      }
    }
    plan.owned.push_back(std::make_unique<block::NullDevice>(*geometry));
  } else if (entry.kind == Kind::kMirror) {
    const Result<block::Geometry> geometry = Mirror::Plan(*parts, entry.size);
    if (!geometry) return std::unexpected(Within(record, index, geometry.error()));
    entry.size = geometry->size;
    plan.owned.push_back(std::make_unique<block::NullDevice>(*geometry));
  } else {
    Result<std::unique_ptr<RowVolume>> rows = MakeRows(reactor, entry, *parts);
    if (!rows) return std::unexpected(Within(record, index, rows.error()));
    plan.owned.push_back(std::move(*rows));
  }
  plan.volumes.push_back(plan.owned.back().get());
  return {};
}

bool IsPart(const SetRecord& record, std::size_t index) {
  return std::ranges::any_of(record.volumes, [&](const VolumeEntry& volume) {
    return std::ranges::any_of(volume.children, [&](const ChildEntry& child) {
      return child.source == ChildEntry::Source::kVolume && child.index == index;
    });
  });
}

// Whether any volume is there that others are not made of. One that is not must not keep them away:
// a spare may have taken its place long ago.
bool HasTop(const SetRecord& record, const Devices& volumes) {
  for (std::size_t index = 0; index < volumes.size(); ++index) {
    if (volumes[index] != nullptr && !IsPart(record, index)) return true;
  }
  return false;
}

// Marks as failed whatever is missing, so that it never comes back unnoticed. An error where none
// of the volumes that are to be used can be had.
Result<void> PlanPresent(runtime::Reactor& reactor, SetRecord& record, const Devices& disks) {
  Plan plan;
  Result<void> first;
  for (std::size_t index = 0; index < record.volumes.size(); ++index) {
    VolumeEntry& entry = record.volumes[index];
    bool okay = entry.kind != Kind::kMirror;
    for (ChildEntry& child : entry.children) {
      if (!IsRedundant(entry) || child.source == ChildEntry::Source::kNone) continue;
      const bool missing = DeviceOf(child, disks, plan.volumes) == nullptr;
      if (missing && !LABRACK_PLANTED(kMissingNotFailed)) child.state = State::kFailed;
      if (child.state == State::kOkay) okay = true;
    }
    Result<void> planned =
        okay ? PlanNext(reactor, record, disks, plan)
             : Fail(Errc::kUnavailable, VolumeName(record, index),
                    "has no submirror left that holds its data: all are missing, stale, or were "
                    "being resynced");
    if (planned) continue;
    if (planned.error().code() != Errc::kUnavailable) return planned;
    if (first) first = std::move(planned);
    plan.volumes.push_back(nullptr);
  }
  return HasTop(record, plan.volumes) ? Result<void>() : first;
}

class ReadOnly final : public block::BlockDevice {
 public:
  explicit ReadOnly(block::BlockDevice& below) : below_(below) {}
  block::Geometry geometry() const override { return below_.geometry(); }
  Task<Result<void>> Read(block::IoContext io, Offset at, MutableView into) override {
    return below_.Read(io, at, into);
  }
  Task<Result<void>> Write(block::IoContext, Offset, ConstView) override {
    return Answered(Fail(Errc::kPermissionDenied, "volume", "was assembled for reading only"));
  }
  Task<Result<void>> Flush(block::IoContext) override { return Answered({}); }

 private:
  block::BlockDevice& below_;
};

}  // namespace

// What one volume tells about its components goes into the record of the set.
class VolumeSet::SetLedger final : public Ledger {
 public:
  SetLedger(VolumeSet& set, std::size_t volume)
      : set_(set), database_(*set.database_), volume_(volume) {}

  // Of the volume; only a spare of the same can take a place in it.
  void set_block_size(Bytes block_size) { block_size_ = block_size; }

  Task<Result<void>> Record(block::IoContext io, std::size_t slot, State state) override {
    StateDatabase::Change change = [volume = volume_, slot, state](SetRecord& record) {
      record.volumes[volume].children[slot].state = state;
    };
    Result<void> updated = co_await database_.Update(io, change);
    if (updated && state == State::kFailed) set_.StartRebuild(volume_);
    co_return updated;
  }

  Task<Result<std::optional<Component>>> TakeSpare(block::IoContext io, std::size_t slot,
                                                   Bytes size) override {
    const SetRecord& record = database_.record();
    const VolumeEntry entry = record.volumes[volume_];
    for (const std::uint32_t disk : record.spares) {
      ChildEntry child{
          .source = ChildEntry::Source::kDisk, .state = State::kResyncing, .index = disk};
      if (database_.disk(disk) == nullptr) continue;
      Result<Component> part = Place(entry, child, database_.disk(disk));
      if (!part || part->data_size < size) continue;
      if (part->device->geometry().block_size != block_size_) continue;
      StateDatabase::Change change = [volume = volume_, slot, child](SetRecord& next) {
        next.volumes[volume].children[slot] = child;
        std::erase(next.spares, child.index);
      };
      Result<void> updated = co_await database_.Update(io, change);
      if (!updated) co_return std::unexpected(updated.error());
      co_return *part;
    }
    co_return std::nullopt;
  }

 private:
  VolumeSet& set_;
  StateDatabase& database_;
  std::size_t volume_;
  Bytes block_size_;
};

Task<Result<void>> VolumeSet::Create(runtime::Reactor* reactor,
                                     std::vector<block::BlockDevice*> disks, SetSpec spec) {
  SetRecord record{.set_id = spec.set_id,
                   .generation = 0,
                   .disks = {},
                   .volumes = std::move(spec.volumes),
                   .spares = std::move(spec.spares)};
  for (std::uint32_t i = 0; i < disks.size(); ++i) {
    record.disks.push_back({.id = DiskIdOf(spec.set_id, i), .size = disks[i]->geometry().size});
    if (std::ranges::find(disks.begin(), disks.begin() + i, disks[i]) == disks.begin() + i)
      continue;
    co_return Fail(Errc::kInvalidArgument, "disk " + std::to_string(i), "was given twice");
  }
  const Result<void> sound = CheckRecord(record);
  if (!sound) co_return sound;
  Plan plan;
  while (plan.volumes.size() < record.volumes.size()) {
    const Result<void> planned = PlanNext(*reactor, record, disks, plan);
    if (!planned) co_return planned;
  }
  for (const std::uint32_t spare : record.spares) {
    const ChildEntry child{.source = ChildEntry::Source::kDisk, .index = spare};
    const Result<Component> part = Place({.kind = Kind::kMirror}, child, disks[spare]);
    if (!part) co_return std::unexpected(part.error());
  }
  for (std::size_t i = 0; i < disks.size() && !spec.overwrite; ++i) {
    Result<void> blank = co_await StateDatabase::CheckBlank(disks[i], i);
    if (!blank) co_return blank;
  }
  VolumeSet set(*reactor, {.auto_resync = false}, StateDatabase::Make(*reactor, disks, record));
  set.format_ = true;
  set.zeroed_ = spec.zeroed;
  Result<void> made = co_await set.database_->Erase();
  if (made) made = co_await set.OpenVolumes(record);
  Result<void> closed = co_await set.Close();
  if (!made) co_return made;
  if (!closed) co_return closed;
  // Last: there is no set before its mirrors know that all their regions may differ.
  made = co_await set.database_->WriteFirst();
  co_return made;
}

Task<Result<std::unique_ptr<VolumeSet>>> VolumeSet::Assemble(runtime::Reactor* reactor,
                                                             std::vector<block::BlockDevice*> disks,
                                                             AssembleOptions options) {
  Result<std::unique_ptr<StateDatabase>> found =
      co_await StateDatabase::Find(reactor, std::move(disks), options.set_id);
  if (!found) co_return std::unexpected(found.error());
  StateDatabase& database = **found;
  const Result<void> enough = database.CheckVoices(options.read_only);
  if (!enough) co_return std::unexpected(enough.error());
  Devices present;
  for (std::uint32_t i = 0; i < database.record().disks.size(); ++i) {
    present.push_back(database.disk(i));
  }
  SetRecord planned = database.record();
  const Result<void> possible = PlanPresent(*reactor, planned, present);
  if (!possible) co_return std::unexpected(possible.error());
  if (!options.read_only) {
    StateDatabase::Change change = [&planned](SetRecord& next) { next.volumes = planned.volumes; };
    Result<void> started = co_await database.Start(change);
    if (!started) co_return std::unexpected(started.error());
  }
  std::unique_ptr<VolumeSet> set(new VolumeSet(*reactor, options, std::move(*found)));
  if (!options.read_only) planned = set->record();
  Result<void> opened = co_await set->OpenVolumes(std::move(planned));
  if (opened) co_return set;
  Result<void> closed = co_await set->Close();
  static_cast<void>(closed);
  co_return std::unexpected(opened.error());
}

VolumeSet::VolumeSet(runtime::Reactor& reactor, AssembleOptions options,
                     std::unique_ptr<StateDatabase> database)
    : reactor_(reactor), options_(options), database_(std::move(database)), background_(reactor) {}

VolumeSet::~VolumeSet() {
  LABRACK_CHECK(closed_);
  while (!volumes_.empty()) volumes_.pop_back();  // those on top first
}

Task<Result<void>> VolumeSet::OpenVolumes(SetRecord record) {
  Devices disks;
  for (std::uint32_t i = 0; i < record.disks.size(); ++i) disks.push_back(database_->disk(i));
  Devices below;
  Result<void> first;
  for (std::size_t index = 0; index < record.volumes.size(); ++index) {
    const VolumeEntry& entry = record.volumes[index];
    ledgers_.push_back(std::make_unique<SetLedger>(*this, index));
    volumes_.emplace_back();
    mirrors_.push_back(nullptr);
    raid5s_.push_back(nullptr);
    rows_.push_back(nullptr);
    Result<std::vector<Component>> parts = PartsOf(record, index, disks, below);
    Result<void> opened;
    if (!parts) {
      opened = std::unexpected(parts.error());
    } else if (entry.kind == Kind::kMirror) {
      opened = co_await OpenMirror(entry, std::move(*parts));
    } else if (entry.kind == Kind::kRaid5) {
      opened = co_await OpenRaid5(OptionsOf(record, index), std::move(*parts));
    } else {
      opened = OpenRows(entry, *parts);
    }
    if (!opened) {
      Error error = Within(record, index, opened.error());
      if (error.code() != Errc::kUnavailable) co_return std::unexpected(std::move(error));
      if (first) first = std::unexpected(std::move(error));
    }
    below.push_back(volumes_.back().get());
    if (options_.read_only) {
      read_only_.push_back(opened ? std::make_unique<ReadOnly>(*volumes_.back()) : nullptr);
    }
  }
  co_return HasTop(record, below) ? Result<void>() : first;
}

Result<void> VolumeSet::OpenRows(const VolumeEntry& entry, const std::vector<Component>& parts) {
  Result<std::unique_ptr<RowVolume>> rows = MakeRows(reactor_, entry, parts);
  if (!rows) return std::unexpected(rows.error());
  rows_.back() = rows->get();
  volumes_.back() = std::move(*rows);
  return {};
}

Task<Result<void>> VolumeSet::OpenMirror(VolumeEntry entry, std::vector<Component> parts) {
  if (format_) {
    Result<void> formatted = co_await Mirror::Format(&reactor_, parts);
    if (!formatted) co_return formatted;
  }
  for (const Component& part : parts) {
    if (part.device == nullptr) continue;
    ledgers_.back()->set_block_size(part.device->geometry().block_size);
  }
  const MirrorOptions options{.read_policy = entry.read_policy,
                              .write_mode = entry.write_mode,
                              .flush_mode = entry.flush_mode,
                              .auto_resync = options_.auto_resync,
                              .resync_chunk = options_.resync_chunk,
                              .read_only = options_.read_only,
                              .size = entry.size};
  // What fails while a set is made fails the making; there is nothing to record it in.
  Ledger* ledger = format_ ? nullptr : ledgers_.back().get();
  Result<std::unique_ptr<Mirror>> mirror =
      co_await Mirror::Open(&reactor_, std::move(parts), options, ledger);
  if (!mirror) co_return std::unexpected(mirror.error());
  mirrors_.back() = mirror->get();
  volumes_.back() = std::move(*mirror);
  co_return {};
}

// The rebuild of a RAID-5 that lacks a component goes on beside everything else. It ends when there
// is no spare, or with Close.
Task<void> VolumeSet::RebuildBehind(Raid5* raid5) {
  // Whoever told of the failure goes on first.
  co_await reactor_.SleepUntil(reactor_.Now(), nullptr);
  while (!stop_.cancelled() && raid5->columns().NotOkay()) {
    Result<void> rebuilt = co_await raid5->Rebuild({.cancel = &stop_});
    if (!rebuilt) break;
  }
  std::erase(rebuilding_, raid5);
}

void VolumeSet::StartRebuild(std::size_t volume) {
  Raid5* raid5 = raid5s_[volume];
  if (!options_.auto_resync || options_.read_only || raid5 == nullptr || stop_.cancelled()) return;
  if (std::ranges::find(rebuilding_, raid5) != rebuilding_.end()) return;
  rebuilding_.push_back(raid5);
  background_.Spawn(RebuildBehind(raid5));
}

Task<Result<void>> VolumeSet::OpenRaid5(Raid5Options options, std::vector<Component> parts) {
  if (options_.read_only) {
    co_return Fail(Errc::kUnsupported,
                   "its log must be replayed, which writes; assemble the set "
                   "for writing");
  }
  options.zeroed = format_ && zeroed_;
  for (const Component& part : parts) {
    if (part.device == nullptr) continue;
    ledgers_.back()->set_block_size(part.device->geometry().block_size);
  }
  Ledger* ledger = format_ ? nullptr : ledgers_.back().get();
  Result<std::unique_ptr<Raid5>> raid5 =
      co_await Raid5::Open(reactor_, std::move(parts), options, ledger);
  if (!raid5) co_return std::unexpected(raid5.error());
  raid5s_.back() = raid5->get();
  volumes_.back() = std::move(*raid5);
  if (raid5s_.back()->columns().NotOkay()) StartRebuild(raid5s_.size() - 1);
  co_return {};
}

// Those on top first.
Task<Result<void>> VolumeSet::Close() {
  stop_.Cancel();
  co_await background_.Join();
  Result<void> result;
  for (std::size_t i = volumes_.size(); i-- > 0;) {
    Result<void> closed;
    if (mirrors_[i] != nullptr) closed = co_await mirrors_[i]->Close();
    if (raid5s_[i] != nullptr) closed = co_await raid5s_[i]->Close({});
    if (result) result = std::move(closed);
  }
  closed_ = true;
  co_return result;
}

block::BlockDevice* VolumeSet::volume(std::size_t index) {
  return read_only_.empty() ? volumes_[index].get() : read_only_[index].get();
}

Task<Result<void>> VolumeSet::Grow(std::size_t volume, std::vector<block::BlockDevice*> disks) {
  if (options_.read_only || volume >= rows_.size() || rows_[volume] == nullptr) {
    co_return Fail(Errc::kInvalidArgument, "volume " + std::to_string(volume),
                   "cannot grow; a concat or a stripe can, in a set assembled for writing");
  }
  const std::vector<ChildEntry>& held = record().volumes[volume].children;
  std::vector<ChildEntry> children;
  std::vector<Component> parts;
  for (block::BlockDevice* disk : disks) {
    const auto number = static_cast<std::uint32_t>(record().disks.size() + children.size());
    children.push_back({.source = ChildEntry::Source::kDisk,
                        .group = static_cast<std::uint16_t>(held.back().group + 1),
                        .index = number});
    Result<Component> part = Place(record().volumes[volume], children.back(), disk);
    if (!part) co_return std::unexpected(part.error());
    parts.push_back(*part);
    Result<void> blank = co_await StateDatabase::CheckBlank(disk, number);
    if (!blank) co_return blank;
  }
  const Result<void> fit = rows_[volume]->CheckGrow(parts);
  if (!fit) co_return fit;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    Result<std::uint32_t> number = co_await database_->AddDisk({}, disks[i]);
    if (!number) co_return std::unexpected(number.error());
    children[i].index = *number;
  }
  StateDatabase::Change change = [volume, &children](SetRecord& next) {
    std::vector<ChildEntry>& all = next.volumes[volume].children;
    all.insert(all.end(), children.begin(), children.end());
  };
  Result<void> updated = co_await database_->Update({}, change);
  if (!updated) co_return updated;
  co_return rows_[volume]->Grow(parts);
}

Result<void> VolumeSet::CheckSlot(std::size_t volume, std::size_t slot) const {
  const std::string name =
      "volume " + std::to_string(volume) + ", component " + std::to_string(slot);
  const bool known = volume < volumes_.size() && IsRedundant(record().volumes[volume]) &&
                     slot < record().volumes[volume].children.size();
  if (options_.read_only || !known) {
    return Fail(Errc::kInvalidArgument, name,
                "is none of a mirror or RAID-5 in a set that was assembled for writing");
  }
  const State state = record().volumes[volume].children[slot].state;
  if (raid5s_[volume] == nullptr || state == State::kFailed) return {};
  return Fail(Errc::kInvalidArgument, name,
              "is " + std::string(StateName(state)) + "; only a failed one is replaced");
}

// It becomes a spare, and the rebuild takes one.
Task<Result<void>> VolumeSet::GiveToRaid5(std::size_t volume, std::size_t slot,
                                          std::uint32_t disk) {
  StateDatabase::Change change = [volume, slot, disk](SetRecord& next) {
    next.volumes[volume].children[slot] = {.state = State::kFailed};
    next.spares.push_back(disk);
  };
  Result<void> updated = co_await database_->Update({}, change);
  if (updated) StartRebuild(volume);
  co_return updated;
}

Task<Result<void>> VolumeSet::Reattach(std::size_t volume, std::size_t slot) {
  const Result<void> may = CheckSlot(volume, slot);
  if (!may) co_return may;
  ChildEntry child = record().volumes[volume].children[slot];
  if (raid5s_[volume] != nullptr) {
    const bool here =
        child.source == ChildEntry::Source::kDisk && database_->disk(child.index) != nullptr;
    if (here) co_return co_await GiveToRaid5(volume, slot, child.index);
    co_return Fail(Errc::kUnavailable, ChildName(child), "is missing; replace it by another disk");
  }
  Result<void> attached = co_await Attach(volume, slot, child);
  co_return attached;
}

Task<Result<void>> VolumeSet::Replace(std::size_t volume, std::size_t slot,
                                      block::BlockDevice* disk) {
  Result<void> may = CheckSlot(volume, slot);
  if (!may) co_return may;
  ChildEntry child{.source = ChildEntry::Source::kDisk,
                   .index = static_cast<std::uint32_t>(record().disks.size())};
  const Result<Component> part = Place(record().volumes[volume], child, disk);
  if (!part) co_return std::unexpected(part.error());
  if (mirrors_[volume] != nullptr) may = mirrors_[volume]->CheckAttach(slot, *part);
  if (!may) co_return may;
  Result<std::uint32_t> number = co_await database_->AddDisk({}, disk);
  if (!number) co_return std::unexpected(number.error());
  child.index = *number;
  if (raid5s_[volume] != nullptr) co_return co_await GiveToRaid5(volume, slot, child.index);
  Result<void> attached = co_await Attach(volume, slot, child);
  co_return attached;
}

Task<Result<void>> VolumeSet::Attach(std::size_t volume, std::size_t slot, ChildEntry child) {
  block::BlockDevice* device = nullptr;
  if (child.source == ChildEntry::Source::kDisk) device = database_->disk(child.index);
  if (child.source == ChildEntry::Source::kVolume) device = volumes_[child.index].get();
  if (device == nullptr) {
    co_return Fail(Errc::kUnavailable, ChildName(child), "is missing; replace it by another disk");
  }
  child.state = State::kResyncing;
  const Result<Component> part = Place(record().volumes[volume], child, device);
  if (!part) co_return std::unexpected(part.error());
  const Result<void> may = mirrors_[volume]->CheckAttach(slot, *part);
  if (!may) co_return may;
  StateDatabase::Change change = [volume, slot, child](SetRecord& next) {
    next.volumes[volume].children[slot] = child;
  };
  Result<void> updated = co_await database_->Update({}, change);
  if (!updated) co_return updated;
  Result<void> attached = co_await mirrors_[volume]->Attach(slot, *part);
  co_return attached;
}

}  // namespace labrack::volume
