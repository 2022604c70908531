// Gates, the base and filters: everything that names stacks, workloads and steps.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/plan/loaded_playbook.h"
#include "controller/plan/reporter.h"

namespace labrack::plan {

// The names that the playbook gives, also those of parts that are wrong in themselves: a gate on a
// workload with a mistake in it is not a second mistake.
struct GivenNames {
  std::vector<std::string> stacks;
  std::vector<std::string> workloads;
  std::set<std::string> wrong_paths;  // "workloads.pages", "gates[2]": has problems of its own
};

void CheckBase(const LoadedPlaybook& playbook, const GivenNames& names, Reporter& reporter);
void CheckGates(const LoadedPlaybook& playbook, const GivenNames& names, Reporter& reporter);

// "stack", "workload": reports a name that is not there, with the nearest that is. True when it is.
bool CheckName(const Place& place, const std::string& what, const std::string& name,
               const std::vector<std::string>& known, Reporter& reporter);

}  // namespace labrack::plan
