#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "storage/base/aligned_buffer.h"
#include "storage/base/units.h"
#include "storage/tool/commands.h"
#include "storage/tool/progress.h"

namespace labrack::tool {
namespace {

using nlohmann::ordered_json;
using runtime::Task;
using volume::Component;
using volume::VolumeSet;

constexpr Bytes kCompared = 1_MiB;

// What one redundant volume showed.
struct Found {
  std::string volume;
  std::size_t not_okay = 0;  // components
  std::size_t unsynced = 0;  // regions of a mirror that a crash has left
  std::uint64_t compared = 0;
  std::uint64_t different = 0;
  const char* unit = "";  // of the last two

  bool right() const { return not_okay == 0 && unsynced == 0 && different == 0; }
};

// Each okay submirror against the first one.
Task<Result<void>> CompareMirror(volume::Mirror* mirror, Found* found) {
  found->unit = "MiB";
  std::vector<Component> okay;
  for (std::size_t slot = 0; slot < mirror->slot_count(); ++slot) {
    if (mirror->empty(slot) || mirror->state(slot) != volume::State::kOkay) {
      ++found->not_okay;
    } else {
      okay.push_back(mirror->component(slot));
    }
  }
  found->unsynced = mirror->unsynced_count();
  const block::IoContext io{.purpose = block::Purpose::kResync,
                            .priority = block::PriorityClass::kScrub};
  AlignedBuffer first(kCompared);
  AlignedBuffer other(kCompared);
  const Bytes size = mirror->geometry().size;
  for (Bytes at; at < size && okay.size() > 1; at += kCompared) {
    const std::size_t length = std::min(kCompared, size - at).size();
    const MutableView expected = first.view().first(length);
    Result<void> read = co_await okay[0].device->Read(io, okay[0].data_at + at, expected);
    if (!read) co_return read;
    ++found->compared;
    bool differs = false;
    for (std::size_t i = 1; i < okay.size(); ++i) {
      const MutableView actual = other.view().first(length);
      read = co_await okay[i].device->Read(io, okay[i].data_at + at, actual);
      if (!read) co_return read;
      differs |= !std::ranges::equal(expected, actual);
    }
    if (differs) ++found->different;
  }
  co_return Result<void>{};
}

Task<Result<void>> CompareRaid5(volume::Raid5* raid5, Found* found) {
  found->unit = "lines";
  for (std::size_t column = 0; column < raid5->columns().count(); ++column) {
    if (!raid5->columns().okay(column)) ++found->not_okay;
  }
  if (found->not_okay > 0) co_return Result<void>{};  // there is nothing to compare with
  Result<std::uint64_t> wrong = co_await raid5->CheckParity({}, /*repair=*/false);
  if (!wrong) co_return std::unexpected(wrong.error());
  found->compared = raid5->layout().lines();
  found->different = *wrong;
  co_return Result<void>{};
}

Task<Result<void>> CompareAll(VolumeSet* set, std::vector<Found>* all) {
  for (std::size_t i = 0; i < set->volume_count(); ++i) {
    if (set->mirror(i) == nullptr && set->raid5(i) == nullptr) continue;
    Found& found = all->emplace_back(Found{.volume = VolumeName(set->record(), i)});
    Result<void> done = set->mirror(i) != nullptr ? co_await CompareMirror(set->mirror(i), &found)
                                                  : co_await CompareRaid5(set->raid5(i), &found);
    if (!done) co_return done;
  }
  co_return Result<void>{};
}

std::string TextOf(const Found& found) {
  std::string text = fmt::format("{}: {} {} compared, {} differ", found.volume, found.compared,
                                 found.unit, found.different);
  if (found.not_okay > 0) text += fmt::format(", {} components are not okay", found.not_okay);
  if (found.unsynced > 0) {
    text += fmt::format(", {} regions are not in sync after a crash (`resync` ends that)",
                        found.unsynced);
  }
  return text + "\n";
}

ordered_json JsonOf(const std::vector<Found>& all) {
  ordered_json json{{"volumes", ordered_json::array()}};
  for (const Found& found : all) {
    json["volumes"].push_back({{"volume", found.volume},
                               {"compared", found.compared},
                               {"different", found.different},
                               {"unit", found.unit},
                               {"components_not_okay", found.not_okay},
                               {"regions_not_in_sync", found.unsynced}});
  }
  json["right"] = std::ranges::all_of(all, &Found::right);
  return json;
}

}  // namespace

Bytes RedundantBytes(VolumeSet& set) {
  Bytes all;
  for (std::size_t i = 0; i < set.volume_count(); ++i) {
    if (volume::Mirror* mirror = set.mirror(i); mirror != nullptr) {
      all += mirror->geometry().size * mirror->slot_count();
    }
    if (volume::Raid5* raid5 = set.raid5(i); raid5 != nullptr) {
      all += raid5->layout().interlace() * raid5->layout().lines() * raid5->columns().count();
    }
  }
  return all;
}

ExitCode Check(const SetOptions& options) {
  Result<Disks> disks = Disks::Open(options.disks);
  if (!disks) return FailWith(disks.error());
  Result<std::unique_ptr<VolumeSet>> set = disks->reactor().Run(
      VolumeSet::Assemble(&disks->reactor(), disks->devices(), {.auto_resync = false}));
  if (!set) return FailWith(disks->Named(set.error()));
  std::vector<Found> all;
  Progress progress(*disks, "comparing", RedundantBytes(**set));
  const Result<void> compared = progress.Run(CompareAll(set->get(), &all));
  const Result<void> closed = disks->reactor().Run((*set)->Close());
  if (!compared) return FailWith(disks->Named(compared.error()));
  if (!closed) return FailWith(disks->Named(closed.error()));
  std::string text;
  for (const Found& found : all) text += TextOf(found);
  if (all.empty()) text = "nothing of the set is redundant, so there is nothing to compare\n";
  std::fputs((options.json ? JsonOf(all).dump(2) + "\n" : text).c_str(), stdout);
  return std::ranges::all_of(all, &Found::right) ? ExitCode::kPassed : ExitCode::kFailed;
}

}  // namespace labrack::tool
