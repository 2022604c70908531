// Goal: a report from the catalog holds one trial in memory, however large the run is, says the
// same as one made from the whole record, and is kept until what it was made from changes.
// Method: a catalog of fat results, written by one child process; other children make the report,
// and read the whole record for comparison. What a process used at most comes from wait4(2). Then,
// of a small run: results are made unreadable, so that a report made anew fails.
#include "controller/api/reports.h"

#include <filesystem>
#include <functional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "controller/catalog/catalog.h"
#include "controller/compare/report.h"
#include "tests/unit/run_record_builder.h"

namespace labrack {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kRepeats = 32;  // of two stacks, on two hosts: 128 results
constexpr int kBallast = 100'000;       // counts in a histogram of each result

class ReportsTest : public testing::Test {
 protected:
  ReportsTest() {
    std::string name = (fs::temp_directory_path() / "labrack-report-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~ReportsTest() override { fs::remove_all(directory_); }

  // Runs `work` in a process of its own and says how much memory it used at most, in KiB.
  static long PeakOf(const std::function<bool()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work() ? 0 : 1);
    int status = 0;
    rusage usage{};
    EXPECT_EQ(wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    return usage.ru_maxrss;
  }

  static v1::RunRecord SomeRun(std::uint32_t repeats) {
    RunRecordBuilder run("fat");
    run.AddHost("st-01");
    run.AddHost("st-02");
    for (const char* stack : {"ext4", "xfs"}) {
      run.AddCell(stack, RunRecordBuilder::SyncPages("pages"), {RunRecordBuilder::PagesStep()});
    }
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
      for (std::uint32_t cell = 0; cell < 2; ++cell) {
        run.AddTrial({.cell = cell, .repeat = repeat, .rate = 1000.0 + 200 * cell + repeat});
      }
    }
    return run.Build();
  }

  static v1::EventRecord ResultOf(const v1::AssignmentResult& thin, int ballast) {
    v1::EventRecord record;
    record.set_seq(1);
    *record.mutable_result() = thin;
    v1::HistogramData& histogram = *record.mutable_result()
                                        ->mutable_steps(0)
                                        ->mutable_intervals(0)
                                        ->mutable_operations(0)
                                        ->mutable_service();
    for (int i = 0; i < ballast; ++i) {
      histogram.add_index_delta(1);
      histogram.add_count(1);
    }
    return record;
  }

  bool Write(const v1::RunRecord& run, int ballast) const {
    Result<std::unique_ptr<catalog::Catalog>> catalog = catalog::Catalog::Open(directory_);
    if (!catalog) return false;
    catalog::InsertRun insert;
    insert.run.id = run.summary().run_id();
    insert.run.state = v1::RUN_STATE_DONE;
    insert.run.plan = run.plan();
    insert.run.created_wall_ns = run.summary().created_wall_ns();
    insert.run.ended_wall_ns = run.summary().ended_wall_ns();
    for (const v1::TrialRecord& trial : run.trials()) {
      insert.trials.push_back({.run_id = insert.run.id,
                               .index = trial.summary().index(),
                               .cell = trial.summary().cell(),
                               .cell_name = trial.summary().cell_name(),
                               .repeat = trial.summary().repeat(),
                               .state = catalog::TrialState::kValid,
                               .reason = {},
                               .host_count = 2});
    }
    if (!(*catalog)->Apply(std::vector<catalog::Change>{insert})) return false;
    std::uint64_t epoch = 0;
    for (const v1::TrialRecord& trial : run.trials()) {
      std::vector<catalog::Change> changes;
      for (const v1::AssignmentRecord& assignment : trial.assignments()) {
        ++epoch;
        catalog::AssignmentRow row;
        row.id = assignment.assignment_id();
        row.run_id = insert.run.id;
        row.trial_index = trial.summary().index();
        row.agent_id = assignment.agent_id();
        row.host_name = assignment.host_name();
        row.epoch = row.offered_epoch = epoch;
        row.state = catalog::AssignmentState::kClosed;
        changes.emplace_back(catalog::PutAssignment{row});
        changes.emplace_back(
            catalog::StoreEvents{.assignment_id = row.id,
                                 .epoch = epoch,
                                 .records = {ResultOf(assignment.result(), ballast)}});
      }
      if (!(*catalog)->Apply(changes)) return false;
    }
    return true;
  }

  bool Read(const std::function<bool(catalog::Reader&)>& use) const {
    Result<std::unique_ptr<catalog::Catalog>> catalog = catalog::Catalog::Open(directory_);
    if (!catalog) return false;
    Result<std::unique_ptr<catalog::Reader>> reader = catalog::Reader::Open(directory_);
    return reader && use(**reader);
  }

  fs::path directory_;
};

// A sanitizer keeps freed memory for a while, so that peaks say nothing of the program.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SKIP_WHERE_FREED_MEMORY_STAYS() GTEST_SKIP() << "a sanitizer keeps what is freed"
#else
#define SKIP_WHERE_FREED_MEMORY_STAYS() static_cast<void>(0)
#endif

TEST_F(ReportsTest, OneTrialIsInMemoryAtATime) {
  SKIP_WHERE_FREED_MEMORY_STAYS();
  const std::string id = SomeRun(kRepeats).summary().run_id();
  PeakOf([&] { return Write(SomeRun(kRepeats), kBallast); });

  const long idle = PeakOf(
      [&] { return Read([](catalog::Reader& reader) { return reader.Runs(1).has_value(); }); });
  const auto make = [&](catalog::Reader& reader) {
    const Result<v1::Report> report = api::Reports().Of(reader, id, "");
    return report && report->trials_valid() == 2 * kRepeats;
  };
  const long report = PeakOf([&] { return Read(make); }) - idle;
  const auto compare = [&](catalog::Reader& reader) {
    return api::Reports().Of(reader, id, id).has_value();
  };
  const long comparison = PeakOf([&] { return Read(compare); }) - idle;
  const auto read_whole = [&](catalog::Reader& reader) {
    const Result<v1::RunRecord> whole = reader.Run(id);
    const Result<v1::Report> streamed = api::Reports().Of(reader, id, "");
    return whole && streamed &&
           compare::MakeReport(*whole, nullptr).SerializeAsString() ==
               streamed->SerializeAsString();
  };
  const long whole = PeakOf([&] { return Read(read_whole); }) - idle;

  // Two hosts of 64 trials: a report that kept them would need as much as the whole record.
  EXPECT_GT(whole, 100 << 10) << "KiB; the results are too small to show anything";
  EXPECT_LT(report, whole / 8) << "KiB";
  EXPECT_LT(comparison, whole / 8) << "KiB";
}

TEST_F(ReportsTest, WhatNeedsNoResultsReadsNone) {
  SKIP_WHERE_FREED_MEMORY_STAYS();
  const std::string id = SomeRun(kRepeats).summary().run_id();
  PeakOf([&] { return Write(SomeRun(kRepeats), kBallast); });
  const long idle = PeakOf(
      [&] { return Read([](catalog::Reader& reader) { return reader.Runs(1).has_value(); }); });
  for (const catalog::Level level :
       {catalog::Level::kSummary, catalog::Level::kPlan, catalog::Level::kAssignments}) {
    const auto show = [&](catalog::Reader& reader) {
      const Result<v1::RunRecord> run = reader.Run(id, level);
      return run && run->trials_size() == 2 * static_cast<int>(kRepeats);
    };
    EXPECT_LT(PeakOf([&] { return Read(show); }) - idle, 8 << 10) << "KiB";
  }
}

TEST_F(ReportsTest, AReportIsKeptUntilTheStateOfATrialChanges) {
  const v1::RunRecord run = SomeRun(4);
  const std::string id = run.summary().run_id();
  ASSERT_TRUE(Write(run, 0));
  Result<std::unique_ptr<catalog::Catalog>> catalog = catalog::Catalog::Open(directory_);
  ASSERT_TRUE(catalog);
  Result<std::unique_ptr<catalog::Reader>> reader = catalog::Reader::Open(directory_);
  ASSERT_TRUE(reader);
  api::Reports reports;
  const Result<v1::Report> closing = reports.Closing(**reader, id, v1::RUN_STATE_CANCELLED);
  ASSERT_TRUE(closing) << closing.error().ToString();
  EXPECT_EQ(closing->verdict(), "CANCELLED");
  EXPECT_GT(reports.bytes(), 0U);

  ASSERT_TRUE((*catalog)->database().Execute("UPDATE events SET body = x'ff'"));
  Result<v1::Report> report = reports.Of(**reader, id, "");
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->verdict(), "PASSED") << "the state is that of now, the rest was kept";
  EXPECT_EQ(report->run().state(), v1::RUN_STATE_DONE);
  EXPECT_EQ(report->rows_size(), closing->rows_size());

