// Workloads that are commands of the host: fio and exec.
#pragma once

#include <string>
#include <vector>

#include "agent/exec/run.h"
#include "agent/workload/file_work.h"

namespace labrack::workload {

// What is kept of a command's output in its result.
constexpr std::size_t kOutputTailMax = 4096;

// Waits for the step's start, runs the command in the stack's directory, and fills in times, CPU,
// exit code and output of `outcome.result`. outcome.status says whether the command succeeded:
// kTimedOut, kCancelled, or kIo with what it printed.
exec::Outcome RunExternal(const Setup& setup, const StepContext& context,
                          std::vector<std::string> words, Nanoseconds timeout,
                          StepOutcome& outcome);

}  // namespace labrack::workload
