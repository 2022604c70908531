// What this host is, what it can build, and what it lends. Collected when the agent starts and from
// time to time while no trial runs; sent to the controller, which plans by it.
#pragma once

#include "labrack/v1/config.pb.h"
#include "labrack/v1/host.pb.h"

namespace labrack::inventory {

// Never fails: what the host does not say stays empty. Runs the tools for their versions the first
// time that it sees them; later calls of this process only look whether the files are the same.
// `metrics_address` is left to the caller.
v1::Inventory Collect(const v1::AgentConfig& config);

}  // namespace labrack::inventory
