#include "controller/compare/report.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "controller/compare/environment.h"
#include "controller/compare/gates.h"
#include "controller/compare/match.h"
#include "controller/compare/outcome.h"
#include "controller/compare/reasons.h"
#include "controller/compare/rows.h"
#include "controller/compare/series.h"
#include "proto/convert/names.h"

namespace labrack::compare {
namespace {

// What the report says of trials one by one, and of all of them.
class Trials {
 public:
  explicit Trials(std::string prefix) : prefix_(std::move(prefix)) {}

  void Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial,
           const TrialAssessment& assessment) {
    for (const v1::AssignmentRecord& assignment : trial.assignments()) {
      NoteClock(assignment.result().clock(), clock_);
    }
    if (assessment.valid()) {
      ++valid_;
      NoteTiming(assessment.start_skew_max_ns, assessment.overlap);
      return;
    }
    const v1::TrialSummary& summary = trial.summary();
    v1::SkippedItem& item = skipped_.emplace_back();
    item.set_what(fmt::format("{}trial {} ({}, repeat {})", prefix_, summary.index() + 1,
                              convert::CellName(cell), summary.repeat() + 1));
    item.set_reason(assessment.reason);
    item.set_kind(ExclusionName(assessment.exclusion));
  }

  void AddTo(v1::Report& report) const {
    std::string clock = report.clock();
    NoteClock(clock_, clock);
    report.set_clock(clock);
    report.set_trials_valid(report.trials_valid() + valid_);
    report.set_start_skew_max_ns(std::max(report.start_skew_max_ns(), start_skew_max_ns_));
    report.set_overlap_min(Smaller(report.overlap_min(), overlap_min_));
    for (const v1::SkippedItem& item : skipped_) *report.add_skipped() = item;
  }

 private:
  static void NoteClock(const std::string& clock, std::string& all) {
    if (clock.empty() || clock == all) return;
    all = all.empty() ? clock : "mixed";
  }
  // Of overlaps, which are negative where there is none.
  static double Smaller(double a, double b) {
    if (a < 0 || b < 0) return std::max(a, b);
    return std::min(a, b);
  }
  void NoteTiming(std::int64_t start_skew_max_ns, double overlap) {
    start_skew_max_ns_ = std::max(start_skew_max_ns_, start_skew_max_ns);
    overlap_min_ = Smaller(overlap_min_, overlap);
  }

  std::string prefix_;
  std::string clock_;
  std::uint32_t valid_ = 0;
  std::int64_t start_skew_max_ns_ = 0;
  double overlap_min_ = -1;
  std::vector<v1::SkippedItem> skipped_;  // in the order of execution
};

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

// A run without its results.
struct ReportMaker::Digest {
  Digest(const v1::RunRecord& run, std::string prefix) : view(run), trials(std::move(prefix)) {}

  void Add(const v1::TrialRecord& trial) {
    CellView* cell = view.CellOf(trial);
    if (cell == nullptr) return;
    const TrialAssessment assessment = AssessTrial(*cell->cell, trial);
    if (assessment.valid()) {
      cell->Add(trial);
      reasons.Add(*cell->cell, trial);
    }
    trials.Add(*cell->cell, trial, assessment);
    surroundings.Add(*cell->cell, trial);
    if (gates) gates->Add(*cell->cell, trial, assessment);
  }

  RunView view;
  Trials trials;
  Surroundings surroundings;
  Reasons reasons;
  std::optional<Gates> gates;  // points into the view
};

ReportMaker::ReportMaker(const v1::RunRecord& base, const v1::RunRecord* test)
    : base_(std::make_unique<Digest>(base, test == nullptr ? "" : "base ")) {
  if (test == nullptr) {
    base_->gates.emplace(base_->view);
    WantRows(base_->view);
  } else {
    test_ = std::make_unique<Digest>(*test, "test ");
    WantRows(base_->view, test_->view);
  }
}

ReportMaker::~ReportMaker() = default;

void ReportMaker::AddBase(const v1::TrialRecord& trial) { base_->Add(trial); }
void ReportMaker::AddTest(const v1::TrialRecord& trial) { test_->Add(trial); }

v1::Report ReportMaker::Make() const {
  v1::Report report;
  report.set_overlap_min(-1);
  const v1::RunRecord& base = *base_->view.record;
  base_->trials.AddTo(report);
  report.set_trials_planned(static_cast<std::uint32_t>(base.plan().trials_size()));
  if (test_ == nullptr) {
    report.set_hosts_count(static_cast<std::uint32_t>(base.plan().hosts_size()));
    AddUnsupported(base, report);
    AddRows(base_->view, report);
    base_->gates->AddTo(report);
    base_->reasons.AddTo(base_->view, report);
    AddEnvironment({&base_->surroundings}, report);
    AddWarnings({&base_->surroundings}, report);
  } else {
    const v1::RunRecord& test = *test_->view.record;
    report.set_hosts_count(static_cast<std::uint32_t>(test.plan().hosts_size()));
    test_->trials.AddTo(report);
    report.set_trials_planned(report.trials_planned() +
                              static_cast<std::uint32_t>(test.plan().trials_size()));
    AddRows(base_->view, test_->view, report);
    AddEnvironment({&base_->surroundings, &test_->surroundings}, report);
    AddWarnings({&base_->surroundings, &test_->surroundings}, report);
    AddRunWarnings(base_->view, test_->view, report);
  }
  SetRuns(base.summary(), test_ == nullptr ? nullptr : &test_->view.record->summary(), report);
  return report;
}

void SetRuns(const v1::RunSummary& base, const v1::RunSummary* test, v1::Report& report) {
  *report.mutable_run() = base;
  if (test != nullptr) *report.mutable_test_run() = *test;
  CloseReport(report);
}

v1::Report MakeReport(const v1::RunRecord& base, const v1::RunRecord* test) {
  ReportMaker maker(base, test);
  for (const v1::TrialRecord& trial : base.trials()) maker.AddBase(trial);
  if (test != nullptr) {
    for (const v1::TrialRecord& trial : test->trials()) maker.AddTest(trial);
  }
  return maker.Make();
}

}  // namespace labrack::compare
