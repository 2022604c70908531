#include "storage/runtime/host_launcher.h"

#include <sys/prctl.h>
#include <thread>

namespace labrack::runtime {
namespace {

// The kernel may round a sleep up by this much; its default of 50 us would be seen in the response
// times of an open loop.
constexpr unsigned long kTimerSlackNanoseconds = 1;

void RunHere(Task<void> task) {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds, 0, 0, 0);
  RunToCompletion(std::move(task));
}

}  // namespace

void HostLauncher::RunAll(std::vector<Task<void>> tasks) {
  std::vector<std::thread> threads;
  threads.reserve(tasks.size());
  for (std::size_t i = 1; i < tasks.size(); ++i) threads.emplace_back(RunHere, std::move(tasks[i]));
  if (!tasks.empty()) RunHere(std::move(tasks[0]));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace labrack::runtime
