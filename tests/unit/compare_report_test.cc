// Goal: a report says what the trials show, no more: rows against the base and against another run,
// gates with their figures, exit codes, warnings and differences of environment. Method: made-up
// runs whose answers are known.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/compare/report.h"
#include "proto/convert/convert.h"
#include "storage/base/exit_codes.h"
#include "tests/unit/noise.h"
#include "tests/unit/run_record_builder.h"

namespace labrack::compare {
namespace {

using ::testing::HasSubstr;

struct Arm {
  std::string stack;
  double rate = 1000;
  double latency_ns = 200'000;
};

struct Setup {
  std::vector<Arm> arms;
  std::uint32_t trials = 6;
  std::size_t hosts = 1;
  double noise = 0.01;
  v1::Workload workload = RunRecordBuilder::SyncPages("pages");
  RunRecordBuilder::StepKind step = RunRecordBuilder::PagesStep();
};

RunRecordBuilder MakeRun(const Setup& setup) {
  RunRecordBuilder run("made-up");
  for (std::size_t i = 0; i < setup.hosts; ++i) run.AddHost("st-0" + std::to_string(i + 1));
  std::vector<std::uint32_t> cells;
  for (const Arm& arm : setup.arms)
    cells.push_back(run.AddCell(arm.stack, setup.workload, {setup.step}));
  Random random(Seed{11});
  for (std::uint32_t repeat = 0; repeat < setup.trials; ++repeat) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double noise = std::exp(setup.noise * StandardNormal(random));
      run.AddTrial({.cell = cells[i],
                    .repeat = repeat,
                    .rate = setup.arms[i].rate * noise,
                    .latency_ns = setup.arms[i].latency_ns / noise});
    }
  }
  return run;
}

const v1::ComparisonRow* Row(const v1::Report& report, const std::string& stack,
                             const std::string& metric, const std::string& host = "") {
  for (const v1::ComparisonRow& row : report.rows()) {
    if (row.stack() == stack && row.metric() == metric && row.host() == host) return &row;
  }
  return nullptr;
}

v1::Gate& AddGate(RunRecordBuilder& run) { return *run.playbook().add_gates(); }

