#include "storage/volume/raid5.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "storage/base/plant.h"
#include "storage/base/units.h"
#include "storage/volume/parity_replay.h"

namespace labrack::volume {
namespace {

std::string Size(Bytes bytes) { return FormatBytesExact(bytes); }

bool Present(const Component& component) {
  return component.device != nullptr && component.state == State::kOkay;
}

Result<void> CheckCount(const std::vector<Component>& components) {
  const std::size_t count = components.size();
  if (count < kRaid5ColumnsMin || count > kRaid5ColumnsMax) {
    return Fail(Errc::kInvalidArgument, "RAID-5",
                "has " + std::to_string(count) + " columns; it takes " +
                    std::to_string(kRaid5ColumnsMin) + " to " + std::to_string(kRaid5ColumnsMax));
  }
  const auto present = static_cast<std::size_t>(std::ranges::count_if(components, Present));
  if (count - present > 1) {
    return Fail(Errc::kUnavailable, "RAID-5",
                std::to_string(count - present) + " of its " + std::to_string(count) +
                    " columns are missing; it can do without one");
  }
  return {};
}

// Of any column that is there; they are the same.
Bytes BlockSize(const std::vector<Component>& components) {
  return std::ranges::find_if(components, Present)->device->geometry().block_size;
}

// What each component must have, so that the volume can be made of them. All problems at once.
class Problems {
 public:
  void Add(std::string problem) { text_ += (text_.empty() ? "" : "; ") + std::move(problem); }
  void AddOf(std::size_t column, const std::string& problem) {
    Add("column " + std::to_string(column) + " " + problem);
  }
  Result<void> Verdict() const {
    if (text_.empty()) return {};
    return Fail(Errc::kInvalidArgument, "RAID-5", text_);
  }

