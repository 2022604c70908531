#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "storage/base/units.h"
#include "storage/tool/commands.h"

namespace labrack::tool {
namespace {

using nlohmann::ordered_json;
using volume::ChildEntry;
using volume::SetRecord;
using volume::StateDatabase;

std::string ChildText(const ChildEntry& child) {
  switch (child.source) {
    case ChildEntry::Source::kNone:
      return "none";
    case ChildEntry::Source::kDisk:
      return fmt::format("disk {}", child.index);
    case ChildEntry::Source::kVolume:
      return fmt::format("volume {}", child.index);
  }
  return "";
}

ordered_json JsonOf(const volume::VolumeEntry& volume) {
  ordered_json json{{"kind", volume::KindName(volume.kind)}};
  if (volume.interlace > Bytes(0)) json["interlace"] = volume.interlace.count();
  if (volume.kind == volume::Kind::kRaid5) {
    json["parity_log"] = volume::ParityLogModeName(volume.parity_log);
  }
  json["components"] = ordered_json::array();
  for (const ChildEntry& child : volume.children) {
    json["components"].push_back(
        {{"of", ChildText(child)}, {"state", volume::StateName(child.state)}});
  }
  return json;
}

ordered_json JsonOf(const StateDatabase& set, const Disks& disks, const Result<void>& can_start) {
  const SetRecord& record = set.record();
  ordered_json json{{"set", HexId(record.set_id)}, {"generation", record.generation}};
  json["disks"] = ordered_json::array();
  for (std::uint32_t i = 0; i < record.disks.size(); ++i) {
    json["disks"].push_back(
        {{"number", i},
         {"id", HexId(record.disks[i].id)},
         {"size", record.disks[i].size.count()},
         {"current", record.disks[i].counts},
         {"path", set.disk(i) == nullptr ? ordered_json(nullptr)
                                         : ordered_json(disks.NameOf(set.disk(i)))}});
  }
  json["volumes"] = ordered_json::array();
  for (const volume::VolumeEntry& volume : record.volumes)
    json["volumes"].push_back(JsonOf(volume));
  json["spares"] = record.spares;
  json["can_start"] = can_start.has_value();
  json["why_not"] = can_start ? ordered_json(nullptr) : ordered_json(can_start.error().ToString());
  return json;
}

std::string TextOf(const StateDatabase& set, const Disks& disks, const Result<void>& can_start) {
  const SetRecord& record = set.record();
  std::string text = fmt::format("set {}\n", HexId(record.set_id));
  for (std::uint32_t i = 0; i < record.disks.size(); ++i) {
    text += fmt::format("  disk {}  {}  {}{}\n", i, FormatBytes(record.disks[i].size),
                        disks.NameOf(set.disk(i)), record.disks[i].counts ? "" : "  (stale)");
  }
  for (std::size_t i = 0; i < record.volumes.size(); ++i) {
    const volume::VolumeEntry& volume = record.volumes[i];
    text += "  " + VolumeName(record, i);
    if (volume.interlace > Bytes(0)) text += ", interlace " + FormatBytesExact(volume.interlace);
    if (volume.kind == volume::Kind::kRaid5) {
      text += fmt::format(", parity log {}", volume::ParityLogModeName(volume.parity_log));
    }
    text += "\n";
    for (const ChildEntry& child : volume.children) {
      text += fmt::format("    {}: {}\n", ChildText(child), volume::StateName(child.state));
    }
  }
  for (const std::uint32_t spare : record.spares) text += fmt::format("  spare: disk {}\n", spare);
  text += can_start ? "  can be assembled\n"
                    : "  cannot be assembled: " + can_start.error().ToString() + "\n";
  return text;
}

}  // namespace

ExitCode Info(const SetOptions& options) {
  Result<Disks> disks = Disks::Open(options.disks);
  if (!disks) return FailWith(disks.error());
  Result<std::unique_ptr<StateDatabase>> found =
      disks->reactor().Run(StateDatabase::Find(&disks->reactor(), disks->devices(), std::nullopt));
  if (!found) return FailWith(disks->Named(found.error()));
  const Result<void> can_start = (*found)->CheckVoices(/*read_only=*/false);
  const std::string text = options.json ? JsonOf(**found, *disks, can_start).dump(2) + "\n"
                                        : TextOf(**found, *disks, can_start);
  std::fputs(text.c_str(), stdout);
  return ExitCode::kPassed;
}

}  // namespace labrack::tool
