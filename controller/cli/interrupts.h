// SIGINT, SIGTERM and SIGHUP as something to be asked about, so that a run can be cancelled and
// cleaned up instead of being torn. The first asks; the second ends the process at once, after
// saying what may be left.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "storage/base/clock.h"
#include "storage/base/descriptor.h"
#include "storage/base/exit_codes.h"

namespace labrack::cli {

class Interrupts {
 public:
  // Blocks the signals in the calling thread, hence in all that it starts later: make it before any
  // other thread, and one at a time.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The first signal that came.
  std::optional<int> signal() const;
  // 130 or 143; only after a signal.
  ExitCode exit_code() const;
  // Called by a second signal before it ends the process with the first one's code, on the
  // listener's thread.
  void SayWhenForced(std::function<void(ExitCode)> say);
  // Sleeps; ends early, with true, when a signal is there or comes.
  bool WaitFor(Nanoseconds time) const;

 private:
  void Listen();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<int> signal_;
  std::function<void(ExitCode)> forced_;
  Descriptor signals_;
  Descriptor stop_;
  std::thread listener_;
};

}  // namespace labrack::cli
