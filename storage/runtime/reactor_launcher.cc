#include "storage/runtime/reactor_launcher.h"

#include <utility>

#include "storage/runtime/task_group.h"

namespace labrack::runtime {
namespace {

Task<void> RunTogether(Reactor* reactor, std::vector<Task<void>>* tasks) {
  TaskGroup group(*reactor);
  for (Task<void>& task : *tasks) group.Spawn(std::move(task));
  co_await group.Join();
}

}  // namespace

Result<void> ReactorLauncher::RunAll(std::vector<Task<void>> tasks) {
  reactor_.Run(RunTogether(&reactor_, &tasks));
  return {};
}

}  // namespace labrack::runtime