 private:
  std::string text_;
};

Result<void> CheckComponents(const std::vector<Component>& components,
                             const Raid5Options& options) {
  Problems problems;
  const std::size_t count = components.size();
  std::vector<Component> present;
  std::ranges::copy_if(components, std::back_inserter(present), Present);
  Result<void> parts = CheckParts("RAID-5", present, {}, Bytes(0));
  if (!parts) return parts;
  const Bytes block = BlockSize(components);
  const Bytes interlace = options.interlace;
  if (!IsAligned(interlace, block) || interlace < block * 2 || interlace > Raid5::kInterlaceMax) {
    problems.Add("interlace " + Size(interlace) + " is not a multiple of the block of " +
                 Size(block) + " from " + Size(block * 2) + " to " + Size(Raid5::kInterlaceMax));
    return problems.Verdict();
  }
  const Bytes log = ParityLogShape::LogSize(options.parity_log, 1, block, interlace);
  for (std::size_t column = 0; column < count; ++column) {
    const Component& component = components[column];
    if (component.data_size < interlace) {
      problems.AddOf(column, "holds " + Size(component.data_size) + " of data; it needs " +
                                 Size(interlace) + " at least");
    }
    if (component.log_size < log) {
      problems.AddOf(column, "has " + Size(component.log_size) + " for the parity log; it needs " +
                                 Size(log) + " at least");
    }
  }
  return problems.Verdict();
}

Raid5Layout LayoutOf(const std::vector<Component>& components, const Raid5Options& options) {
  Bytes data = components[0].data_size;
  for (const Component& component : components) data = std::min(data, component.data_size);
  return Raid5Layout(components.size(), options.interlace, data / options.interlace);
}

}  // namespace

Raid5::Raid5(runtime::Reactor& reactor, std::vector<Component> components,
             const Raid5Options& options, const Raid5Layout& layout, Bytes block,
             std::size_t slot_count, Ledger* ledger)
    : reactor_(reactor),
      layout_(layout),
      geometry_({.size = layout.size(), .block_size = block}),
      flush_mode_(options.flush_mode),
      columns_(reactor, std::move(components), ledger),
      log_(columns_, {.mode = options.parity_log,
                      .volume_id = options.volume_id,
                      .block = block,
                      .interlace = options.interlace,
                      .slot_count = slot_count}),
      locks_(reactor),
      works_(reactor, layout.columns(), block, options.interlace),
      behind_(reactor) {}

Raid5::~Raid5() { LABRACK_CHECK(behind_.running_count() == 0); }

Bytes Raid5::DefaultLogSize(ParityLogMode mode, const block::Geometry& component, Bytes interlace) {
  constexpr std::uint64_t kShare = 32;
  constexpr std::uint64_t kSlotsMin = 10;  // fewer are of little use
  const Bytes slot = component.block_size + interlace;
  const std::uint64_t slots = std::clamp<std::uint64_t>(component.size / kShare / slot, kSlotsMin,
                                                        ParityLogShape::kSlotsMax);
  return ParityLogShape::LogSize(mode, slots, component.block_size, interlace);
}

Result<block::Geometry> Raid5::Plan(const std::vector<Component>& components,
                                    const Raid5Options& options) {
  Result<void> checked = CheckCount(components);
  if (checked) checked = CheckComponents(components, options);
  if (!checked) return std::unexpected(checked.error());
  return block::Geometry{.size = LayoutOf(components, options).size(),
                         .block_size = BlockSize(components)};
}

Task<Result<std::unique_ptr<Raid5>>> Raid5::Open(runtime::Reactor& reactor,
                                                 std::vector<Component> components,
                                                 Raid5Options options, Ledger* ledger) {
  const Result<block::Geometry> planned = Plan(components, options);
  if (!planned) co_return std::unexpected(planned.error());
  for (Component& component : components) {
    if (component.device == nullptr) component.state = State::kFailed;
  }
  const Bytes block = planned->block_size;
  Bytes log = components[0].log_size;
  for (const Component& component : components) log = std::min(log, component.log_size);
  const Raid5Layout layout = LayoutOf(components, options);
  const std::size_t slots =
      ParityLogShape::SlotCount(options.parity_log, log, block, options.interlace);
  std::unique_ptr<Raid5> volume(
      new Raid5(reactor, std::move(components), options, layout, block, slots, ledger));
  Result<void> recovered = co_await volume->Recover(options);
  if (!recovered) co_return std::unexpected(recovered.error());
  co_return volume;
}

Task<Result<void>> Raid5::Recover(const Raid5Options& options) {
  Result<ReplayReport> replayed = co_await ReplayParityLog(columns_, layout_, log_.shape());
  if (!replayed) co_return std::unexpected(replayed.error());
  const bool fresh = !replayed->head;
  const bool unclean = fresh ? !options.zeroed : replayed->head->in_use;
  const bool degraded = columns_.NotOkay().has_value();
  const bool forced = options.force || LABRACK_PLANTED(kDirtyDegradedStarted);
  if (unclean && degraded && !forced) {
    co_return Fail(Errc::kRefusedBySafety, "RAID-5",
                   "column " + std::to_string(*columns_.NotOkay()) +
                       " is missing, and parity may be wrong since the volume was not closed: what "
                       "it held cannot be told from what was being written. Bring the column back");
  }
  LogHead head = replayed->head.value_or(LogHead{.mode = log_.shape().mode});
  log_.Adopt(head, replayed->next_id);
  if (unclean && !degraded) {
    Result<std::uint64_t> repaired =
        co_await CheckParity({.priority = block::PriorityClass::kScrub}, true);
    if (!repaired) co_return std::unexpected(repaired.error());
    Result<void> flushed = co_await columns_.Flush({});
    if (!flushed) co_return flushed;
  }
  co_return co_await log_.Seal(false);
}

Task<Result<void>> Raid5::Flush(block::IoContext io) {
  switch (flush_mode_) {
    case block::FlushMode::kPass:
      break;
    case block::FlushMode::kRefuse:
      co_return FlushRefused("RAID-5");
    case block::FlushMode::kDrop:
      co_return Result<void>{};
  }
  const bool durable_already = log_.shape().mode == ParityLogMode::kPrewrite;
  if (durable_already) co_return columns_.Usable();
  co_return co_await columns_.Flush(io);
}

Task<Result<void>> Raid5::Close(block::IoContext io) {
  co_await behind_.Join();
  Result<void> usable = columns_.Usable();
  if (!usable) co_return usable;
  Result<void> flushed = co_await columns_.Flush(io);
  if (!flushed) co_return flushed;
  co_return co_await log_.Seal(false);
}

}  // namespace labrack::volume
