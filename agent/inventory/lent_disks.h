// What the configuration lends: space for files, memory, and (never yet) block devices.
#pragma once

#include <vector>

#include "agent/stack/host_ability.h"
#include "labrack/v1/config.pb.h"
#include "labrack/v1/host.pb.h"
#include "storage/base/bytes.h"

namespace labrack::inventory {

// Where the agent makes the files of its disks.
inline constexpr const char* kDisksFolder = "disks";

// Space for file disks below `state`; memory where RAM disks can be made; every block device of the
// configuration with the reason why it is refused.
std::vector<v1::LentDisk> FindLentDisks(const v1::AgentConfig& config,
                                        const stack::HostAbility& ability);

// What may be lent of a file system: all that is free less a tenth, and no more than `limit` (0:
// none).
Bytes Lendable(Bytes free, Bytes limit);

}  // namespace labrack::inventory
