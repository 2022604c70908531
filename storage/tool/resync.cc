#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "storage/tool/commands.h"
#include "storage/tool/progress.h"

namespace labrack::tool {
namespace {

using runtime::Task;
using volume::ChildEntry;
using volume::State;
using volume::VolumeSet;

// Gives the failed components of a volume back what they were made of, where that is here.
Task<Result<void>> ReattachFailed(VolumeSet* set, std::size_t index) {
  const std::size_t count = set->record().volumes[index].children.size();
  for (std::size_t slot = 0; slot < count; ++slot) {
    const ChildEntry child = set->record().volumes[index].children[slot];
    if (child.state != State::kFailed || child.source == ChildEntry::Source::kNone) continue;
    Result<void> attached = co_await set->Reattach(index, slot);
    // One that is missing stays so.
    const bool missing = !attached && attached.error().code() == Errc::kUnavailable;
    if (!attached && !missing) co_return attached;
  }
  co_return Result<void>{};
}

Task<Result<void>> ResyncOne(VolumeSet* set, std::size_t index) {
  Result<void> attached = co_await ReattachFailed(set, index);
  if (!attached) co_return attached;
  if (set->mirror(index) != nullptr) co_return co_await set->mirror(index)->Resync();
  Result<void> rebuilt = co_await set->raid5(index)->Rebuild({});
  const bool no_spare = !rebuilt && rebuilt.error().code() == Errc::kNotFound;
  if (no_spare) co_return Result<void>{};  // said with the state
  co_return rebuilt;
}

// From the bottom up, so that what stands on others finds them whole.
Task<Result<void>> ResyncAll(VolumeSet* set) {
  for (std::size_t i = 0; i < set->volume_count(); ++i) {
    if (set->volume(i) == nullptr) continue;
    if (set->mirror(i) == nullptr && set->raid5(i) == nullptr) continue;
    Result<void> done = co_await ResyncOne(set, i);
    if (!done) {
      co_return Fail(done.error().code(), VolumeName(set->record(), i), done.error().ToString());
    }
  }
  co_return Result<void>{};
}

}  // namespace

ExitCode Resync(const SetOptions& options) {
  Result<Disks> disks = Disks::Open(options.disks);
  if (!disks) return FailWith(disks.error());
  Result<std::unique_ptr<VolumeSet>> set = disks->reactor().Run(
      VolumeSet::Assemble(&disks->reactor(), disks->devices(), {.auto_resync = false}));
  if (!set) return FailWith(disks->Named(set.error()));
  Progress progress(*disks, "resync", Bytes(0));
  const Result<void> done = progress.Run(ResyncAll(set->get()));
  const volume::SetRecord record = (*set)->record();
  const Result<void> closed = disks->reactor().Run((*set)->Close());
  if (!done) return FailWith(disks->Named(done.error()));
  if (!closed) return FailWith(disks->Named(closed.error()));
  bool whole = true;
  std::string text;
  nlohmann::ordered_json json{{"components_not_okay", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < record.volumes.size(); ++i) {
    for (std::size_t slot = 0; slot < record.volumes[i].children.size(); ++slot) {
      const State state = record.volumes[i].children[slot].state;
      if (state == State::kOkay) continue;
      whole = false;
      text += fmt::format("{}, component {}: {}\n", VolumeName(record, i), slot,
                          volume::StateName(state));
      json["components_not_okay"].push_back(
          {{"volume", i}, {"component", slot}, {"state", volume::StateName(state)}});
    }
  }
  if (whole) text = "everything is in sync\n";
  json["in_sync"] = whole;
  std::fputs((options.json ? json.dump(2) + "\n" : text).c_str(), stdout);
  return whole ? ExitCode::kPassed : ExitCode::kFailed;
}

}  // namespace labrack::tool
