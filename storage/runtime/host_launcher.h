// HostLauncher: a thread for each task, the calling thread for the first. For tasks whose
// operations block (host file systems, HostEnv), so that none ever suspends.
#pragma once

#include "storage/runtime/launcher.h"

namespace labrack::runtime {

class HostLauncher final : public Launcher {
 public:
  Result<void> RunAll(std::vector<Task<void>> tasks) override;
};

}  // namespace labrack::runtime