TEST(CompareReportTest, EveryStackAgainstTheBase) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "ext4", .rate = 1000},
                                           {.stack = "xfs", .rate = 1300, .latency_ns = 260'000},
                                           {.stack = "btrfs", .rate = 800},
                                           {.stack = "again", .rate = 1000}}});
  const v1::Report report = MakeReport(run.Build(), nullptr);
  const v1::ComparisonRow* base = Row(report, "ext4", "operations");
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->verdict(), v1::COMPARISON_VERDICT_BASE);
  EXPECT_NEAR(base->median(), 1000, 20);
  EXPECT_EQ(base->values_size(), 6);
  EXPECT_TRUE(std::isnan(base->p_value()));

  const v1::ComparisonRow* xfs = Row(report, "xfs", "operations");
  ASSERT_NE(xfs, nullptr);
  EXPECT_EQ(xfs->verdict(), v1::COMPARISON_VERDICT_BETTER) << xfs->reason();
  EXPECT_NEAR(xfs->ratio(), 1.3, 0.03);
  EXPECT_DOUBLE_EQ(xfs->ratio(), xfs->median() / xfs->base_median());
  EXPECT_LT(xfs->ratio_low(), xfs->ratio());
  EXPECT_GT(xfs->ratio_high(), xfs->ratio());
  EXPECT_TRUE(xfs->primary());
  EXPECT_EQ(xfs->workload(), "pages");
  EXPECT_EQ(xfs->unit(), "op/s");
  EXPECT_EQ(xfs->base(), "ext4");

  const v1::ComparisonRow* latency = Row(report, "xfs", "p99 write");
  ASSERT_NE(latency, nullptr);
  EXPECT_EQ(latency->verdict(), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_TRUE(latency->lower_is_better());
  EXPECT_EQ(latency->margin(), 0.05);

  EXPECT_EQ(Row(report, "btrfs", "operations")->verdict(), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(Row(report, "again", "operations")->verdict(), v1::COMPARISON_VERDICT_SAME);
  EXPECT_EQ(report.tests_count(), 6u);
  // Within one run, worse is a finding, no failure.
  EXPECT_EQ(report.verdict(), "PASSED");
  EXPECT_EQ(report.exit_code(), 0);
  EXPECT_EQ(report.exit_code_strict(), 0);
}

TEST(CompareReportTest, TheSameRecordsGiveTheSameBytes) {
  const v1::RunRecord run =
      MakeRun({.arms = {{.stack = "a"}, {.stack = "b", .rate = 1010}}, .hosts = 2}).Build();
  EXPECT_EQ(MakeReport(run, nullptr).SerializeAsString(),
            MakeReport(run, nullptr).SerializeAsString());
}

TEST(CompareReportTest, SeveralHostsGiveRowsOverAllAndOfEach) {
  const v1::RunRecord run =
      MakeRun({.arms = {{.stack = "a"}, {.stack = "b", .rate = 1300}}, .hosts = 2}).Build();
  const v1::Report report = MakeReport(run, nullptr);
  ASSERT_NE(Row(report, "b", "operations"), nullptr);
  EXPECT_NEAR(Row(report, "b", "operations")->median(), 2600, 60);
  EXPECT_NEAR(Row(report, "b", "operations", "st-01")->median(), 1300, 30);
  EXPECT_NEAR(Row(report, "b", "operations", "st-02")->median(), 1300, 30);
  EXPECT_EQ(report.tests_count(), 2u);  // rows of single hosts are a family of their own
  EXPECT_EQ(report.start_skew_max_ns(), 300'000);
  EXPECT_GT(report.overlap_min(), 0.99);
  EXPECT_EQ(report.hosts_count(), 2u);
}

// The histograms of both hosts are merged before the percentile is taken: the mean of their p99s
// would be 650 us.
TEST(CompareReportTest, PercentilesAreOfTheMergedHistogram) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}}, .trials = 4, .hosts = 2, .noise = 0});
  for (v1::TrialRecord& trial : *run.record().mutable_trials()) {
    for (int host = 0; host < 2; ++host) {
      Histogram histogram;
      for (int i = 0; i < 10'000; ++i)
        histogram.Record(std::uint64_t{host == 0 ? 100'000U : 1'200'000U});
      v1::StepResult& step = *trial.mutable_assignments(host)->mutable_result()->mutable_steps(0);
      *step.mutable_operations(0)->mutable_service() = convert::ToMessage(histogram);
    }
  }
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_NEAR(Row(report, "a", "p99 write")->median(), 1'200'000, 12'000);
}

TEST(CompareReportTest, PercentileNeedsTenSamplesAboveInEveryTrial) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}, {.stack = "b"}}});
  const auto thin = [&](int trial) {
    Histogram few;
    for (int i = 0; i < 900; ++i) few.Record(std::uint64_t{100'000});
    *run.record()
         .mutable_trials(trial)
         ->mutable_assignments(0)
         ->mutable_result()
         ->mutable_steps(0)
         ->mutable_operations(0)
         ->mutable_service() = convert::ToMessage(few);
  };
  thin(1);  // of b
  v1::Report report = MakeReport(run.Build(), nullptr);
  const v1::ComparisonRow* row = Row(report, "b", "p99 write");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->verdict(), v1::COMPARISON_VERDICT_NOT_JUDGED);
  EXPECT_THAT(row->reason(), HasSubstr("1 of 6 trials of b have no value: fewer than 10 samples"));
  // More trials would not help, so it is no part of --strict.
  EXPECT_EQ(report.exit_code_strict(), 0);
  for (int trial = 0; trial < 12; ++trial) thin(trial);
  report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(Row(report, "b", "p99 write"), nullptr);
}

TEST(CompareReportTest, ThreeTrialsAreASmokeTest) {
  const v1::RunRecord run =
      MakeRun({.arms = {{.stack = "a"}, {.stack = "b", .rate = 3000}}, .trials = 3}).Build();
  const v1::Report report = MakeReport(run, nullptr);
  const v1::ComparisonRow* row = Row(report, "b", "operations");
  EXPECT_EQ(row->verdict(), v1::COMPARISON_VERDICT_INCONCLUSIVE);
  EXPECT_THAT(row->reason(), HasSubstr("smoke test only"));
  EXPECT_GT(row->ratio_low(), 2.5);
  EXPECT_TRUE(std::isnan(row->p_adjusted()));
  EXPECT_EQ(report.exit_code(), 0);
  EXPECT_EQ(report.exit_code_strict(), ToInt(ExitCode::kInconclusive));
  EXPECT_EQ(report.tests_count(), 0u);
}

TEST(CompareReportTest, OneTrialHasNoInterval) {
  const v1::RunRecord run =
      MakeRun({.arms = {{.stack = "a"}, {.stack = "b", .rate = 3000}}, .trials = 1}).Build();
  const v1::Report report = MakeReport(run, nullptr);
  const v1::ComparisonRow* row = Row(report, "b", "operations");
  EXPECT_NEAR(row->ratio(), 3, 0.1);
  EXPECT_TRUE(std::isnan(row->ratio_low()));
  EXPECT_TRUE(std::isnan(row->detectable()));
}

