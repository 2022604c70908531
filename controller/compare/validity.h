// Whether a trial may enter the statistics. A trial does when every host of its cell measured every
// step without a failed operation, its data read back right, and its figures add up. Everything
// else is kept, listed with its reason, and stays out: partial or damaged results never become
// numbers.
#pragma once

#include <string>
#include <vector>

#include "controller/compare/window.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// Why a trial stays out; the names are those of v1::SkippedItem.kind (which also has "unsupported",
// of cells that were never planned on a host).
enum class Exclusion {
  kNone,
  kPending,    // not ended yet
  kFailed,     // an operation, a phase or the worker failed, or the agent refused
  kLost,       // a host went away, or its result came too late
  kCancelled,  // somebody asked to stop
  kMismatch,   // data read back was not the data written
  kInvalid,    // the figures contradict themselves
};
std::string ExclusionName(Exclusion exclusion);

struct TrialAssessment {
  Exclusion exclusion = Exclusion::kNone;
  std::string reason;  // names the host where one is to blame
  std::int64_t start_skew_max_ns = 0;
  std::int64_t start_spread_ns = 0;
  double overlap = -1;  // smallest over the steps; -1 with one host
  std::uint32_t host_count = 0;

  bool valid() const { return exclusion == Exclusion::kNone; }
};

// Looks at the assignments only, not at trial.summary().overlap and the like, so that the
// controller can fill the summary in from it. A summary that already says "lost" or "cancelled" is
// believed.
TrialAssessment AssessTrial(const v1::PlannedCell& cell, const v1::TrialRecord& trial);

// A step of a trial with the parts of its hosts, in the order of the assignments. Hosts that did
// not measure it are missing. Points into the record.
struct StepHosts {
  std::string step;
  std::vector<HostStep> hosts;
};
// All steps, in the order in which they were first measured. Made once a trial: every metric of
// every scope is then read from it.
std::vector<StepHosts> StepsOfTrial(const v1::TrialRecord& trial);

}  // namespace labrack::compare
