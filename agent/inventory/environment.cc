#include "agent/inventory/environment.h"

#include "agent/inventory/host_facts.h"
#include "agent/inventory/inventory.h"
#include "agent/stack/backing.h"

namespace labrack::inventory {

v1::Environment CollectEnvironment(const v1::Inventory* known,
                                   const std::filesystem::path& disks_dir) {
  v1::Environment environment;
  *environment.mutable_host() = known != nullptr ? *known : Collect(v1::AgentConfig());
  environment.mutable_host()->clear_modelled_disks();
  // It is changed by hand more often than anything else here.
  environment.mutable_host()->set_cpu_governor(CpuGovernor());
  *environment.mutable_tools() = environment.host().tools();
  environment.set_boot_id(BootId());
  environment.set_load_average_1m(LoadAverage());
  environment.set_memory_available_bytes(MemoryAvailable().count());
  std::filesystem::path existing = disks_dir;
  std::error_code ignored;
  while (existing.has_relative_path() && !std::filesystem::exists(existing, ignored)) {
    existing = existing.parent_path();
  }
  const Result<stack::Backing> backing = stack::FindBacking(existing);
  if (backing) environment.set_backing_device(backing->Describe());
  return environment;
}

}  // namespace labrack::inventory