  ASSERT_TRUE((*catalog)->database().Execute(
      "UPDATE assignments SET state = 'abandoned' WHERE trial = 3 AND host_name = 'st-02'"));
  report = reports.Of(**reader, id, "");
  ASSERT_FALSE(report) << "it was kept though a result is late now";
  EXPECT_EQ(report.error().code(), Errc::kCorrupt);
  EXPECT_FALSE(reports.Of(**reader, id, id)) << "another question";
}

TEST_F(ReportsTest, ReportsThatWereNotAskedForLongAreForgotten) {
  Result<std::unique_ptr<catalog::Catalog>> catalog = catalog::Catalog::Open(directory_);
  ASSERT_TRUE(catalog);
  Result<std::unique_ptr<catalog::Reader>> reader = catalog::Reader::Open(directory_);
  ASSERT_TRUE(reader);
  api::Reports reports;
  std::size_t bytes_of_one = 0;
  for (std::size_t number = 0; number < 2 * api::Reports::kKeptMax; ++number) {
    catalog::InsertRun insert;
    insert.run.id = "r-" + std::to_string(100 + number);
    ASSERT_TRUE((*catalog)->Apply(std::vector<catalog::Change>{insert}));
    ASSERT_TRUE(reports.Of(**reader, insert.run.id, ""));
    if (number == 0) bytes_of_one = reports.bytes();
  }
  EXPECT_EQ(reports.bytes(), api::Reports::kKeptMax * bytes_of_one);
}

}  // namespace
}  // namespace labrack
