// What stands beside every result of this host.
#pragma once

#include <filesystem>

#include "labrack/v1/host.pb.h"

namespace labrack::inventory {

// With the inventory that the agent collected, or (null) a fresh one without lent disks.
// `disks_dir`: where the disks under test are made; its backing device is named. With a known
// inventory no command is run, so that a trial is not disturbed.
v1::Environment CollectEnvironment(const v1::Inventory* known,
                                   const std::filesystem::path& disks_dir);

}  // namespace labrack::inventory
