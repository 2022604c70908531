// Launcher: how a set of coroutines runs side by side. HostLauncher (host_launcher.h) gives each a
// thread; a reactor runs them all on its own thread. Whoever writes a client sees no difference.
#pragma once

#include <vector>

#include "storage/runtime/task.h"

namespace labrack::runtime {

class Launcher {
 public:
  virtual ~Launcher() = default;

  // Runs all tasks to their end, side by side, and returns then.
  virtual void RunAll(std::vector<Task<void>> tasks) = 0;
};

}  // namespace labrack::runtime
