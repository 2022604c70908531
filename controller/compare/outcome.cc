#include "controller/compare/outcome.h"

#include <algorithm>

#include "storage/base/exit_codes.h"

namespace labrack::compare {
namespace {

struct Closing {
  const char* verdict;
  ExitCode exit_code;
  ExitCode exit_code_strict;
};

bool AnySkipped(const v1::Report& report, std::initializer_list<const char*> kinds) {
  return std::ranges::any_of(report.skipped(), [&](const v1::SkippedItem& item) {
    return std::ranges::find(kinds, item.kind()) != kinds.end();
  });
}

bool AnyGate(const v1::Report& report, const char* outcome) {
  return std::ranges::any_of(report.gates(),
                             [&](const v1::GateResult& gate) { return gate.outcome() == outcome; });
}

// Rows over all hosts decide; those of single hosts explain.
bool AnyRow(const v1::Report& report, v1::ComparisonVerdict verdict) {
  return std::ranges::any_of(report.rows(), [&](const v1::ComparisonRow& row) {
    return row.host().empty() && row.verdict() == verdict;
  });
}

bool InState(const v1::Report& report, std::initializer_list<v1::RunState> states) {
  const auto is_one = [&](const v1::RunSummary& run) {
    return std::ranges::find(states, run.state()) != states.end();
  };
  return is_one(report.run()) || (report.has_test_run() && is_one(report.test_run()));
}

// More trials, or a base, would tell. A row that is no primary one and lacks values (a p99 of too
// few operations) stays as it is, however many trials there are.
bool AnyOpenRow(const v1::Report& report) {
  return AnyRow(report, v1::COMPARISON_VERDICT_INCONCLUSIVE) ||
         std::ranges::any_of(report.rows(), [](const v1::ComparisonRow& row) {
           return row.host().empty() && row.primary() &&
                  row.verdict() == v1::COMPARISON_VERDICT_NOT_JUDGED;
         });
}

Closing Close(const v1::Report& report) {
  if (InState(report, {v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING})) {
    return {"INCONCLUSIVE", ExitCode::kWaitTimedOut, ExitCode::kWaitTimedOut};
  }
  // Wrong data is the gravest thing that a storage test can find; no abort hides it.
  if (AnySkipped(report, {"mismatch"})) return {"FAILED", ExitCode::kFailed, ExitCode::kFailed};
  if (InState(report, {v1::RUN_STATE_CANCELLED, v1::RUN_STATE_CANCELLING})) {
    return {"CANCELLED", ExitCode::kCancelled, ExitCode::kCancelled};
  }
  const bool worse_run = report.has_test_run() && AnyRow(report, v1::COMPARISON_VERDICT_WORSE);
  if (AnyGate(report, "FAILED") || worse_run) {
    return {"FAILED", ExitCode::kFailed, ExitCode::kFailed};
  }
  const bool lab_failed = AnySkipped(report, {"lost", "failed", "invalid"}) ||
                          AnyGate(report, "INVALID") || InState(report, {v1::RUN_STATE_FAILED});
  if (lab_failed) return {"INVALID", ExitCode::kLabFailed, ExitCode::kLabFailed};
  const bool compared_nothing = report.has_test_run() && report.rows().empty();
  if (report.trials_valid() == 0 || compared_nothing) {
    return {"INVALID", ExitCode::kNothingRan, ExitCode::kNothingRan};
  }
  if (AnyGate(report, "INCONCLUSIVE")) {
    return {"INCONCLUSIVE", ExitCode::kPassed, ExitCode::kInconclusive};
  }
  const bool is_open = AnyOpenRow(report) || AnySkipped(report, {"different"});
  if (report.gates().empty() && is_open) {
    return {"PASSED", ExitCode::kPassed, ExitCode::kInconclusive};
  }
  return {"PASSED", ExitCode::kPassed, ExitCode::kPassed};
}

}  // namespace

void CloseReport(v1::Report& report) {
  const Closing closing = Close(report);
  report.set_verdict(closing.verdict);
  report.set_exit_code(ToInt(closing.exit_code));
  report.set_exit_code_strict(ToInt(closing.exit_code_strict));
}

}  // namespace labrack::compare
