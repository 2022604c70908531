#include "tests/sim/raid5_world.h"

#include <algorithm>
#include <utility>

#include "storage/runtime/task_group.h"

namespace labrack::sim {
namespace {

using volume::Component;
using volume::ParityLogMode;
using volume::ParityLogShape;
using volume::State;

constexpr Bytes kBlock(BlockModel::kBlock);
constexpr Bytes kHead = 4_KiB;  // before the log, as the state database's

Bytes LogSize(const Raid5Case& drawn) {
  return ParityLogShape::LogSize(drawn.options.parity_log, drawn.log_slots, kBlock,
                                 drawn.options.interlace);
}

std::size_t BlockCount(const Raid5Case& drawn) {
  return drawn.options.interlace.size() * drawn.lines * (drawn.columns - 1) / kBlock.size();
}

Component Part(const Raid5Case& drawn, SimDisk& disk) {
  return {.device = &disk,
          .data_at = Offset((kHead + LogSize(drawn)).count()),
          .data_size = drawn.options.interlace * drawn.lines,
          .log_at = Offset(kHead.count()),
          .log_size = LogSize(drawn)};
}

}  // namespace

std::string Raid5Case::ToString() const {
  return std::to_string(columns) + " columns, interlace " +
         std::to_string(options.interlace.count()) + ", log " +
         volume::ParityLogModeName(options.parity_log) + " of " + std::to_string(log_slots) +
         ", lines " + std::to_string(lines) + (volatile_cache ? ", cache" : "") +
         (cuts ? ", cuts" : "") + (lose_disk_after_cut ? ", lose after cut" : "") +
         (lose_disk ? ", lose disk" : "") + (lose_sectors ? ", lose sectors" : "") +
         (rebuild ? ", rebuild" : "") + (old_disk_is_spare ? " on the old disk" : "");
}

Raid5Case DrawRaid5Case(Random& random, std::optional<ParityLogMode> mode) {
  Raid5Case drawn;
  drawn.columns = 3 + random.Below(4);
  drawn.options.interlace = kBlock * (2 + random.Below(7));
  drawn.options.parity_log =
      mode.value_or(static_cast<ParityLogMode>(random.Below(volume::kParityLogModeCount)));
  drawn.options.volume_id = random.Next();
  drawn.options.zeroed = random.Chance(0.8);
  drawn.log_slots = 1 + random.Below(6);
  drawn.lines = 1 + random.Below(10);
  drawn.volatile_cache = random.Chance(0.7);
  drawn.lives = 2 + random.Below(3);
  drawn.clients = 1 + random.Below(4);
  drawn.ops = 5 + random.Below(40);
  drawn.cuts = random.Chance(0.8);
  drawn.lose_disk_after_cut = random.Chance(0.4);
  drawn.lose_disk = random.Chance(0.4);
  // Without a log, a cut and a sector that is lost are more than the parity can tell.
  drawn.lose_sectors =
      random.Chance(0.3) && (drawn.options.parity_log != ParityLogMode::kNone || !drawn.cuts);
  drawn.rebuild = random.Chance(0.6);
  drawn.old_disk_is_spare = random.Chance(0.5);
  return drawn;
}

Raid5World::Raid5World(const Raid5Case& drawn, Seed seed)
    : case_(drawn),
      reactor_(Derive(seed, "reactor")),
      random_(Derive(seed, "world")),
      ledger_(reactor_, drawn.columns, Derive(seed, "ledger")),
      model_(BlockCount(drawn)) {
  const Bytes size = kHead + LogSize(drawn) + drawn.options.interlace * drawn.lines;
  for (std::size_t i = 0; i <= drawn.columns; ++i) {
    const SimDisk::Options options{.geometry = {.size = size, .block_size = kBlock},
                                   .volatile_cache = drawn.volatile_cache};
    disks_.push_back(std::make_unique<SimDisk>(reactor_, options, Derive(seed, i)));
    if (i < drawn.columns) disk_of_.push_back(i);
  }
}

std::optional<std::string> Raid5World::Run() {
  reactor_.Run(Live());
  if (wrong_) *wrong_ += " [" + case_.ToString() + "]";
  return wrong_;
}

void Raid5World::Blame(std::string what) {
  if (!wrong_) wrong_ = std::move(what);
}

std::size_t Raid5World::ColumnOf(std::size_t block) const {
  const volume::Raid5Layout& layout = volume_->layout();
  const volume::Raid5Layout::Place place = layout.Find(Offset(block * kBlock.size()));
  return layout.DataColumn(place.line, place.index);
}

Task<void> Raid5World::Live() {
  for (std::size_t life = 0; life < case_.lives && !wrong_ && !over_; ++life) {
    const bool cut = case_.cuts && random_.Chance(0.8);
    co_await OneLife(cut);
    if (off_) PowerOn();
  }
}

Task<Result<void>> Raid5World::Assemble() {
  std::vector<Component> components;
  for (std::size_t column = 0; column < case_.columns; ++column) {
    Component part = Part(case_, *disks_[disk_of_[column]]);
    part.state = ledger_.states[column];
    components.push_back(part);
  }
  Result<std::unique_ptr<volume::Raid5>> opened =
      co_await volume::Raid5::Open(reactor_, std::move(components), case_.options, &ledger_);
  if (!opened) co_return std::unexpected(opened.error());
  volume_ = std::move(*opened);
  co_return Result<void>{};
}

Task<void> Raid5World::OneLife(bool cut) {
  Result<void> assembled = co_await Assemble();
  if (!assembled) {
    const bool missing = std::ranges::count(ledger_.states, State::kOkay) <
                         static_cast<std::ptrdiff_t>(case_.columns);
    over_ = assembled.error().code() == Errc::kRefusedBySafety && missing &&
            case_.options.parity_log == ParityLogMode::kNone;
    if (over_) ++refused_count_;
    if (!over_) Blame("not assembled: " + assembled.error().ToString());
    co_return;
  }
  co_await VerifyAll();
  in_flight_.clear();
  runtime::TaskGroup group(reactor_);
  for (std::size_t i = 0; i < case_.clients && !wrong_; ++i) {
    group.Spawn(Client(Seed{random_.Next()}));
  }
  const Seed sabotage{random_.Next()};
  const Nanoseconds after(static_cast<std::int64_t>(random_.Below(case_.ops * 500'000)));
  if (!wrong_) group.Spawn(Sabotage(sabotage));
  if (!wrong_ && cut) group.Spawn(CutPower(after));
  co_await group.Join();
  if (!off_ && !wrong_) {
    co_await VerifyAll();
    if (!volume_->columns().NotOkay()) {
      if (case_.lose_sectors) {  // of parity, which no read has repaired
        Result<std::uint64_t> repaired = co_await volume_->CheckParity({}, true);
        if (!repaired) Blame("parity cannot be repaired: " + repaired.error().ToString());
      }
      Result<std::uint64_t> unequal = co_await volume_->CheckParity({}, false);
      if (!unequal) Blame("parity cannot be checked: " + unequal.error().ToString());
      if (unequal && *unequal > 0)
        Blame("parity of " + std::to_string(*unequal) + " lines is wrong");
    }
  }
  Result<void> closed = co_await volume_->Close({});
  if (!closed && !off_) Blame("not closed: " + closed.error().ToString());
  volume_.reset();
}

Task<void> Raid5World::Write(std::size_t first, std::size_t count) {
  std::vector<std::byte> data(count * kBlock.size());
  const std::uint64_t version = model_.BeginWrite(first, data);
  const bool durable = case_.durable_writes || random_.Chance(0.1);
  const bool logged = case_.options.parity_log != ParityLogMode::kNone;
  const block::IoContext io{.priority = block::PriorityClass::kSyncWrite, .durable = durable};
  Result<void> written = co_await volume_->Write(io, Offset(first * kBlock.size()), data);
  if (off_) co_return;                       // the model was told by the cut
  std::ranges::fill(data, std::byte{0xee});  // it is the caller's again
  model_.EndWrite(first, count, version, written.has_value(), durable || logged);
  if (!written) Blame("write failed: " + written.error().ToString());
}

Task<void> Raid5World::ReadBlocks(std::size_t first, std::size_t count) {
  std::vector<std::byte> data(count * kBlock.size());
  const BlockModel::ReadMark mark = model_.BeginRead(first, count);
  Result<void> read = co_await volume_->Read({}, Offset(first * kBlock.size()), data);
  if (off_) co_return;
  if (!read) {
    Blame("read failed: " + read.error().ToString());
    co_return;
  }
  const std::optional<std::string> wrong = model_.EndRead(first, mark, data);
  if (wrong) Blame(*wrong);
}

// What cannot be told any more is written anew; everything else must be as the model says.
Task<void> Raid5World::VerifyAll() {
  const std::optional<std::size_t> missing = volume_->columns().NotOkay();
  const bool partial = forgive_ || case_.options.parity_log == ParityLogMode::kPartialParity;
  for (std::size_t block = 0; block < model_.block_count() && !wrong_; ++block) {
    const std::size_t column = ColumnOf(block);
    const bool lost =
        partial && in_flight_.contains(block) && (missing == column || faulty_ == column);
    Task<void> look = lost ? Write(block, 1) : ReadBlocks(block, 1);
    co_await std::move(look);
  }
}

Task<void> Raid5World::Client(Seed seed) {
  Random random(seed);
  const std::size_t line = case_.options.interlace.size() * (case_.columns - 1) / kBlock.size();
  for (std::size_t i = 0; i < case_.ops && !off_ && !wrong_; ++i) {
    std::size_t most = random.Chance(0.3) ? line * 2 : 4;
    std::size_t count = 1 + random.Below(std::min(most, model_.block_count()));
    std::size_t first = random.Below(model_.block_count() - count + 1);
    if (random.Chance(0.2)) {
      first -= first % line;
      count = line;
    }
    const std::uint64_t kind = random.Below(16);
    if (kind < 10) {
      if (model_.Writing(first, count)) continue;
      co_await Write(first, count);
    } else if (kind < 15) {
      co_await ReadBlocks(first, count);
    } else {
      const std::vector<std::uint64_t> acked = model_.BeginFlush();
      Result<void> flushed = co_await volume_->Flush({});
      if (off_) co_return;
      if (flushed) model_.EndFlush(acked);
      if (!flushed) Blame("flush failed: " + flushed.error().ToString());
    }
  }
}

// At most one column has faults, and after it was rebuilt none.
Task<void> Raid5World::Sabotage(Seed seed) {
  Random random(seed);
  const Nanoseconds wait(static_cast<std::int64_t>(random.Below(case_.ops * 300'000)));
  co_await SleepFor(&reactor_, wait);
  if (off_) co_return;
  const bool whole = !volume_->columns().NotOkay() && !faulty_;
  if (whole && case_.lose_sectors && random.Chance(0.7)) {
    faulty_ = random.Below(case_.columns);
    SimDisk& disk = *disks_[disk_of_[*faulty_]];
    const Bytes data = case_.options.interlace * case_.lines;
    for (std::size_t i = 0; i < 3; ++i) {
      const Bytes at = kBlock * random.Below(data / kBlock);
      disk.MakeUnreadable(Part(case_, disk).data_at + at, kBlock);
    }
  } else if (whole && case_.lose_disk) {
    faulty_ = random.Below(case_.columns);
    disks_[disk_of_[*faulty_]]->Leave();
    // It fails when it does not take a write; there may be none.
    for (std::size_t i = 0; i < 20 && !off_ && !volume_->columns().NotOkay(); ++i) {
      co_await SleepFor(&reactor_, std::chrono::milliseconds(1));
    }
  }
  co_await RebuildIfMissing();
}

Task<void> Raid5World::RebuildIfMissing() {
  const std::optional<std::size_t> missing = volume_->columns().NotOkay();
  if (!case_.rebuild || !missing || off_) co_return;
  const std::size_t column = *missing;
  const std::size_t gone = disk_of_[column];
  std::size_t spare = gone;
  if (ledger_.states[column] != State::kResyncing) {
    for (std::size_t disk = 0; disk < disks_.size(); ++disk) {
      const bool used = std::ranges::find(disk_of_, disk) != disk_of_.end();
      if (!used && !case_.old_disk_is_spare) spare = disk;
    }
    disks_[spare]->Return();
    ledger_.spare = Part(case_, *disks_[spare]);
  }
  Result<void> rebuilt = co_await volume_->Rebuild({});
  // The slot is the spare's from the moment in which the ledger has it.
  if (ledger_.states[column] != State::kFailed) disk_of_[column] = spare;
  if (off_) co_return;
  if (!rebuilt) Blame("not rebuilt: " + rebuilt.error().ToString());
  faulty_.reset();
}

Task<void> Raid5World::CutPower(Nanoseconds after) {
  co_await SleepFor(&reactor_, after);
  for (std::size_t block = 0; block < model_.block_count(); ++block) {
    if (model_.Writing(block, 1)) in_flight_.insert(block);
  }
  model_.Crash();
  off_ = true;
  ledger_.off = true;
  for (const std::unique_ptr<SimDisk>& disk : disks_) disk->PowerOff();
}

void Raid5World::PowerOn() {
  for (const std::unique_ptr<SimDisk>& disk : disks_) disk->PowerOn(DrawCut(random_));
  off_ = false;
  ledger_.off = false;
  const bool all = std::ranges::count(ledger_.states, State::kOkay) ==
                   static_cast<std::ptrdiff_t>(case_.columns);
  if (faulty_ && ledger_.states[*faulty_] == State::kOkay) {
    // It left without having missed a write that was acknowledged.
    disks_[disk_of_[*faulty_]]->Return();
    if (!case_.lose_sectors) faulty_.reset();
  }
  if (all && !faulty_ && case_.lose_disk_after_cut && random_.Chance(0.7)) {
    faulty_ = random_.Below(case_.columns);
    disks_[disk_of_[*faulty_]]->Leave();
    ledger_.states[*faulty_] = State::kFailed;
  }
}

std::optional<std::string> RunRaid5Seed(Seed seed, std::optional<ParityLogMode> mode) {
  Random random(Derive(seed, "case"));
  Raid5World world(DrawRaid5Case(random, mode), seed);
  return world.Run();
}

}  // namespace labrack::sim
