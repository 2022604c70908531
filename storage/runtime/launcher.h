// Launcher: how a set of coroutines runs side by side. HostLauncher (host_launcher.h) gives each a
// thread; a reactor runs them all on its own thread. Whoever writes a client sees no difference.
#pragma once

#include <vector>

#include "storage/base/result.h"
#include "storage/runtime/task.h"

namespace labrack::runtime {

class Launcher {
 public:
  virtual ~Launcher() = default;

  // Runs all tasks to their end, side by side, and returns then. On an error (kExhausted: the
  // host has no room for so many threads) none of them has begun.
  virtual Result<void> RunAll(std::vector<Task<void>> tasks) = 0;
};

}  // namespace labrack::runtime
