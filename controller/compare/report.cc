#include "controller/compare/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "controller/compare/outcome.h"
#include "controller/compare/validity.h"

namespace labrack::compare {
namespace {

const v1::PlannedCell* CellOf(const v1::RunRecord& run, std::uint32_t index) {
  for (const v1::PlannedCell& cell : run.plan().cells()) {
    if (cell.index() == index) return &cell;
  }
  return nullptr;
}

std::string CellName(const v1::PlannedCell& cell) {
  std::string name = cell.stack().name() + "/" + cell.workload().name();
  if (!cell.parameters_text().empty()) name += " " + cell.parameters_text();
  return name;
}

// Counts trials and lists those that stay out.
void AddTrials(const v1::RunRecord& run, const std::string& prefix, v1::Report& report) {
  for (const v1::TrialRecord& trial : run.trials()) {
    const v1::PlannedCell* cell = CellOf(run, trial.summary().cell());
    if (cell == nullptr) continue;
    const TrialAssessment assessment = AssessTrial(*cell, trial);
    if (assessment.valid()) {
      report.set_trials_valid(report.trials_valid() + 1);
      report.set_start_skew_max_ns(
          std::max(report.start_skew_max_ns(), assessment.start_skew_max_ns));
      if (assessment.overlap >= 0) {
        report.set_overlap_min(report.overlap_min() < 0
                                   ? assessment.overlap
                                   : std::min(report.overlap_min(), assessment.overlap));
      }
      continue;
    }
    v1::SkippedItem& item = *report.add_skipped();
    item.set_what(fmt::format("{}trial {} ({}, repeat {})", prefix, trial.summary().index() + 1,
                              CellName(*cell), trial.summary().repeat() + 1));
    item.set_reason(assessment.reason);
    item.set_kind(ExclusionName(assessment.exclusion));
  }
  report.set_trials_planned(report.trials_planned() +
                            static_cast<std::uint32_t>(run.plan().trials_size()));
}

}  // namespace

v1::Report MakeReport(const v1::RunRecord& base, const v1::RunRecord* test) {
  v1::Report report;
  *report.mutable_run() = base.summary();
  report.set_overlap_min(-1);
  report.set_hosts_count(static_cast<std::uint32_t>(base.plan().hosts_size()));
  AddTrials(base, test == nullptr ? "" : "base: ", report);
  if (test != nullptr) {
    *report.mutable_test_run() = test->summary();
    AddTrials(*test, "test: ", report);
  }
  CloseReport(report);
  return report;
}

}  // namespace labrack::compare
