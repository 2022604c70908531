#include "controller/compare/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "controller/compare/environment.h"
#include "controller/compare/gates.h"
#include "controller/compare/match.h"
#include "controller/compare/outcome.h"
#include "controller/compare/rows.h"
#include "controller/compare/series.h"
#include "proto/convert/names.h"

namespace labrack::compare {
namespace {

void NoteTiming(const TrialAssessment& assessment, v1::Report& report) {
  report.set_start_skew_max_ns(std::max(report.start_skew_max_ns(), assessment.start_skew_max_ns));
  if (assessment.overlap < 0) return;
  report.set_overlap_min(report.overlap_min() < 0
                             ? assessment.overlap
                             : std::min(report.overlap_min(), assessment.overlap));
}

void AddSkipped(const std::string& what, const TrialAssessment& assessment, v1::Report& report) {
  v1::SkippedItem& item = *report.add_skipped();
  item.set_what(what);
  item.set_reason(assessment.reason);
  item.set_kind(ExclusionName(assessment.exclusion));
}

void NoteClock(const v1::TrialRecord& trial, v1::Report& report) {
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    const std::string& clock = assignment.result().clock();
    if (clock.empty() || clock == report.clock()) continue;
    report.set_clock(report.clock().empty() ? clock : "mixed");
  }
}

// Counts trials and lists those that stay out.
void AddTrials(const RunView& run, const std::string& prefix, v1::Report& report) {
  for (const TrialView& view : run.trials) {
    NoteClock(*view.trial, report);
    if (view.assessment.valid()) {
      report.set_trials_valid(report.trials_valid() + 1);
      NoteTiming(view.assessment, report);
      continue;
    }
    const v1::TrialSummary& summary = view.trial->summary();
    AddSkipped(fmt::format("{}trial {} ({}, repeat {})", prefix, summary.index() + 1,
                           convert::CellName(*view.cell), summary.repeat() + 1),
               view.assessment, report);
  }
  report.set_trials_planned(report.trials_planned() +
                            static_cast<std::uint32_t>(run.record->plan().trials_size()));
}

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

// What the planner left out because a host cannot do it. Cells that the playbook excludes are no
// fault of a host and are not listed.
void AddUnsupported(const v1::RunRecord& run, v1::Report& report) {
  for (const v1::PlannedSkip& skip : run.plan().skips()) {
    v1::SkippedItem& item = *report.add_skipped();
    item.set_what(fmt::format("{} on {}",
                              skip.cells().empty() ? skip.stack() : Joined(skip.cells()),
                              HostNameOf(run, skip.agent_id())));
    item.set_kind("unsupported");
    item.set_reason(skip.reason());
  }
}

}  // namespace

v1::Report MakeReport(const v1::RunRecord& base, const v1::RunRecord* test) {
  v1::Report report;
  report.set_overlap_min(-1);
  *report.mutable_run() = base.summary();
  const RunView base_view = ViewRun(base);
  if (test == nullptr) {
    report.set_hosts_count(static_cast<std::uint32_t>(base.plan().hosts_size()));
    AddTrials(base_view, "", report);
    AddUnsupported(base, report);
    AddRows(base_view, report);
    AddGates(base_view, report);
    AddEnvironment({&base_view}, report);
    AddWarnings({&base_view}, report);
  } else {
    *report.mutable_test_run() = test->summary();
    report.set_hosts_count(static_cast<std::uint32_t>(test->plan().hosts_size()));
    const RunView test_view = ViewRun(*test);
    AddTrials(base_view, "base ", report);
    AddTrials(test_view, "test ", report);
    AddRows(base_view, test_view, report);
    AddEnvironment({&base_view, &test_view}, report);
    AddWarnings({&base_view, &test_view}, report);
    AddRunWarnings(base_view, test_view, report);
  }
  CloseReport(report);
  return report;
}

}  // namespace labrack::compare
