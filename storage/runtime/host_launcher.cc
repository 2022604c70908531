#include "storage/runtime/host_launcher.h"

#include <atomic>
#include <string>
#include <sys/prctl.h>
#include <system_error>
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

// All threads stand at it until the last one is there: tasks that wait for each other must not
// begin where one of them never will.
enum class Gate { kShut, kOpen, kGivenUp };

void RunWhenOpen(Task<void> task, const std::atomic<Gate>* gate) {
  gate->wait(Gate::kShut);
  if (gate->load() == Gate::kOpen) RunHere(std::move(task));
}

Result<void> StartThreads(std::vector<Task<void>>& tasks, const std::atomic<Gate>& gate,
                          std::vector<std::thread>& threads) {
  for (std::size_t i = 1; i < tasks.size(); ++i) {
    try {
      threads.emplace_back(RunWhenOpen, std::move(tasks[i]), &gate);
    } catch (const std::system_error& error) {
      return Fail(Errc::kExhausted,
                  "thread " + std::to_string(i) + " of " + std::to_string(tasks.size() - 1),
                  "could not be started (" + error.code().message() +
                      "): ask for fewer `clients`, or raise the limit of tasks (`TasksMax=` of "
                      "the agent's unit, `pids.max` of its cgroup, `ulimit -u`)");
    }
  }
  return {};
}

}  // namespace

Result<void> HostLauncher::RunAll(std::vector<Task<void>> tasks) {
  std::atomic<Gate> gate = Gate::kShut;
  std::vector<std::thread> threads;
  threads.reserve(tasks.size());
  const Result<void> started = StartThreads(tasks, gate, threads);
  gate = started ? Gate::kOpen : Gate::kGivenUp;
  gate.notify_all();
  if (started && !tasks.empty()) RunHere(std::move(tasks[0]));
  for (std::thread& thread : threads) thread.join();
  return started;
}

}  // namespace labrack::runtime