TEST(CompareReportTest, InvalidTrialsStayOutOfTheStatistics) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}, {.stack = "b"}}, .trials = 7});
  // A trial of b that was ten times as fast because its operations failed.
  v1::TrialRecord& wild = *run.record().mutable_trials(3);
  v1::StepResult& step = *wild.mutable_assignments(0)->mutable_result()->mutable_steps(0);
  step.mutable_operations(0)->set_error_count(1);
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(Row(report, "b", "operations")->trials(), 6u);
  EXPECT_EQ(Row(report, "b", "operations")->base_trials(), 6u);  // its pair has no partner
  ASSERT_EQ(report.skipped_size(), 1);
  EXPECT_EQ(report.skipped(0).kind(), "failed");
  EXPECT_EQ(report.trials_valid(), 13u);
  EXPECT_EQ(report.trials_planned(), 14u);
  EXPECT_EQ(report.exit_code(), ToInt(ExitCode::kLabFailed));
}

TEST(CompareReportTest, AllInvalidGivesNoFigures) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}, {.stack = "b"}}});
  AddGate(run).set_faster("b");
  run.playbook().mutable_gates(0)->set_than("a");
  for (v1::TrialRecord& trial : *run.record().mutable_trials()) {
    trial.mutable_assignments(0)->clear_result();
  }
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.rows_size(), 0);
  EXPECT_EQ(report.skipped_size(), 12);
  EXPECT_EQ(report.gates(0).outcome(), "INVALID");
  EXPECT_EQ(report.verdict(), "INVALID");
  EXPECT_EQ(report.exit_code(), ToInt(ExitCode::kLabFailed));
}

TEST(CompareReportTest, StackWithoutAnyValidTrialIsNamed) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}, {.stack = "b"}}});
  for (int i = 1; i < 12; i += 2)
    run.record().mutable_trials(i)->mutable_summary()->set_state("lost");
  const v1::Report report = MakeReport(run.Build(), nullptr);
  const v1::ComparisonRow* row = Row(report, "b", "operations");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->reason(), "no valid trial of b has a value for operations");
  EXPECT_TRUE(std::isnan(row->median()));
  EXPECT_NEAR(row->base_median(), 1000, 30);
}

TEST(CompareReportTest, EmptyRunRanNothing) {
  const v1::Report report = MakeReport(v1::RunRecord(), nullptr);
  EXPECT_EQ(report.rows_size(), 0);
  EXPECT_EQ(report.exit_code(), ToInt(ExitCode::kNothingRan));
}

TEST(CompareReportTest, WallTimesAndFiguresCompareTheRightWayRound) {
  const v1::Report report =
      MakeReport(MakeRun({.arms = {{.stack = "a", .rate = 10}, {.stack = "b", .rate = 8}},
                          .workload = RunRecordBuilder::Exec("untar"),
                          .step = RunRecordBuilder::ExecStep()})
                     .Build(),
                 nullptr);
  const v1::ComparisonRow* row = Row(report, "b", "wall");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->unit(), "s");
  EXPECT_EQ(row->verdict(), v1::COMPARISON_VERDICT_BETTER);
  EXPECT_NEAR(row->ratio(), 0.8, 0.02);
}

