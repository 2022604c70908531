#include <algorithm>
#include <array>

#include "agent/stack/stack_backend.h"

namespace labrack::stack {

// The table of all host stacks; in the order of the fields of v1::HostStack.
std::span<const StackBackend* const> Backends() {
  static const std::array<const StackBackend*, 5> kAll = {
      &DirBackend(), &Ext4Backend(), &XfsBackend(), &BtrfsBackend(), &ZfsBackend()};
  return kAll;
}

const StackBackend* FindBackend(std::string_view kind) {
  for (const StackBackend* backend : Backends()) {
    if (backend->kind() == kind) return backend;
  }
  return nullptr;
}

std::string_view KindOf(const v1::HostStack& spec) {
  switch (spec.kind_case()) {
    case v1::HostStack::kDir:
      return "dir";
    case v1::HostStack::kExt4:
      return "ext4";
    case v1::HostStack::kXfs:
      return "xfs";
    case v1::HostStack::kBtrfs:
      return "btrfs";
    case v1::HostStack::kZfs:
      return "zfs";
    case v1::HostStack::KIND_NOT_SET:
      return "";
  }
  return "";
}

std::string WhyNoFileSystem(const HostAbility& ability, std::string_view file_system,
                            std::string_view program, std::string_view package) {
  if (std::string reason = WhyNoDisks(ability); !reason.empty()) return reason;
  if (!ability.programs.contains(std::string(program))) {
    return std::string(program) + " is not installed (package " + std::string(package) + ")";
  }
  if (!ability.file_systems.contains(std::string(file_system))) {
    return "this kernel has no " + std::string(file_system);
  }
  return "";
}

}  // namespace labrack::stack
