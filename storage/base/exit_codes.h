// What the command line's exit code means. It is an interface: scripts and CI branch on it, so a
// number never changes its meaning. Reports carry it too (v1::Report.exit_code), which is why it
// lives here and not in the command line.
#pragma once

namespace labrack {

enum class ExitCode : int {
  kPassed = 0,
  kFailed = 1,           // a gate failed, data did not read back right, or a run compared is worse
  kUsage = 2,            // the words on the command line are wrong
  kPlaybookInvalid = 3,  // the playbook has problems; nothing was started
  kInconclusive = 4,     // only under --strict: the trials do not decide
  kLabFailed = 5,        // an agent lost, a stack not built: hosts, not figures, are the matter
  kRefusedBySafety = 6,  // disk safety said no
  kCancelled = 7,        // somebody cancelled the run
  kWaitTimedOut = 8,     // waiting ended; the run goes on
  kNothingRan = 9,       // the run ended without a single trial having been started
  kNotAuthorised = 10,   // the controller does not let us
  kInterrupted = 130,    // SIGINT, after clean-up
  kTerminated = 143,     // SIGTERM, after clean-up
};

constexpr int ToInt(ExitCode code) { return static_cast<int>(code); }

// What the number means, in a few words: for the last line of a report and for `explain`.
constexpr const char* ExitCodeMeaning(ExitCode code) {
  switch (code) {
    case ExitCode::kPassed:
      return "passed";
    case ExitCode::kFailed:
      return "a verdict or gate failed";
    case ExitCode::kUsage:
      return "usage error";
    case ExitCode::kPlaybookInvalid:
      return "playbook invalid";
    case ExitCode::kInconclusive:
      return "inconclusive";
    case ExitCode::kLabFailed:
      return "the lab failed";
    case ExitCode::kRefusedBySafety:
      return "refused by disk safety";
    case ExitCode::kCancelled:
      return "cancelled";
    case ExitCode::kWaitTimedOut:
      return "waiting ended; the run goes on";
    case ExitCode::kNothingRan:
      return "nothing ran";
    case ExitCode::kNotAuthorised:
      return "not authorised";
    case ExitCode::kInterrupted:
      return "interrupted";
    case ExitCode::kTerminated:
      return "terminated";
  }
  return "unknown";
}

}  // namespace labrack
