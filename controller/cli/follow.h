// Watching a run to its end. The stream is the lease: while it is open, the controller knows that
// somebody waits. A lost connection is made again for a bounded time; a controller that went on
// without us is found by the run's id.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "controller/cli/clean_up.h"
#include "controller/cli/client.h"
#include "controller/cli/interrupts.h"
#include "controller/cli/progress.h"

namespace labrack::cli {

// How long a lost controller is tried to be reached before waiting is given up.
constexpr Nanoseconds kReconnectLimit = std::chrono::seconds(60);

struct FollowOptions {
  std::string run_id;
  std::optional<Nanoseconds> limit = {};  // of the whole waiting; nothing: for ever
  bool cancel_on_interrupt = false;       // else an interrupt only ends the watching
  Nanoseconds reconnect_limit = kReconnectLimit;
  // How long the run may take to end once we have cancelled it: of its plan (clean_up.h).
  Nanoseconds clean_up_limit = CleanUpLimit(kTearDownDefault);
  // Called at every look; a text is said. An error cancels the run, whose end is waited for as long
  // as there is one to come, and ends the following.
  std::function<Result<std::string>()> tend = {};
};

enum class FollowEnd {
  kRunEnded,
  kTimedOut,        // the limit passed
  kInterrupted,     // and, with cancel_on_interrupt, the run has ended too
  kNotCleanedUp,    // interrupted and cancelled, but the run did not end within the limit
  kConnectionLost,  // not found again within the limit
  kFailed,          // the controller refused (no such run, not authorised), or tend() failed
};

struct FollowResult {
  FollowEnd end = FollowEnd::kRunEnded;
  v1::RunSummary summary;      // the last that was seen
  std::optional<Error> error;  // of kConnectionLost and kFailed
  Nanoseconds clean_up_limit;  // as it was given
};

FollowResult Follow(Client& client, const FollowOptions& options, ProgressView& view,
                    Interrupts& interrupts);

}  // namespace labrack::cli