// A copy's bytes are durable only when its closing fsync is done: the slower host's bytes must not
// count as done when the faster host is.
TEST(CompareReportTest, WorkClosedBySyncIsSpreadOverTheHostsOwnWindow) {
  RunRecordBuilder run("made-up");
  run.AddHost("st-01");
  run.AddHost("st-02");
  const std::uint32_t cell =
      run.AddCell("ext4", RunRecordBuilder::Copy("copy"), {RunRecordBuilder::CopyStep()});
  v1::TrialRecord& trial = run.AddTrial({.cell = cell, .repeat = 0, .rate = 1e8});
  // Host 2 accepted all its bytes in the first half and then synced for three more windows.
  v1::AssignmentResult& slow = *trial.mutable_assignments(1)->mutable_result();
  v1::StepResult& step = *slow.mutable_steps(0);
  step.set_measure_end_mono_ns(step.measure_end_mono_ns() + 30'000'000'000);
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_NEAR(Row(report, "ext4", "throughput")->median(), 1e8 + 0.25e8, 1e6);
}

TEST(CompareReportTest, HostsThatCannotDoAStackAreLeftOutOnBothSides) {
  RunRecordBuilder run("made-up");
  run.AddHost("st-01");
  const std::uint32_t zfs =
      run.AddCell("zfs", RunRecordBuilder::SyncPages("pages"), {RunRecordBuilder::PagesStep()});
  run.AddHost("st-02");
  const std::uint32_t ext4 =
      run.AddCell("ext4", RunRecordBuilder::SyncPages("pages"), {RunRecordBuilder::PagesStep()});
  run.playbook().set_base("ext4");
  v1::PlannedSkip& skip = *run.record().mutable_plan()->add_skips();
  skip.set_stack("zfs");
  skip.set_agent_id("agent-st-02");
  skip.set_reason("zpool is not installed");
  // Left out by the playbook: nothing that a host cannot do.
  run.playbook().add_stacks()->set_name("excluded");
  for (std::uint32_t repeat = 0; repeat < 6; ++repeat) {
    run.AddTrial({.cell = ext4, .repeat = repeat, .rate = 1000.0 + repeat});
    run.AddTrial({.cell = zfs, .repeat = repeat, .rate = 1000.0 + 2 * repeat});
  }
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_NEAR(Row(report, "ext4", "operations")->median(), 2005, 5);        // both hosts
  EXPECT_NEAR(Row(report, "zfs", "operations")->base_median(), 1002.5, 3);  // st-01 alone
  EXPECT_EQ(Row(report, "zfs", "operations")->verdict(), v1::COMPARISON_VERDICT_SAME);
  ASSERT_EQ(report.skipped_size(), 1);
  EXPECT_EQ(report.skipped(0).what(), "zfs on st-02");
  EXPECT_THAT(report.skipped(0).reason(), HasSubstr("zpool is not installed"));
  EXPECT_EQ(report.exit_code(), 0);
  EXPECT_EQ(report.exit_code_strict(), 0);
  skip.add_cells("zfs/pages block=4KiB");
  EXPECT_EQ(MakeReport(run.Build(), nullptr).skipped(0).what(), "zfs/pages block=4KiB on st-02");
}

TEST(CompareReportTest, TheFirstStackThatRunsIsTheBase) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "xfs"}, {.stack = "btrfs", .rate = 700}}});
  // zfs stands first in the playbook, and was skipped on all hosts.
  v1::Playbook& playbook = run.playbook();
  playbook.add_stacks()->set_name("zfs");
  playbook.mutable_stacks()->SwapElements(0, 2);
  playbook.mutable_stacks()->SwapElements(1, 2);
  v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(Row(report, "btrfs", "operations")->base(), "xfs");
  EXPECT_EQ(Row(report, "btrfs", "operations")->verdict(), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(report.exit_code_strict(), 0);
  // Records from before plans refused that: not judged, and never a success under --strict.
  playbook.set_base("zfs");
  report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(Row(report, "btrfs", "operations")->verdict(), v1::COMPARISON_VERDICT_NOT_JUDGED);
  EXPECT_THAT(Row(report, "btrfs", "operations")->reason(), HasSubstr("zfs was not run"));
  EXPECT_EQ(report.exit_code(), 0);
  EXPECT_EQ(report.exit_code_strict(), ToInt(ExitCode::kInconclusive));
}

// Six trials of which each is slower, five by little and one by much: the ranks say p 0.031, the
// distance says little. One such test is a finding, two are not.
RunRecordBuilder BarelySlower(int parameters) {
  RunRecordBuilder run("made-up");
  run.AddHost("st-01");
  run.playbook().set_margin(0);
  for (int i = 0; i < parameters; ++i) {
    for (const char* stack : {"a", "b"}) {
      run.AddCell(stack, RunRecordBuilder::Exec("untar"), {RunRecordBuilder::ExecStep()},
                  "n=" + std::to_string(i));
    }
  }
  for (std::uint32_t repeat = 0; repeat < 6; ++repeat) {
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(parameters); ++i) {
      run.AddTrial({.cell = 2 * i, .repeat = repeat, .rate = 10});
      const double slower = repeat == 5 ? 1.2 : 1.01 + 0.001 * repeat;
      run.AddTrial({.cell = 2 * i + 1, .repeat = repeat, .rate = 10 * slower});
    }
  }
  v1::Gate& gate = *run.playbook().add_gates();
  gate.set_not_slower("b");
  gate.set_than("a");
  gate.set_on("untar");
  gate.set_within(0.001);
  return run;
}

TEST(CompareReportTest, WhatOneTestShowsTwoTestsMayShowByChance) {
  v1::Report report = MakeReport(BarelySlower(1).Build(), nullptr);
  EXPECT_EQ(Row(report, "b", "wall")->verdict(), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(report.gates(0).outcome(), "FAILED") << report.gates(0).detail();
  report = MakeReport(BarelySlower(2).Build(), nullptr);
  EXPECT_EQ(Row(report, "b", "wall")->verdict(), v1::COMPARISON_VERDICT_INCONCLUSIVE);
  EXPECT_THAT(Row(report, "b", "wall")->reason(), HasSubstr("among 2 tests"));
  EXPECT_EQ(report.gates(0).outcome(), "INCONCLUSIVE");
  EXPECT_THAT(report.gates(0).detail(), HasSubstr("among 2 tests that can be chance"));
}

// Hosts whose windows overlap by half: the compared rate and the two others are all there.
TEST(CompareReportTest, RatesUntilTheFirstAndTheLastHostWasDoneStandBeside) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}}, .trials = 1, .hosts = 2, .noise = 0});
  v1::StepResult& step =
      *run.record().mutable_trials(0)->mutable_assignments(1)->mutable_result()->mutable_steps(0);
  step.set_measure_end_mono_ns(step.measure_end_mono_ns() + 10'000'000'000);
  step.mutable_intervals(1)->set_end_mono_ns(step.measure_end_mono_ns());
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_NEAR(Row(report, "a", "operations")->last_done_median(), 1000, 1);  // 20,000 in 20 s
  EXPECT_NEAR(Row(report, "a", "operations")->first_done_median(),
              Row(report, "a", "operations")->median(), 1);
  EXPECT_TRUE(std::isnan(Row(report, "a", "operations", "st-01")->last_done_median()));
}

