// Goal: what the catalog has said yes to is there after a restart, at most once, and files of other
// versions are either brought up to date or refused.
// Method: apply batches of changes in a temporary directory, reopen, read back; make a file of
// version 1 with the first migration step only.
#include "controller/catalog/catalog.h"

#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/catalog/schema.h"

namespace labrack::catalog {
namespace {

namespace fs = std::filesystem;

class CatalogTest : public testing::Test {
 protected:
  CatalogTest() {
    std::string name = (fs::temp_directory_path() / "labrack-catalog-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~CatalogTest() override { fs::remove_all(directory_); }

  std::unique_ptr<Catalog> Open() {
    Result<std::unique_ptr<Catalog>> catalog = Catalog::Open(directory_);
    EXPECT_TRUE(catalog) << catalog.error().ToString();
    return catalog ? *std::move(catalog) : nullptr;
  }

  static InsertRun SmallRun(const std::string& id, const std::string& key = "") {
    InsertRun change;
    change.run.id = id;
    change.run.state = v1::RUN_STATE_PENDING;
    change.run.plan.set_playbook_name("pages");
    change.run.playbook_text = "playbook: pages\n";
    change.run.idempotency_key = key;
    change.run.created_wall_ns = 1000;
    for (std::uint32_t index = 0; index < 2; ++index) {
      change.trials.push_back({.run_id = id,
                               .index = index,
                               .cell_name = "ext4/pages",
                               .repeat = index,
                               .reason = {},
                               .host_count = 1});
    }
    return change;
  }
  static AssignmentRow SmallAssignment(const std::string& run, AssignmentState state) {
    return {.id = run + "/0/st-01",
            .run_id = run,
            .trial_index = 0,
            .agent_id = "st-01",
            .host_name = "st-01.lab",
            .epoch = 7,
            .offered_epoch = 7,
            .state = state,
            .stop_reason = {},
            .reason = {}};
  }
  static StoreEvents OneEvent(std::uint64_t seq, const std::string& log) {
    StoreEvents change{.assignment_id = "r-1/0/st-01", .epoch = 7, .records = {}};
    v1::EventRecord& record = change.records.emplace_back();
    record.set_seq(seq);
    record.set_log(log);
    return change;
  }
  static Applied Apply(Catalog& catalog, std::vector<Change> changes) {
    Result<Applied> applied = catalog.Apply(changes);
    EXPECT_TRUE(applied) << applied.error().ToString();
    return applied.value_or(Applied{});
  }

  fs::path directory_;
};

TEST_F(CatalogTest, RunsTrialsAndAssignmentsReadBackAfterAReopen) {
  {
    std::unique_ptr<Catalog> catalog = Open();
    Apply(*catalog,
          {SmallRun("r-1"), PutAssignment{SmallAssignment("r-1", AssignmentState::kOffered)}});
    Apply(*catalog, {OneEvent(1, "a"), OneEvent(2, "b")});
  }
  std::unique_ptr<Catalog> catalog = Open();
  Result<std::vector<StoredRun>> runs = catalog->OpenRuns();
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ((*runs)[0].run.plan.playbook_name(), "pages");
  EXPECT_EQ((*runs)[0].trials.size(), 2U);
  ASSERT_EQ((*runs)[0].assignments.size(), 1U);
  EXPECT_EQ((*runs)[0].assignments[0].row.state, AssignmentState::kOffered);
  EXPECT_EQ((*runs)[0].assignments[0].through_seq, 2U);
}

TEST_F(CatalogTest, WhyAnAssignmentIsStoppedIsKeptBesideHowItEnded) {
  AssignmentRow row = SmallAssignment("r-1", AssignmentState::kRunning);
  row.stop_wanted = true;
  row.stop_reason = "cancelled by me";
  {
    std::unique_ptr<Catalog> catalog = Open();
    Apply(*catalog, {SmallRun("r-1"), PutAssignment{row}});
    row.state = AssignmentState::kClosed;
    row.reason = "the measurement was cancelled";
    Apply(*catalog, {PutAssignment{row}});
  }
  Result<std::optional<AssignmentRow>> read = ReadAssignment(Open()->database(), row.id);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->stop_reason, "cancelled by me");
  EXPECT_EQ((*read)->reason, "the measurement was cancelled");
}

TEST_F(CatalogTest, EpochGrowsAtEveryStart) {
  EXPECT_EQ(Open()->controller_epoch(), 1U);
  EXPECT_EQ(Open()->controller_epoch(), 2U);
  {
    std::unique_ptr<Catalog> catalog = Open();
    Apply(*catalog, {RaiseEpoch{.controller_epoch = 40}});
    EXPECT_EQ(catalog->controller_epoch(), 40U);
  }
  EXPECT_EQ(Open()->controller_epoch(), 41U);
}

TEST_F(CatalogTest, EventsAreStoredOnceAndAnotherBodyIsAnAlarm) {
  std::unique_ptr<Catalog> catalog = Open();
  EXPECT_EQ(Apply(*catalog, {OneEvent(1, "a")}).events_stored, 1U);
  const Applied again = Apply(*catalog, {OneEvent(1, "a"), OneEvent(1, "other")});
  EXPECT_EQ(again.events_stored, 0U);
  EXPECT_EQ(again.events_duplicate, 1U);
  EXPECT_EQ(again.events_conflicting, 1U);
  EXPECT_EQ(ReadTotals(catalog->database())->events, 1U);
}

TEST_F(CatalogTest, AResultSentAgainWithAnotherClockOffsetIsADuplicate) {
  std::unique_ptr<Catalog> catalog = Open();
  StoreEvents change{.assignment_id = "r-1/0/st-01", .epoch = 7, .records = {}};
  v1::EventRecord& record = change.records.emplace_back();
  record.set_seq(1);
  record.mutable_result()->set_clock_offset_ns(5);
  Apply(*catalog, {change});
  record.mutable_result()->set_clock_offset_ns(6);
  EXPECT_EQ(Apply(*catalog, {change}).events_duplicate, 1U);
  record.mutable_result()->set_laid_out_bytes(1);
  EXPECT_EQ(Apply(*catalog, {change}).events_conflicting, 1U);
}

TEST_F(CatalogTest, FinalAssignmentsNeverChange) {
  std::unique_ptr<Catalog> catalog = Open();
  Apply(*catalog,
        {SmallRun("r-1"), PutAssignment{SmallAssignment("r-1", AssignmentState::kClosed)}});
  const Applied refused =
      Apply(*catalog, {PutAssignment{SmallAssignment("r-1", AssignmentState::kRunning)}});
  EXPECT_EQ(refused.final_changes_refused, 1U);
  EXPECT_EQ((*ReadAssignment(catalog->database(), "r-1/0/st-01"))->state, AssignmentState::kClosed);
}

TEST_F(CatalogTest, AFurtherAttemptBeginsWithANewerToken) {
  std::unique_ptr<Catalog> catalog = Open();
  AssignmentRow row = SmallAssignment("r-1", AssignmentState::kClosed);
  Apply(*catalog, {SmallRun("r-1"), PutAssignment{row}});
  row.state = AssignmentState::kPlanned;
  row.epoch = ++row.offered_epoch;
  TrialRow trial;
  trial.run_id = "r-1";
  trial.state = TrialState::kRunning;
  trial.attempt = 2;
  EXPECT_EQ(Apply(*catalog, {PutAssignment{row}, UpdateTrial{trial}}).final_changes_refused, 0U);
  EXPECT_EQ((*ReadAssignment(catalog->database(), row.id))->state, AssignmentState::kPlanned);
  EXPECT_EQ((*ReadTrials(catalog->database(), "r-1"))[0].attempt, 2U);
}

TEST_F(CatalogTest, ABatchIsAllOrNothing) {
  std::unique_ptr<Catalog> catalog = Open();
  Apply(*catalog, {SmallRun("r-1", "key")});
  EXPECT_FALSE(catalog->Apply(std::vector<Change>{SmallRun("r-2"), SmallRun("r-3", "key")}));
  EXPECT_FALSE(catalog->HasRun("r-2").value());
  EXPECT_EQ(catalog->RunByKey("key").value(), "r-1");
  EXPECT_EQ(catalog->RunByKey("none").value(), std::nullopt);
}

TEST_F(CatalogTest, AFileOfVersionOneIsBroughtUpToDateAndCopiedFirst) {
  {
    Result<std::unique_ptr<Database>> old =
        Database::Open(directory_ / kCatalogFile, Access::kWriter);
    ASSERT_TRUE(old);
    ASSERT_TRUE(Migrate(**old, directory_ / kCatalogFile, 1));
    ASSERT_TRUE((*old)->Execute(
        "INSERT INTO runs VALUES('r-old', 'done', '', 'pages', 'p.yaml', '', x'', 'me', NULL, 0, "
        "5, 6, 0, 'PASSED')"));
  }
  std::unique_ptr<Catalog> catalog = Open();
  EXPECT_TRUE(fs::exists(directory_ / "catalog.db.v1"));
  Apply(*catalog, {Audit{.who = "me", .verb = "submit", .target = "r-1", .detail = ""}});
  Result<std::vector<v1::RunSummary>> runs = ReadSummaries(catalog->database(), 10);
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ((*runs)[0].run_id(), "r-old");
  EXPECT_EQ((*runs)[0].verdict(), "PASSED");
}

TEST_F(CatalogTest, ANewerFileIsRefused) {
  Open().reset();
  {
    Result<std::unique_ptr<Database>> database =
        Database::Open(directory_ / kCatalogFile, Access::kWriter);
    ASSERT_TRUE(database);
    ASSERT_TRUE((*database)->Execute("PRAGMA user_version=99"));
  }
  Result<std::unique_ptr<Catalog>> refused = Catalog::Open(directory_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::kUnsupported);
  EXPECT_THAT(refused.error().ToString(), testing::HasSubstr("schema version 99"));
}

TEST_F(CatalogTest, AnotherProcessIsKeptOut) {
  std::unique_ptr<Catalog> catalog = Open();
  // The lock is the open file's, so a second open in this process is as foreign as another's.
  Result<std::unique_ptr<Catalog>> second = Catalog::Open(directory_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::kBusy);
}

TEST_F(CatalogTest, WhoeverLooksSeesWhetherAControllerWorksAndDisturbsNone) {
  EXPECT_FALSE(Exists(directory_).value());
  EXPECT_FALSE(IsHeld(directory_).value());
  std::unique_ptr<Catalog> catalog = Open();
  const std::uint64_t epoch = catalog->controller_epoch();
  EXPECT_TRUE(Exists(directory_).value());
  EXPECT_TRUE(IsHeld(directory_).value());
  EXPECT_TRUE(IsUpToDate(directory_).value());
  catalog.reset();
  EXPECT_FALSE(IsHeld(directory_).value());
  EXPECT_TRUE(IsUpToDate(directory_).value());
  EXPECT_EQ(Open()->controller_epoch(), epoch + 1);
}

TEST_F(CatalogTest, AnOlderFileIsNotUpToDateAndANewerOneIsRefused) {
  const fs::path file = directory_ / kCatalogFile;
  {
    Result<std::unique_ptr<Database>> old = Database::Open(file, Access::kWriter);
    ASSERT_TRUE(old);
    ASSERT_TRUE(Migrate(**old, file, 1));
  }
  EXPECT_FALSE(IsUpToDate(directory_).value());
  {
    Result<std::unique_ptr<Database>> newer = Database::Open(file, Access::kWriter);
    ASSERT_TRUE((*newer)->Execute("PRAGMA user_version=99"));
  }
  EXPECT_EQ(IsUpToDate(directory_).error().code(), Errc::kUnsupported);
}

TEST_F(CatalogTest, AKilledWriterLosesNothingThatWasApplied) {
  Open().reset();
  const pid_t child = fork();
  if (child == 0) {
    Result<std::unique_ptr<Catalog>> catalog = Catalog::Open(directory_);
    if (!catalog) _exit(1);
    for (std::uint64_t seq = 1; seq <= 20; ++seq) {
      if (!(*catalog)->Apply(std::vector<Change>{OneEvent(seq, "x")})) _exit(2);
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(ReadThroughSeq(Open()->database(), "r-1/0/st-01", 7).value(), 20U);
}

TEST_F(CatalogTest, AReaderSeesWhatIsCommittedAndNamesWhatIsMissing) {
  std::unique_ptr<Catalog> catalog = Open();
  Result<std::unique_ptr<Reader>> reader = Reader::Open(directory_);
  ASSERT_TRUE(reader) << reader.error().ToString();
  Apply(*catalog, {SmallRun("r-1")});
  StoreEvents events = OneEvent(1, "");
  events.records[0].mutable_result()->set_laid_out_bytes(12);
  Apply(*catalog, {PutAssignment{SmallAssignment("r-1", AssignmentState::kClosed)}, events});

  Result<v1::RunRecord> record = (*reader)->Run("r-1");
  ASSERT_TRUE(record) << record.error().ToString();
  ASSERT_EQ(record->trials_size(), 2);
  ASSERT_EQ(record->trials(0).assignments_size(), 1);
  EXPECT_EQ(record->trials(0).assignments(0).result().laid_out_bytes(), 12U);
  EXPECT_FALSE(record->trials(0).assignments(0).late());
  EXPECT_EQ((*reader)->Run("r-9").error().code(), Errc::kNotFound);
}

TEST_F(CatalogTest, ARunIsReadAsFarAsIsAskedFor) {
  std::unique_ptr<Catalog> catalog = Open();
  Apply(*catalog, {SmallRun("r-1")});
  StoreEvents events = OneEvent(1, "");
  events.records[0].mutable_result()->set_laid_out_bytes(12);
  Apply(*catalog, {PutAssignment{SmallAssignment("r-1", AssignmentState::kAbandoned)}, events});
  // Whoever parses the result now fails, so a level that succeeds has not touched it.
  Result<Query> damage = catalog->database().Prepare("UPDATE events SET body = ?");
  ASSERT_TRUE(damage);
  ASSERT_TRUE(damage->With(Blob{"\xff"}).Run());
  Result<std::unique_ptr<Reader>> reader = Reader::Open(directory_);
  ASSERT_TRUE(reader);

  Result<v1::RunRecord> run = (*reader)->Run("r-1", Level::kSummary);
  ASSERT_TRUE(run) << run.error().ToString();
  EXPECT_EQ(run->summary().playbook_name(), "pages");
  EXPECT_EQ(run->summary().trials_total(), 2U);
  EXPECT_EQ(run->trials(1).summary().repeat(), 1U);
  EXPECT_FALSE(run->has_plan());
  EXPECT_EQ(run->playbook_text(), "");

  run = (*reader)->Run("r-1", Level::kPlan);
  ASSERT_TRUE(run) << run.error().ToString();
  EXPECT_EQ(run->plan().playbook_name(), "pages");
  EXPECT_EQ(run->playbook_text(), "playbook: pages\n");
  EXPECT_EQ(run->trials(0).assignments_size(), 0);

  run = (*reader)->Run("r-1", Level::kAssignments);
  ASSERT_TRUE(run) << run.error().ToString();
  ASSERT_EQ(run->trials(0).assignments_size(), 1);
  EXPECT_FALSE(run->trials(0).assignments(0).has_result());
  EXPECT_TRUE(run->trials(0).assignments(0).late());

  EXPECT_EQ((*reader)->Run("r-1", Level::kResults).error().code(), Errc::kCorrupt);
}

TEST_F(CatalogTest, TrialsAreReadOneByOneUntilTheReaderIsInterrupted) {
  std::unique_ptr<Catalog> catalog = Open();
  Apply(*catalog,
        {SmallRun("r-1"), PutAssignment{SmallAssignment("r-1", AssignmentState::kOffered)}});
  Result<std::unique_ptr<Reader>> reader = Reader::Open(directory_);
  ASSERT_TRUE(reader);
  std::vector<v1::TrialRecord> trials;
  const auto keep = [&](v1::TrialRecord trial) {
    trials.push_back(std::move(trial));
    return true;
  };
  ASSERT_TRUE((*reader)->EachTrial("r-1", 1, Level::kResults, keep));
  ASSERT_EQ(trials.size(), 1U);
  EXPECT_EQ(trials[0].summary().index(), 1U);
  EXPECT_EQ(trials[0].assignments_size(), 0);
  const auto keep_one = [&](v1::TrialRecord trial) { return keep(std::move(trial)), false; };
  ASSERT_TRUE((*reader)->EachTrial("r-1", 0, Level::kResults, keep_one));
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[1].assignments(0).state(), "offered");

  // All that is asked meanwhile is of one instant, also when the run changes between two questions.
  Result<std::size_t> seen = (*reader)->AtOneInstant([&]() -> Result<std::size_t> {
    EXPECT_EQ((*reader)->Runs(10)->size(), 1U);
    Apply(*catalog, {SmallRun("r-2")});
    return (*reader)->Runs(10)->size();
  });
  EXPECT_EQ(seen.value_or(0), 1U);
  EXPECT_EQ((*reader)->Runs(10)->size(), 2U);

  (*reader)->Interrupt();
  EXPECT_EQ((*reader)->EachTrial("r-1", 0, Level::kSummary, keep).error().code(),
            Errc::kUnavailable);
}

}  // namespace
}  // namespace labrack::catalog
