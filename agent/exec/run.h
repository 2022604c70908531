// Run: one command from start to end, with limits on time and output.
#pragma once

#include <string>

#include "agent/exec/command.h"
#include "storage/base/result.h"

namespace labrack::exec {

// From SIGTERM to SIGKILL, and from SIGKILL until the process counts as not killable (it hangs in
// the kernel).
constexpr Nanoseconds kTermToKill = std::chrono::seconds(10);
constexpr Nanoseconds kKillToGivingUp = std::chrono::seconds(60);
// How long output is still awaited after the command's own process has ended, when a descendant
// keeps the pipes open. Then the whole group is killed.
constexpr Nanoseconds kOutputAfterExit = std::chrono::seconds(1);

struct Outcome {
  std::string program;
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool timed_out = false;
  bool cancelled = false;
  std::string output;  // with a line that says how many bytes were left out, if any
  std::string errors;
  std::uint64_t dropped_bytes = 0;  // of both
  v1::CpuUse cpu;
  Nanoseconds wall{0};

  bool ok() const { return exit_code == 0 && !timed_out && !cancelled; }
  // One line for people: "mkfs.xfs: exit code 1: agsize (1b) too small"; "mkfs.xfs: done".
  std::string Describe() const;
};

// Blocks until the command has ended; what it has started is gone afterwards, whatever group or
// session it has moved to. A command that fails,
// is killed, times out or is cancelled is an Outcome; an Error means that it could not be started,
// or (kTimedOut) that it cannot be killed.
Result<Outcome> Run(const Command& command);

// As Run, and anything but exit code 0 is an Error that says what the tool said: kTimedOut,
// kCancelled, or kIo for a failure (kNoSpace when the tool spoke of a full device).
Result<Outcome> RunChecked(const Command& command);

}  // namespace labrack::exec