TEST(CompareReportTest, TwoRunsCompareTheirCommonCellsAndWorseFails) {
  const v1::RunRecord base =
      MakeRun({.arms = {{.stack = "a"}, {.stack = "b"}, {.stack = "gone"}}}).Build();
  RunRecordBuilder test = MakeRun(
      {.arms = {{.stack = "a", .rate = 1001}, {.stack = "b", .rate = 700}, {.stack = "new"}}});
  test.record().mutable_summary()->set_run_id("r-8000");
  for (v1::TrialRecord& trial : *test.record().mutable_trials()) {
    trial.mutable_assignments(0)
        ->mutable_result()
        ->mutable_environment()
        ->mutable_host()
        ->set_kernel("Linux 6.1.0-20-amd64");
  }
  const v1::RunRecord test_run = test.Build();
  const v1::Report report = MakeReport(base, &test_run);
  EXPECT_EQ(Row(report, "a", "operations")->verdict(), v1::COMPARISON_VERDICT_SAME);
  EXPECT_EQ(Row(report, "b", "operations")->verdict(), v1::COMPARISON_VERDICT_WORSE);
  EXPECT_EQ(Row(report, "b", "operations")->base(), "r-7f3a");
  EXPECT_EQ(Row(report, "new", "operations"), nullptr);
  ASSERT_EQ(report.skipped_size(), 2);
  EXPECT_EQ(report.skipped(0).reason(), "only in the test run");
  EXPECT_EQ(report.skipped(1).reason(), "only in the base run");
  EXPECT_EQ(report.verdict(), "FAILED");
  EXPECT_EQ(report.exit_code(), 1);
  EXPECT_THAT(report.environment(report.environment_size() - 1).text(),
              HasSubstr("kernel differs between the runs on st-01: base Linux 6.1.0-18-amd64, test "
                        "Linux 6.1.0-20-amd64"));
  ASSERT_EQ(report.warnings_size(), 2);
  EXPECT_EQ(report.warnings(0).code(), "LW205");
  EXPECT_EQ(report.warnings(1).code(), "LW209");  // two runs are never interleaved
}

TEST(CompareReportTest, TwoRunsUseAllTheirTrialsAndPairNone) {
  const v1::RunRecord base = MakeRun({.arms = {{.stack = "a"}}, .trials = 10}).Build();
  const v1::RunRecord test = MakeRun({.arms = {{.stack = "a"}}, .trials = 6}).Build();
  const v1::Report report = MakeReport(base, &test);
  EXPECT_EQ(Row(report, "a", "operations")->base_trials(), 10u);
  EXPECT_EQ(Row(report, "a", "operations")->trials(), 6u);
  EXPECT_EQ(Row(report, "a", "operations")->base_median(),
            Row(MakeReport(base, nullptr), "a", "operations")->median());
}

// `--set size=...` or a changed playbook: the same names, another experiment.
TEST(CompareReportTest, CellsOfOneNameThatDoOtherThingsAreNotCompared) {
  const v1::RunRecord base = MakeRun({.arms = {{.stack = "a"}, {.stack = "b"}}}).Build();
  v1::RunRecord test = base;
  test.mutable_plan()->mutable_cells(0)->mutable_workload()->mutable_sync_pages()->set_size(4096);
  v1::Report report = MakeReport(base, &test);
  EXPECT_EQ(Row(report, "a", "operations"), nullptr);
  ASSERT_NE(Row(report, "b", "operations"), nullptr);
  ASSERT_EQ(report.skipped_size(), 1);
  EXPECT_EQ(report.skipped(0).kind(), "different");
  EXPECT_EQ(report.skipped(0).reason(), "not the same cell: workload.sync_pages.size: 2KiB, 4KiB");
  EXPECT_EQ(report.exit_code(), 0);
  EXPECT_EQ(report.exit_code_strict(), ToInt(ExitCode::kInconclusive));

  test.mutable_plan()->mutable_cells(1)->mutable_disks()->set_count(3);
  report = MakeReport(base, &test);
  EXPECT_EQ(report.rows_size(), 0);
  EXPECT_THAT(report.skipped(1).reason(), HasSubstr("disks.count: 0, 3"));
  EXPECT_EQ(report.warnings(report.warnings_size() - 1).code(), "LW211");
  EXPECT_EQ(report.exit_code(), ToInt(ExitCode::kNothingRan));
}

