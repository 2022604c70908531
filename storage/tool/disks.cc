#include "storage/tool/disks.h"

#include <algorithm>
#include <utility>

#include "storage/runtime/open_reactor.h"

namespace labrack::tool {

Result<Disks> Disks::Open(std::vector<std::string> paths) {
  Result<runtime::OpenedReactor> opened = runtime::OpenReactor(runtime::ReactorKind::kBest);
  if (!opened) return std::unexpected(opened.error());
  Disks disks;
  disks.reactor_ = std::move(opened->reactor);
  disks.paths_ = std::move(paths);
  for (const std::string& path : disks.paths_) {
    Result<std::unique_ptr<block::FileDisk>> file = block::FileDisk::Open(*disks.reactor_, path);
    if (!file) return std::unexpected(file.error());
    disks.stats_.push_back(std::make_unique<block::StatsDevice>(*disks.reactor_, **file));
    disks.files_.push_back(*std::move(file));
  }
  return disks;
}

std::vector<block::BlockDevice*> Disks::devices() const {
  std::vector<block::BlockDevice*> all;
  for (const auto& disk : stats_) all.push_back(disk.get());
  return all;
}

const std::string& Disks::NameOf(const block::BlockDevice* device) const {
  static const std::string kMissing = "missing";
  for (std::size_t i = 0; i < stats_.size(); ++i) {
    if (stats_[i].get() == device) return paths_[i];
  }
  return kMissing;
}

Error Disks::Named(const Error& error) const {
  for (std::size_t i = paths_.size(); i-- > 0;) {
    if (error.subject() == "disk " + std::to_string(i)) {
      return Error(error.code(), paths_[i], error.note());
    }
  }
  return error;
}

block::DeviceStats Disks::Stats() const {
  block::DeviceStats sum;
  for (const auto& disk : stats_) sum.Merge(disk->stats());
  return sum;
}

}  // namespace labrack::tool
