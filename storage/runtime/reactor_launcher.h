// ReactorLauncher: all tasks on one reactor, on the calling thread. For tasks that wait by their
// reactor: what runs on our own storage core, in real or in virtual time.
#pragma once

#include "storage/runtime/launcher.h"
#include "storage/runtime/reactor.h"

namespace labrack::runtime {

class ReactorLauncher final : public Launcher {
 public:
  // It outlives this, and runs nothing else meanwhile.
  explicit ReactorLauncher(Reactor& reactor) : reactor_(reactor) {}

  Result<void> RunAll(std::vector<Task<void>> tasks) override;

 private:
  Reactor& reactor_;
};

}  // namespace labrack::runtime
