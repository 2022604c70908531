// The commands of labrack-storage. Each gives the process's exit code and has said what is wrong.
#pragma once

#include <string>
#include <vector>

#include "storage/base/exit_codes.h"
#include "storage/tool/disks.h"
#include "storage/volume/volume_set.h"

namespace labrack::tool {

struct CreateOptions {
  volume::Kind kind = volume::Kind::kConcat;
  std::vector<std::string> disks = {};
  std::vector<std::string> spares = {};
  std::optional<volume::Kind> of = {};  // what stands between the volume and the disks
  std::uint32_t submirrors = 2;         // with `of`, of a mirror; without, all disks are
  Bytes interlace = 64_KiB;
  volume::ParityLogMode parity_log = volume::ParityLogMode::kPrewrite;
  volume::ReadPolicy read_policy = volume::ReadPolicy::kRoundRobin;
  block::FlushMode flush = block::FlushMode::kPass;
  bool zeroed = false;
  bool overwrite = false;
  std::uint64_t set_id = 0;  // drawn; no two sets may share one
};
ExitCode Create(const CreateOptions& options);

struct SetOptions {
  std::vector<std::string> disks = {};
  bool json = false;
};
ExitCode Info(const SetOptions& options);
// Assembles the set and compares all that is redundant.
ExitCode Check(const SetOptions& options);
// Makes whole what can be: gives failed components back their disks or spares, and waits.
ExitCode Resync(const SetOptions& options);

struct BenchOptions {
  SetOptions set;
  Bytes block = 4_KiB;
  std::uint32_t depth = 1;
  Nanoseconds duration = std::chrono::seconds(5);
  bool write = false;  // over what the volume holds
};
// Blocks at random places of the last volume.
ExitCode Bench(const BenchOptions& options);

// --- what they share ---

// Says it on standard error.
ExitCode FailWith(const Error& error);
std::string HexId(std::uint64_t id);
// "volume 2 (mirror)"
std::string VolumeName(const volume::SetRecord& record, std::size_t index);
// How much is compared, or copied at most, to check the set: of all components of what is
// redundant.
Bytes RedundantBytes(volume::VolumeSet& set);

}  // namespace labrack::tool
