#include "agent/stack/core_disks.h"

#include <variant>

#include "storage/base/check.h"
#include "storage/block/disk/file_disk.h"
#include "storage/block/disk/ram_disk.h"
#include "storage/runtime/sim_reactor.h"

namespace labrack::stack {
namespace {

constexpr Bytes kRamBlock{512};

block::QueueOptions OptionsOf(const v1::DiskQueue& spec, bool rotating) {
  using block::QueueOptions;
  if (spec.policy() != v1::QUEUE_POLICY_LEGACY) {
    return QueueOptions::Classes(rotating ? QueueOptions::Medium::kRotating
                                          : QueueOptions::Medium::kSolidState);
  }
  QueueOptions options = QueueOptions::Legacy();
  if (spec.pending_max() > 0) {
    options.legacy.pending_max = spec.pending_max();
    options.legacy.pending_min = std::min(options.legacy.pending_min, spec.pending_max());
  }
  return options;
}

}  // namespace

Result<void> CoreDisks::OpenFiles(runtime::Reactor& reactor,
                                  std::span<const std::filesystem::path> paths) {
  for (const std::filesystem::path& path : paths) {
    Result<std::unique_ptr<block::FileDisk>> disk = block::FileDisk::Open(reactor, path);
    if (!disk) return std::unexpected(disk.error());
    note_ = (*disk)->note();
    bottoms_.push_back(disk->get());
    real_.push_back(*std::move(disk));
  }
  return {};
}

Result<void> CoreDisks::MakeRam(std::uint32_t count, Bytes size) {
  zeroed_ = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    Result<std::unique_ptr<block::RamDisk>> disk =
        block::RamDisk::Create({.size = size, .block_size = kRamBlock});
    if (!disk) return std::unexpected(disk.error());
    bottoms_.push_back(disk->get());
    real_.push_back(*std::move(disk));
  }
  return {};
}

Result<void> CoreDisks::MakeModelled(runtime::Reactor& reactor, const v1::Disks& disks, Seed seed) {
  const Result<block::DiskPreset> preset = block::FindDiskPreset(disks.model());
  if (!preset) return std::unexpected(preset.error());
  Result<block::ModelledDisks> made = block::MakeModelledDisks(
      reactor, *preset, {.count = disks.count(), .size = Bytes(disks.size()), .seed = seed});
  if (!made) return std::unexpected(made.error());
  zeroed_ = true;
  rotating_ = std::holds_alternative<block::RotatingDiskOptions>(preset->disk);
  modelled_ = *std::move(made);
  for (const std::unique_ptr<block::ModelDisk>& disk : modelled_.disks) {
    bottoms_.push_back(disk.get());
  }
  return {};
}

Result<void> CoreDisks::AddQueues(runtime::Reactor& reactor, const v1::DiskQueue& spec) {
  for (block::BlockDevice* bottom : bottoms_) {
    block::BlockDevice* below = bottom;
    if (spec.policy() != v1::QUEUE_POLICY_NONE) {
      Result<std::unique_ptr<block::IoQueue>> queue =
          block::IoQueue::Create(reactor, *bottom, OptionsOf(spec, rotating_));
      if (!queue) return std::unexpected(queue.error());
      below = queue->get();
      queues_.push_back(*std::move(queue));
    }
    stats_.push_back(std::make_unique<block::StatsDevice>(reactor, *below));
    tops_.push_back(stats_.back().get());
  }
  return {};
}

void CoreDisks::Read(IoReading& into) const {
  for (const auto& disk : stats_) into.disks.push_back(disk->stats());
  for (const auto& queue : queues_) into.queues.push_back(queue->stats());
  for (const auto& disk : modelled_.disks) into.modelled.push_back(disk->counters());
}

std::vector<v1::ModelledDisk> ModelledDiskPresets() {
  runtime::SimReactor reactor(Seed{0});
  std::vector<v1::ModelledDisk> all;
  for (const block::DiskPreset& preset : block::DiskPresets()) {
    const Result<block::ModelledDisks> made = block::MakeModelledDisks(reactor, preset, {});
    LABRACK_CHECK(made.has_value());
    v1::ModelledDisk& model = all.emplace_back();
    model.set_name(std::string(preset.name));
    model.set_summary(std::string(preset.summary));
    model.set_size_bytes(made->disks[0]->geometry().size.count());
  }
  return all;
}

}  // namespace labrack::stack
