#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "storage/base/units.h"
#include "storage/tool/commands.h"
#include "storage/tool/progress.h"

namespace labrack::tool {
namespace {

using volume::ChildEntry;
using volume::Kind;
using volume::VolumeEntry;

std::uint32_t PartsMin(Kind kind) {
  switch (kind) {
    case Kind::kConcat:
      return 1;
    case Kind::kStripe:
    case Kind::kMirror:
      return 2;
    case Kind::kRaid5:
      return 3;
  }
  return 1;
}

VolumeEntry EntryOf(Kind kind, const CreateOptions& options, bool top) {
  const bool cut = kind == Kind::kStripe || kind == Kind::kRaid5;
  return {.kind = kind,
          .flush_mode = top ? options.flush : block::FlushMode::kPass,
          .read_policy = options.read_policy,
          .parity_log = options.parity_log,
          .interlace = cut ? options.interlace : Bytes(0)};
}

void AddDisks(std::uint32_t first, std::uint32_t count, VolumeEntry& entry) {
  for (std::uint32_t i = 0; i < count; ++i) {
    entry.children.push_back({.source = ChildEntry::Source::kDisk, .index = first + i});
  }
}

// The same rule as that of playbooks.
Result<std::vector<VolumeEntry>> VolumesOf(const CreateOptions& options) {
  const auto disks = static_cast<std::uint32_t>(options.disks.size());
  VolumeEntry top = EntryOf(options.kind, options, /*top=*/true);
  if (!options.of) {
    AddDisks(0, disks, top);
    return std::vector<VolumeEntry>{top};
  }
  const std::uint32_t each_min = std::max(2U, PartsMin(*options.of));
  const bool mirror = options.kind == Kind::kMirror;
  const std::uint32_t parts = mirror ? options.submirrors : disks / each_min;
  if (parts < PartsMin(options.kind) || disks < parts * each_min) {
    const std::uint32_t min = (mirror ? options.submirrors : PartsMin(options.kind)) * each_min;
    return Fail(Errc::kInvalidArgument, std::string(volume::KindName(options.kind)),
                fmt::format("of {} needs at least {} disks; {} were given",
                            volume::KindName(*options.of), min, disks));
  }
  if (disks % parts != 0) {
    return Fail(Errc::kInvalidArgument, std::string(volume::KindName(options.kind)),
                fmt::format("{} disks cannot be shared equally among {} components; take {} or {}",
                            disks, parts, disks / parts * parts, (disks / parts + 1) * parts));
  }
  std::vector<VolumeEntry> volumes;
  for (std::uint32_t part = 0; part < parts; ++part) {
    volumes.push_back(EntryOf(*options.of, options, /*top=*/false));
    AddDisks(part * (disks / parts), disks / parts, volumes.back());
    top.children.push_back({.source = ChildEntry::Source::kVolume, .index = part});
  }
  volumes.push_back(std::move(top));
  return volumes;
}

// What making it reads and writes: the parity of disks that are not zeros.
Bytes Expected(const CreateOptions& options, const Disks& disks) {
  const bool parity = options.kind == Kind::kRaid5 || options.of == Kind::kRaid5;
  if (!parity || options.zeroed) return {};
  Bytes all;
  for (const block::BlockDevice* disk : disks.devices()) all += disk->geometry().size;
  return all + all / options.disks.size();
}

}  // namespace

ExitCode Create(const CreateOptions& options) {
  Result<std::vector<VolumeEntry>> volumes = VolumesOf(options);
  if (!volumes) return FailWith(volumes.error());
  std::vector<std::string> paths = options.disks;
  paths.insert(paths.end(), options.spares.begin(), options.spares.end());
  Result<Disks> disks = Disks::Open(paths);
  if (!disks) return FailWith(disks.error());
  volume::SetSpec spec{.set_id = options.set_id,
                       .volumes = *std::move(volumes),
                       .overwrite = options.overwrite,
                       .zeroed = options.zeroed};
  for (std::size_t i = options.disks.size(); i < paths.size(); ++i) {
    spec.spares.push_back(static_cast<std::uint32_t>(i));
  }
  Progress progress(*disks, "making the set", Expected(options, *disks));
  const Result<void> made =
      progress.Run(volume::VolumeSet::Create(&disks->reactor(), disks->devices(), std::move(spec)));
  if (!made) return FailWith(disks->Named(made.error()));
  std::fputs(fmt::format("set {} made of {} disks\n", HexId(options.set_id), paths.size()).c_str(),
             stdout);
  return ExitCode::kPassed;
}

}  // namespace labrack::tool
