// How the agent ends a trial whose worker has not done it itself: from what the spool holds comes a
// result that says what happened, with the steps that were finished.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/worker/spool/record.h"
#include "agent/worker/trial_files.h"
#include "labrack/v1/fleet.pb.h"
#include "labrack/v1/plan.pb.h"
#include "storage/base/result.h"

namespace labrack::session {

// What became of the worker.
struct WorkerEnd {
  bool started = true;
  std::string how;                         // "signal 9 (Killed)"
  std::optional<std::string> stop_reason;  // it was asked to stop before
  bool timed_out = false;                  // killed since a phase did not end
  bool host_rebooted = false;
  bool unkillable = false;   // it still hangs in the kernel
  std::string held_up = {};  // why this could not be written at first: "no space left"
};

// How the undoing went; empty: nothing is left.
struct CleanUp {
  std::string left;
};

// Pure: the result of a trial that got as far as `events` say, in the size of any other.
v1::AssignmentResult ResultOfDeadTrial(const v1::AssignmentSpec& spec, const std::string& agent_id,
                                       const std::string& host_name, const WorkerEnd& end,
                                       const CleanUp& clean_up,
                                       const std::vector<v1::EventRecord>& events);

// Adds that result to the spool and seals it, under the trial's lock: kBusy while a worker lives.
// One that was killed and hangs in the kernel keeps the lock, and writes nothing any more. Fine
// when it is sealed already.
Result<void> EndSpool(const worker::TrialFiles& files, const v1::AssignmentSpec& spec,
                      const std::string& agent_id, const std::string& host_name,
                      const WorkerEnd& end, const CleanUp& clean_up);

}  // namespace labrack::session
