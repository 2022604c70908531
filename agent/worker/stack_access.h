// StackAccess: how a trial reaches its stack, be it a directory of the host or a volume of our own
// core: the files, whose time it is, and how clients run.
#pragma once

#include <memory>

#include "agent/stack/core_stack.h"
#include "agent/stack/stack.h"
#include "agent/worker/stack_file_system.h"
#include "storage/runtime/host_env.h"
#include "storage/runtime/host_launcher.h"
#include "storage/runtime/reactor_launcher.h"

namespace labrack::worker {

class StackAccess {
 public:
  // `stack` outlives it.
  static Result<std::unique_ptr<StackAccess>> Open(stack::BuiltStack& stack);
  virtual ~StackAccess() = default;

  // Everything that the workload opened is closed before it goes.
  virtual fs::FileSystem& files() = 0;
  virtual runtime::Env& env() = 0;
  virtual runtime::Launcher& launcher() = 0;
  // False after a DropCaches that could not take the stack again.
  virtual bool usable() const { return true; }
  // Everything written is on the medium.
  virtual Result<void> Sync() = 0;
  // And nothing of it is in memory. No file is open.
  virtual Result<void> DropCaches() = 0;
};

}  // namespace labrack::worker