TEST(CompareReportTest, StacksAndPlaybooksThatDifferAreSaid) {
  v1::RunRecord base = MakeRun({.arms = {{.stack = "a"}}}).Build();
  base.mutable_plan()->mutable_cells(0)->mutable_stack()->mutable_host()->mutable_ext4();
  base.mutable_plan()->set_playbook_sha256("0123456789abcdef");
  v1::RunRecord test = base;
  test.mutable_plan()
      ->mutable_cells(0)
      ->mutable_stack()
      ->mutable_host()
      ->mutable_ext4()
      ->add_mount_options("data=journal");
  test.mutable_plan()->set_playbook_sha256("fedcba9876543210");
  const v1::Report report = MakeReport(base, &test);
  ASSERT_NE(Row(report, "a", "operations"), nullptr);
  std::vector<std::string> codes;
  for (const v1::Warning& warning : report.warnings()) codes.push_back(warning.code());
  EXPECT_THAT(codes, ::testing::ElementsAre("LW209", "LW210"));
  const int lines = report.environment_size();
  EXPECT_EQ(report.environment(lines - 2).text(),
            "stack a differs between the runs (base, test): host.ext4.mount_options: (none), "
            "[data=journal]");
  EXPECT_EQ(report.environment(lines - 1).text(),
            "the playbook differs between the runs: sha256 base 0123456789ab, test fedcba987654");
}

TEST(CompareReportTest, WarningsAreSaidOncePerCellAndDifferencesOfHostsAreTold) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}}, .trials = 3, .hosts = 2});
  for (v1::TrialRecord& trial : *run.record().mutable_trials()) {
    for (v1::AssignmentRecord& assignment : *trial.mutable_assignments()) {
      v1::Warning& warning = *assignment.mutable_result()->add_warnings();
      warning.set_code("LW101");
      warning.set_message("90 % of the reads came from memory");
      warning.set_cure("cache: cold");
    }
    v1::AssignmentResult& second = *trial.mutable_assignments(1)->mutable_result();
    second.mutable_environment()->mutable_host()->set_cpu_governor("powersave");
    second.mutable_clean_up()->set_outcome(v1::OUTCOME_FAILED);
    second.mutable_clean_up()->set_reason("umount: busy");
    second.set_stack_note("ext4 on loop3");  // a description, no reason to warn
  }
  (*run.record().mutable_plan()->mutable_cells(0)->mutable_stand_ins())["agent-st-02"] = "not root";
  const v1::Report report = MakeReport(run.Build(), nullptr);
  std::vector<std::string> codes;
  for (const v1::Warning& warning : report.warnings()) codes.push_back(warning.code());
  EXPECT_THAT(codes, ::testing::ElementsAre("LW203", "LW204", "LW101", "LW205"));
  EXPECT_EQ(report.warnings(1).message(), "a directory stands in for a on st-02: not root");
  EXPECT_EQ(report.warnings(2).message(), "a/pages: 90 % of the reads came from memory (3 trials)");
  EXPECT_EQ(report.environment_size(), 3);
  EXPECT_EQ(report.environment(2).text(),
            "governor differs between hosts: performance on st-01; powersave on st-02");
  EXPECT_EQ(report.exit_code(), 0);
}

