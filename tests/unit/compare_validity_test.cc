// Goal: nothing partial, damaged, late or wrong enters the statistics, and the reason names the
// host and the fact. Method: a valid made-up trial, damaged in one way a test.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/compare/report.h"
#include "controller/compare/validity.h"
#include "storage/base/exit_codes.h"
#include "tests/unit/run_record_builder.h"

namespace labrack::compare {
namespace {

using ::testing::HasSubstr;

class CompareValidityTest : public ::testing::Test {
 protected:
  CompareValidityTest() {
    run_.AddHost("st-01");
    run_.AddHost("st-02");
    run_.AddCell("ext4", RunRecordBuilder::SyncPages("pages"), {RunRecordBuilder::PagesStep()});
    trial_ = &run_.AddTrial({.cell = 0, .repeat = 0, .rate = 1000});
  }
  v1::AssignmentRecord& assignment(int host) { return *trial_->mutable_assignments(host); }
  v1::AssignmentResult& result(int host) { return *assignment(host).mutable_result(); }
  TrialAssessment Assess() { return AssessTrial(run_.record().plan().cells(0), *trial_); }

  RunRecordBuilder run_{"made-up"};
  v1::TrialRecord* trial_;
};

TEST_F(CompareValidityTest, WholeTrialIsValidAndHasSkewAndOverlap) {
  const TrialAssessment assessment = Assess();
  EXPECT_TRUE(assessment.valid()) << assessment.reason;
  EXPECT_EQ(assessment.host_count, 2u);
  EXPECT_EQ(assessment.start_skew_max_ns, 300'000);
  EXPECT_EQ(assessment.start_spread_ns, 200'000);
  EXPECT_NEAR(assessment.overlap, 1 - 0.2e-3 / 10, 1e-9);
}

TEST_F(CompareValidityTest, VirtualTimeIsTheSameOnAllHostsWhateverTheirClocks) {
  *result(1).mutable_steps() = result(0).steps();
  EXPECT_FALSE(Assess().valid());  // their clocks are a thousand seconds apart
  result(0).set_clock("virtual");
  result(1).set_clock("virtual");
  EXPECT_TRUE(Assess().valid()) << Assess().reason;
  EXPECT_DOUBLE_EQ(Assess().overlap, 1);
}

TEST_F(CompareValidityTest, SkewIsThatOfTheStartNotOfTheMeasurement) {
  // A second of warm-up before the measurement: the clients of st-02 woke 4 ms late.
  for (int host = 0; host < 2; ++host) {
    v1::StepResult& step = *result(host).mutable_steps(0);
    v1::PhaseRecord& measure = *result(host).mutable_phases(1);
    measure.set_begin_mono_ns(step.intended_start_mono_ns() + 1'000'000'000);
    step.set_measure_begin_mono_ns(measure.begin_mono_ns() + (host == 1 ? 4'000'000 : 0));
    v1::PhaseRecord& warm_up = *result(host).add_phases();
    warm_up = measure;
    warm_up.set_phase(v1::PHASE_WARM_UP);
    warm_up.set_begin_mono_ns(step.intended_start_mono_ns());
  }
  EXPECT_TRUE(Assess().valid()) << Assess().reason;
  EXPECT_EQ(Assess().start_skew_max_ns, 4'000'000);
  // A command (no intervals) that measured only after a lay-out of its own started with its phase.
  for (int host = 0; host < 2; ++host) {
    result(host).mutable_phases()->RemoveLast();
    result(host).mutable_phases(1)->set_begin_mono_ns(
        result(host).steps(0).intended_start_mono_ns() + 50'000);
    result(host).mutable_steps(0)->clear_intervals();
  }
  EXPECT_EQ(Assess().start_skew_max_ns, 50'000);
}

TEST_F(CompareValidityTest, FailedOperationKeepsTheTrialOut) {
  v1::OperationResult& operation = *result(1).mutable_steps(0)->mutable_operations(0);
  operation.set_error_count(2);
  operation.set_first_error("write /t/f: no space");
  EXPECT_EQ(Assess().exclusion, Exclusion::kFailed);
  EXPECT_THAT(Assess().reason, HasSubstr("st-02: 2 of 10002 `write` operations"));
  EXPECT_THAT(Assess().reason, HasSubstr("no space"));
}

TEST_F(CompareValidityTest, MismatchIsToldBeforeAFailedMeasurement) {
  result(0).set_verified(v1::VERIFY_OUTCOME_MISMATCHED);
  result(0).set_verify_detail("byte 4096 of f");
  result(0).mutable_measurement()->set_outcome(v1::OUTCOME_FAILED);
  EXPECT_EQ(Assess().exclusion, Exclusion::kMismatch);
}

TEST_F(CompareValidityTest, EveryOutcomeButOkKeepsTheTrialOut) {
  const std::pair<v1::Outcome, Exclusion> expected[] = {
      {v1::OUTCOME_UNSPECIFIED, Exclusion::kFailed},  {v1::OUTCOME_FAILED, Exclusion::kFailed},
      {v1::OUTCOME_CANCELLED, Exclusion::kCancelled}, {v1::OUTCOME_CRASHED, Exclusion::kFailed},
      {v1::OUTCOME_LOST, Exclusion::kLost},           {v1::OUTCOME_NOT_STARTED, Exclusion::kFailed},
      {v1::OUTCOME_TIMED_OUT, Exclusion::kFailed},    {v1::OUTCOME_REFUSED, Exclusion::kFailed}};
  for (const auto& [outcome, exclusion] : expected) {
    result(0).mutable_measurement()->set_outcome(outcome);
    EXPECT_EQ(Assess().exclusion, exclusion) << v1::Outcome_Name(outcome);
  }
}

TEST_F(CompareValidityTest, FailedCleanUpDoesNotVoidAMeasurement) {
  result(0).mutable_clean_up()->set_outcome(v1::OUTCOME_FAILED);
  EXPECT_TRUE(Assess().valid());
}

TEST_F(CompareValidityTest, MissingPhaseStepHostOrResultKeepsTheTrialOut) {
  v1::AssignmentResult whole = result(1);
  result(1).clear_phases();
  EXPECT_EQ(Assess().exclusion, Exclusion::kInvalid);
  result(1) = whole;
  result(1).set_verified(v1::VERIFY_OUTCOME_UNSPECIFIED);
  EXPECT_EQ(Assess().exclusion, Exclusion::kInvalid);
  result(1) = whole;
  result(1).mutable_steps(0)->set_step("other");
  result(1).mutable_phases(1)->set_step("other");
  EXPECT_THAT(Assess().reason, HasSubstr("1 of 2 hosts"));
  result(1) = whole;
  assignment(1).set_late(true);
  EXPECT_EQ(Assess().exclusion, Exclusion::kLost);
  assignment(1).set_late(false);
  assignment(1).clear_result();
  assignment(1).set_reason("silent for 15 min");
  EXPECT_EQ(Assess().exclusion, Exclusion::kLost);
  EXPECT_THAT(Assess().reason, HasSubstr("st-02: there is no result: silent for 15 min"));
  trial_->mutable_assignments()->RemoveLast();
  EXPECT_EQ(Assess().exclusion, Exclusion::kLost);
}

TEST_F(CompareValidityTest, ZerosAndNonNumbersNeverBecomeResults) {
  v1::StepResult& step = *result(0).mutable_steps(0);
  const v1::StepResult whole = step;
  step.mutable_operations(0)->set_count(0);
  step.mutable_operations(0)->set_bytes(0);
  step.clear_intervals();
  EXPECT_THAT(Assess().reason, HasSubstr("did no operation"));
  step = whole;
  step.mutable_operations(0)->set_count(7);
  EXPECT_THAT(Assess().reason, HasSubstr("sum up to"));
  step = whole;
  step.set_primary(v1::PRIMARY_METRIC_FIGURE);
  EXPECT_THAT(Assess().reason, HasSubstr("gave no figure"));
  step.add_figures()->set_value(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Assess().reason, HasSubstr("not a number"));
}

TEST_F(CompareValidityTest, TheGravestHostIsToBlameAndTheControllersReasonIsKept) {
  result(0).mutable_measurement()->set_outcome(v1::OUTCOME_CANCELLED);
  EXPECT_EQ(Assess().exclusion, Exclusion::kCancelled);
  trial_->mutable_summary()->set_state("invalid");
  trial_->mutable_summary()->set_reason("the barrier broke three times");
  EXPECT_EQ(Assess().exclusion, Exclusion::kInvalid);
  EXPECT_EQ(Assess().reason, "the barrier broke three times");
  assignment(1).clear_result();
  assignment(1).set_state("refused");
  assignment(1).set_reason("DISK_LOW");
  EXPECT_EQ(Assess().exclusion, Exclusion::kFailed);
  EXPECT_EQ(Assess().reason, "st-02: the agent refused: DISK_LOW");
}

TEST_F(CompareValidityTest, TheNewestTokenOfAnAssignmentCounts) {
  v1::AssignmentRecord older = assignment(0);
  assignment(0).set_epoch(5);
  older.clear_result();
  *trial_->add_assignments() = older;
  EXPECT_TRUE(Assess().valid()) << Assess().reason;
  const std::vector<StepHosts> steps = StepsOfTrial(*trial_);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].hosts.size(), 2u);
}

TEST_F(CompareValidityTest, ReportListsWhatStaysOutAndExitsByCause) {
  v1::Report report = MakeReport(run_.Build(), nullptr);
  EXPECT_EQ(report.trials_valid(), 1u);
  EXPECT_EQ(report.exit_code(), ToInt(ExitCode::kPassed));
  EXPECT_EQ(report.start_skew_max_ns(), 300'000);

  assignment(1).clear_result();
  report = MakeReport(run_.Build(), nullptr);
  ASSERT_EQ(report.skipped_size(), 1);
  EXPECT_EQ(report.skipped(0).kind(), "lost");
  EXPECT_THAT(report.skipped(0).what(), HasSubstr("trial 1 (ext4/pages, repeat 1)"));
  EXPECT_EQ(report.exit_code(), ToInt(ExitCode::kLabFailed));

  result(1).set_verified(v1::VERIFY_OUTCOME_MISMATCHED);
  EXPECT_EQ(MakeReport(run_.Build(), nullptr).exit_code(), ToInt(ExitCode::kFailed));

  run_.record().mutable_summary()->set_state(v1::RUN_STATE_CANCELLED);
  EXPECT_EQ(MakeReport(run_.Build(), nullptr).exit_code(), ToInt(ExitCode::kFailed));
  result(1).set_verified(v1::VERIFY_OUTCOME_MATCHED);
  EXPECT_EQ(MakeReport(run_.Build(), nullptr).exit_code(), ToInt(ExitCode::kCancelled));
  run_.record().mutable_summary()->set_state(v1::RUN_STATE_RUNNING);
  EXPECT_EQ(MakeReport(run_.Build(), nullptr).exit_code(), ToInt(ExitCode::kWaitTimedOut));
  run_.record().mutable_summary()->set_state(v1::RUN_STATE_DONE);
  run_.record().clear_trials();
  EXPECT_EQ(MakeReport(run_.Build(), nullptr).exit_code(), ToInt(ExitCode::kNothingRan));
}

}  // namespace
}  // namespace labrack::compare
