#include "agent/worker/stack_access.h"

#include <optional>
#include <utility>

namespace labrack::worker {
namespace {

using runtime::Task;

class HostAccess final : public StackAccess {
 public:
  explicit HostAccess(stack::BuiltStack& stack) : stack_(stack), files_(stack.directory()) {}

  Result<void> Take() { return files_.Take(); }

  fs::FileSystem& files() override { return files_; }
  runtime::Env& env() override { return env_; }
  runtime::Launcher& launcher() override { return launcher_; }
  bool usable() const override { return files_.taken(); }
  Result<void> Sync() override { return runtime::RunToCompletion(files_.SyncAll()); }
  Result<void> DropCaches() override {
    files_.LetGo();
    Result<void> dropped = stack_.DropCaches();
    Result<void> taken = files_.Take();
    return dropped ? taken : dropped;
  }

 private:
  stack::BuiltStack& stack_;
  StackFileSystem files_;
  runtime::HostEnv env_;
  runtime::HostLauncher launcher_;
};

class CoreAccess final : public StackAccess {
 public:
  explicit CoreAccess(stack::CoreStack& core) : core_(core), launcher_(core.reactor()) {}

  fs::FileSystem& files() override { return core_.files(); }
  runtime::Env& env() override { return core_.reactor(); }
  runtime::Launcher& launcher() override { return launcher_; }
  Result<void> Sync() override { return core_.reactor().Run(core_.files().SyncAll()); }
  Result<void> DropCaches() override { return Sync(); }  // there are no caches

 private:
  stack::CoreStack& core_;
  runtime::ReactorLauncher launcher_;
};

}  // namespace

Result<std::unique_ptr<StackAccess>> StackAccess::Open(stack::BuiltStack& stack) {
  if (stack.core() != nullptr) return std::make_unique<CoreAccess>(*stack.core());
  auto access = std::make_unique<HostAccess>(stack);
  if (Result<void> taken = access->Take(); !taken) return std::unexpected(taken.error());
  return access;
}

}  // namespace labrack::worker