class CompareGateTest : public ::testing::Test {
 protected:
  RunRecordBuilder run_ = MakeRun({.arms = {{.stack = "a", .rate = 1000},
                                            {.stack = "b", .rate = 1600, .latency_ns = 100'000},
                                            {.stack = "c", .rate = 1000}}});
  v1::GateResult Only() {
    const v1::Report report = MakeReport(run_.Build(), nullptr);
    EXPECT_EQ(report.gates_size(), 1);
    exit_code_ = report.exit_code();
    exit_code_strict_ = report.exit_code_strict();
    return report.gates(0);
  }
  int exit_code_ = -1;
  int exit_code_strict_ = -1;
};

TEST_F(CompareGateTest, FasterByAFactor) {
  v1::Gate& gate = AddGate(run_);
  gate.set_faster("b");
  gate.set_than("a");
  gate.set_on("pages");
  gate.set_by(1.5);
  v1::GateResult result = Only();
  EXPECT_EQ(result.outcome(), "PASSED") << result.detail();
  EXPECT_EQ(result.text(), "b is faster than a on pages by 1.5x");
  EXPECT_THAT(result.detail(), HasSubstr("95 % interval 1."));
  EXPECT_EQ(exit_code_, 0);
  gate.set_by(1.8);
  EXPECT_EQ(Only().outcome(), "FAILED");
  EXPECT_EQ(exit_code_, 1);
  gate.set_by(1.59);
  result = Only();
  EXPECT_EQ(result.outcome(), "INCONCLUSIVE") << result.detail();
  EXPECT_THAT(result.detail(), HasSubstr("the interval holds 1.59x"));
  EXPECT_EQ(exit_code_, 0);
  EXPECT_EQ(exit_code_strict_, ToInt(ExitCode::kInconclusive));
  gate.clear_by();
  EXPECT_EQ(Only().text(), "b is faster than a on pages by 1.03x");
  EXPECT_EQ(Only().outcome(), "PASSED");
}

TEST_F(CompareGateTest, NotSlowerAndSame) {
  v1::Gate& gate = AddGate(run_);
  gate.set_not_slower("c");
  gate.set_than("a");
  EXPECT_EQ(Only().outcome(), "PASSED");
  EXPECT_EQ(Only().text(), "c is not slower than a within 3 %");
  gate.set_than("b");
  gate.set_within(0.1);
  EXPECT_EQ(Only().outcome(), "FAILED");
  gate.Clear();
  gate.set_same("c");
  gate.set_as("a");
  EXPECT_EQ(Only().outcome(), "PASSED");
  gate.set_as("b");
  EXPECT_EQ(Only().outcome(), "FAILED");
  gate.set_as("a");
  gate.set_within(0.0001);
  EXPECT_EQ(Only().outcome(), "INCONCLUSIVE");
}

TEST_F(CompareGateTest, LatencyBound) {
  v1::Gate& gate = AddGate(run_);
  gate.set_latency("a");
  gate.set_on("pages");
  gate.set_below(2'000'000);
  EXPECT_EQ(Only().outcome(), "PASSED") << Only().detail();
  EXPECT_EQ(Only().text(), "p99 of a on pages is below 2.00 ms");
  gate.set_below(100'000);
  EXPECT_EQ(Only().outcome(), "FAILED");
  gate.set_percentile(0.9999);
  gate.set_below(2'000'000);
  EXPECT_EQ(Only().outcome(), "INCONCLUSIVE");
  EXPECT_THAT(Only().detail(), HasSubstr("fewer than 10 samples"));
}

TEST_F(CompareGateTest, Verified) {
  AddGate(run_).set_verified(v1::GATE_VERIFIED_ALL);
  EXPECT_EQ(Only().outcome(), "PASSED");
  EXPECT_EQ(Only().detail(), "18 results read back right");
  v1::AssignmentResult& result =
      *run_.record().mutable_trials(4)->mutable_assignments(0)->mutable_result();
  result.set_verified(v1::VERIFY_OUTCOME_NOT_ASKED);
  EXPECT_EQ(Only().outcome(), "PASSED");
  EXPECT_THAT(Only().detail(), HasSubstr("1 not asked for"));
  result.set_verified(v1::VERIFY_OUTCOME_UNSPECIFIED);
  EXPECT_EQ(Only().outcome(), "INCONCLUSIVE");
  result.set_verified(v1::VERIFY_OUTCOME_MISMATCHED);
  result.set_verify_detail("byte 4096 of f");
  EXPECT_EQ(Only().outcome(), "FAILED");
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(Only().detail(), HasSubstr("trial 5 (b/pages) on st-01: byte 4096 of f"));
}

TEST_F(CompareGateTest, TrialsWithoutAValueDecideNothing) {
  v1::Gate& gate = AddGate(run_);
  gate.set_faster("b");
  gate.set_than("a");
  for (int trial : {1, 4}) {  // of b: its primary figure is not positive in two of six
    v1::StepResult& step = *run_.record()
                                .mutable_trials(trial)
                                ->mutable_assignments(0)
                                ->mutable_result()
                                ->mutable_steps(0);
    step.add_figures()->set_name("score");
  }
  for (v1::TrialRecord& trial : *run_.record().mutable_trials()) {
    v1::StepResult& step = *trial.mutable_assignments(0)->mutable_result()->mutable_steps(0);
    step.set_primary(v1::PRIMARY_METRIC_FIGURE);
    if (!step.figures().empty()) continue;
    step.add_figures()->set_name("score");
    step.mutable_figures(0)->set_value(trial.summary().cell() == 1 ? 200 : 100);
  }
  EXPECT_EQ(Only().outcome(), "INCONCLUSIVE");
  EXPECT_THAT(Only().detail(), HasSubstr("2 of 6 trials of b/pages have no value"));
}

TEST(CompareGateTrialsTest, ALatencyThatLiesOnBothSidesOfItsBoundIsInconclusive) {
  RunRecordBuilder run("pages");
  run.AddHost("st-01");
  run.AddCell("a", RunRecordBuilder::SyncPages("pages"), {RunRecordBuilder::PagesStep()});
  for (std::uint32_t repeat = 0; repeat < 6; ++repeat) {
    run.AddTrial({.repeat = repeat, .rate = 1000, .latency_ns = 100'000 + 50'000.0 * repeat});
  }
  v1::Gate& gate = AddGate(run);
  gate.set_latency("a");
  gate.set_percentile(0.5);
  gate.set_below(200'000);
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "INCONCLUSIVE") << report.gates(0).detail();
  EXPECT_THAT(report.gates(0).detail(), HasSubstr("the interval holds 1x"));
}

TEST(CompareGateTrialsTest, LatencyGatesNeedSixTrials) {
  for (std::uint32_t trials : {5u, 6u}) {
    RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}}, .trials = trials});
    v1::Gate& gate = AddGate(run);
    gate.set_latency("a");
    gate.set_on("pages");
    gate.set_below(2'000'000);
    const v1::Report report = MakeReport(run.Build(), nullptr);
    EXPECT_EQ(report.gates(0).outcome(), trials < 6 ? "INCONCLUSIVE" : "PASSED");
  }
}

