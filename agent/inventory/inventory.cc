#include "agent/inventory/inventory.h"

#include <filesystem>

#include "agent/inventory/host_facts.h"
#include "agent/inventory/lent_disks.h"
#include "agent/inventory/tools.h"
#include "agent/stack/core_disks.h"
#include "agent/stack/host_ability.h"
#include "storage/base/version.h"

namespace labrack::inventory {
namespace {

void AddHostFacts(v1::Inventory& inventory) {
  inventory.set_host_name(HostName());
  inventory.set_machine_id(MachineId());
  inventory.set_kernel(KernelName());
  inventory.set_os(OsName());
  inventory.set_cpu_model(CpuModel());
  inventory.set_cpu_count(CpuCount());
  inventory.set_cpu_governor(CpuGovernor());
  inventory.set_memory_bytes(MemoryTotal().count());
  inventory.set_virtualization(Virtualization());
  inventory.set_agent_version(std::string(Version()));
  inventory.set_git_commit(std::string(GitCommit()));
}

void AddConfiguration(const v1::AgentConfig& config, v1::Inventory& inventory) {
  *inventory.mutable_labels() = config.labels();
  inventory.set_allow_exec(config.allow_exec());
  for (const std::string& directory : config.directories()) {
    std::error_code ignored;
    if (std::filesystem::is_directory(directory, ignored)) inventory.add_directories(directory);
  }
}

}  // namespace

v1::Inventory Collect(const v1::AgentConfig& config) {
  v1::Inventory inventory;
  AddHostFacts(inventory);
  AddConfiguration(config, inventory);
  for (v1::Tool& tool : FindTools()) *inventory.add_tools() = std::move(tool);
  const stack::HostAbility ability = stack::ProbeHost(stack::ZfsProbe::kTry);
  inventory.set_is_root(ability.is_root);
  inventory.set_loop_devices(stack::WhyNoDisks(ability).empty());
  for (v1::StackSupport& support : stack::SupportOf(ability)) {
    *inventory.add_stack_support() = std::move(support);
  }
  for (v1::ModelledDisk& model : stack::ModelledDiskPresets()) {
    *inventory.add_modelled_disks() = std::move(model);
  }
  if (config.state().empty()) return inventory;
  for (v1::LentDisk& disk : FindLentDisks(config, ability)) {
    *inventory.add_disks() = std::move(disk);
  }
  return inventory;
}

}  // namespace labrack::inventory
