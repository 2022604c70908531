// Goal: a loop that cannot do what is due neither spins nor keeps it to itself.
// Method: the real loop on a catalog in a temporary directory, with a run whose trials have all
// ended; the jobs' queue is filled, or the catalog is made to refuse the first commit.
#include <filesystem>
#include <future>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "controller/api/brain.h"

namespace labrack::api {
namespace {

using std::chrono::milliseconds;

Nanoseconds ProcessorTime() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return std::chrono::seconds(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         std::chrono::microseconds(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

class BrainTest : public testing::Test {
 protected:
  BrainTest() {
    std::string name = (std::filesystem::temp_directory_path() / "labrack-brain-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    Result<std::unique_ptr<catalog::Catalog>> catalog = catalog::Catalog::Open(directory_);
    EXPECT_TRUE(catalog);
    catalog_ = *std::move(catalog);
    Result<std::unique_ptr<Jobs>> jobs = Jobs::Start(directory_);
    EXPECT_TRUE(jobs);
    jobs_ = *std::move(jobs);
    catalog::InsertRun run;
    run.run.id = "r-1";
    const std::vector<catalog::Change> changes = {run};
    EXPECT_TRUE(catalog_->Apply(changes));
  }
  ~BrainTest() override {
    brain_.reset();
    jobs_.reset();
    catalog_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Start() {
    Result<std::unique_ptr<Brain>> brain = Brain::Start({.catalog = catalog_.get(),
                                                         .jobs = jobs_.get(),
                                                         .metrics = &metrics_,
                                                         .roster = {},
                                                         .run = {}});
    ASSERT_TRUE(brain);
    brain_ = *std::move(brain);
  }

  std::filesystem::path directory_;
  Metrics metrics_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<Brain> brain_;
};

TEST_F(BrainTest, AVerdictThatFindsNoRoomIsWantedAgainWithoutSpinning) {
  std::promise<void> release;
  std::promise<void> begun;
  jobs_->Post([&](catalog::Reader&) {
    begun.set_value();
    release.get_future().wait();
  });
  begun.get_future().wait();
  while (jobs_->Post([](catalog::Reader&) {})) {
  }
  Start();
  const Nanoseconds before = ProcessorTime();
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_LT(ProcessorTime() - before, milliseconds(200));
  release.set_value();
  for (int wait = 0; wait < 100; ++wait) {
    std::promise<std::string> verdict;
    const bool posted = jobs_->Post([&](catalog::Reader& reader) {
      verdict.set_value(reader.Run("r-1")->summary().verdict());
    });
    if (posted && !verdict.get_future().get().empty()) return;
    std::this_thread::sleep_for(milliseconds(50));
  }
  FAIL() << "no verdict";
}

TEST_F(BrainTest, AFailureBeforeSomebodyListensIsToldAllTheSame) {
  ASSERT_TRUE(catalog_->database().Execute(
      "CREATE TRIGGER full BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'no space'); END"));
  Start();
  for (int wait = 0; wait < 100 && !brain_->failure(); ++wait) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  ASSERT_TRUE(brain_->failure());
  int told = 0;
  brain_->OnFailure([&](const Error&) { ++told; });
  EXPECT_EQ(told, 1);
}

TEST(ByteBudgetTest, SharesGiveBackWhatTheyTook) {
  ByteBudget budget(100);
  std::optional<ByteBudget::Share> first = budget.Take(60);
  ASSERT_TRUE(first);
  EXPECT_FALSE(budget.Take(41));
  EXPECT_TRUE(budget.Take(40));
  EXPECT_EQ(budget.taken(), 60U);
  ByteBudget::Share moved = *std::move(first);
  first.reset();
  EXPECT_EQ(budget.taken(), 60U) << "moved, not given back";
}

}  // namespace
}  // namespace labrack::api