// A mismatch on the other host is no fault of the one that the gate names.
TEST(CompareGateTrialsTest, VerifiedOnOneHostLooksAtThatHost) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a"}}, .trials = 4, .hosts = 2});
  v1::Gate& gate = AddGate(run);
  gate.set_verified(v1::GATE_VERIFIED_ALL);
  gate.set_host("st-01");
  run.record().mutable_trials(2)->mutable_assignments(1)->mutable_result()->set_verified(
      v1::VERIFY_OUTCOME_MISMATCHED);
  run.record().mutable_trials(3)->mutable_assignments(1)->clear_result();
  v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "PASSED");
  EXPECT_EQ(report.gates(0).detail(), "4 results read back right");
  gate.set_host("agent-st-02");
  report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "FAILED");
  EXPECT_THAT(report.gates(0).detail(), HasSubstr("on st-02"));
}

TEST_F(CompareGateTest, WhatIsNotThereCannotPass) {
  v1::Gate& gate = AddGate(run_);
  gate.set_faster("b");
  gate.set_than("a");
  gate.set_on("other");
  EXPECT_EQ(Only().outcome(), "INVALID");
  EXPECT_EQ(exit_code_, ToInt(ExitCode::kLabFailed));
  gate.set_on("pages");
  gate.set_host("st-99");
  EXPECT_EQ(Only().outcome(), "INVALID");
  gate.set_host("st-01");
  EXPECT_EQ(Only().outcome(), "PASSED");
  EXPECT_THAT(Only().text(), HasSubstr("on host st-01"));
}

TEST(CompareGateTrialsTest, ThreeTrialsNeverDecideAGate) {
  RunRecordBuilder run =
      MakeRun({.arms = {{.stack = "a"}, {.stack = "b", .rate = 5000}}, .trials = 3});
  v1::Gate& gate = AddGate(run);
  gate.set_faster("b");
  gate.set_than("a");
  const v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "INCONCLUSIVE");
  EXPECT_EQ(report.verdict(), "INCONCLUSIVE");
}

TEST(CompareGateTrialsTest, FasterMeansLessTimeWhereLowerIsBetter) {
  RunRecordBuilder run = MakeRun({.arms = {{.stack = "a", .rate = 30}, {.stack = "b", .rate = 10}},
                                  .workload = RunRecordBuilder::Exec("untar"),
                                  .step = RunRecordBuilder::ExecStep()});
  v1::Gate& gate = AddGate(run);
  gate.set_faster("b");
  gate.set_than("a");
  gate.set_by(2.5);
  v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "PASSED") << report.gates(0).detail();
  gate.set_by(3.5);
  report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "FAILED") << report.gates(0).detail();
}

TEST(CompareGateTrialsTest, GateOverSeveralStepsHoldsWhenItHoldsForEach) {
  RunRecordBuilder run("made-up");
  run.AddHost("st-01");
  for (const char* stack : {"a", "b"}) {
    run.AddCell(stack, RunRecordBuilder::SyncPages("files"),
                {{.step = "create", .operation = "create"}, {.step = "read", .operation = "read"}});
  }
  for (std::uint32_t repeat = 0; repeat < 6; ++repeat) {
    for (std::uint32_t cell : {0u, 1u}) {
      v1::TrialRecord& trial =
          run.AddTrial({.cell = cell, .repeat = repeat, .rate = cell == 0 ? 1000.0 : 2000.0});
      if (cell == 0) continue;
      // b reads as fast as a: half of what it creates.
      v1::StepResult& read = *trial.mutable_assignments(0)->mutable_result()->mutable_steps(1);
      read.set_measure_end_mono_ns(read.measure_end_mono_ns() + 10'000'000'000);
    }
  }
  v1::Gate& gate = AddGate(run);
  gate.set_faster("b");
  gate.set_than("a");
  gate.set_on("files");
  v1::Report report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "FAILED");
  EXPECT_THAT(report.gates(0).detail(), HasSubstr("files/create: PASSED"));
  EXPECT_THAT(report.gates(0).detail(), HasSubstr("files/read: FAILED"));
  gate.set_on("files/create");
  report = MakeReport(run.Build(), nullptr);
  EXPECT_EQ(report.gates(0).outcome(), "PASSED");
  EXPECT_NE(Row(report, "b", "operations"), nullptr);
  EXPECT_EQ(report.rows(0).workload(), "files/create");
}

}  // namespace
}  // namespace labrack::compare
