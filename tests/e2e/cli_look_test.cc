// Goal: whoever looks neither disturbs a lab, nor other lookers, nor the catalog; a run that a
// killed lab left is left alone until the next run, and every verb says so. Method: the real
// binaries side by side, in state directories that are read-only, old, or left by a killed lab.
#include <atomic>
#include <signal.h>

#include <fmt/format.h>

#include "controller/catalog/catalog.h"
#include "controller/catalog/schema.h"
#include "tests/e2e/cli_fixture.h"

namespace labrack {
namespace {

// How often a controller was started on the catalog of the lab.
std::int64_t Epoch(const fs::path& state) {
  Result<std::unique_ptr<catalog::Database>> database = catalog::Database::Open(
      state / "controller" / catalog::kCatalogFile, catalog::Access::kReader);
  EXPECT_TRUE(database) << database.error().ToString();
  Result<catalog::Query> query =
      (*database)->Prepare("SELECT value FROM meta WHERE name = 'controller_epoch'");
  EXPECT_TRUE(query && query->Step().value_or(false));
  return query->Integer(0);
}

TEST_F(CliTest, WhoeverLooksNeitherDisturbsOthersNorChangesAnything) {
  EXPECT_EQ(Run({"ls"}).output, "no runs yet; start one with `labrack run PLAYBOOK`\n");
  EXPECT_FALSE(fs::exists(directory_ / "state"));
  Write("tiny.yaml", kTiny);
  EXPECT_EQ(Run({"run", "tiny.yaml", "--trials", "1"}).exit_code, 0);
  const std::string id = NewestRun();
  const std::int64_t epoch = Epoch(StateDirectory());
  const std::string catalog = ReadAll(StateDirectory() / "controller" / catalog::kCatalogFile);
  const std::vector<std::vector<std::string>> calls = {
      {"show", id},   {"compare", id, id}, {"ls"},        {"status", id},
      {"export", id}, {"wait", id},        {"watch", id}, {"show", id, "--json", "-"}};
  std::vector<Background> lookers;
  for (int round = 0; round < 3; ++round) {
    for (const auto& words : calls) {
      lookers.push_back(Start(fmt::format("look-{}", lookers.size()), Labrack(words)));
    }
  }
  for (Background& looker : lookers) {
    EXPECT_EQ(ExitCodeOf(looker), 0) << ReadAll(looker.errors);
    EXPECT_THAT(ReadAll(looker.output) + ReadAll(looker.errors), HasSubstr(id));
  }
  EXPECT_EQ(Epoch(StateDirectory()), epoch);
  EXPECT_EQ(ReadAll(StateDirectory() / "controller" / catalog::kCatalogFile), catalog);
}

TEST_F(CliTest, LookingDoesNotStandInTheWayOfARun) {
  Write("tiny.yaml", kTiny);
  std::atomic<bool> stop = false;
  std::vector<std::thread> lookers;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ls", "--json"}, {"host", "ls"}}) {
    lookers.emplace_back([&, words] {
      while (!stop) {
        const exec::Outcome looked = Run(words);
        EXPECT_EQ(looked.exit_code, 0) << looked.errors;
        std::this_thread::sleep_for(300ms);  // a private lab after the other would leave no turn
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    const exec::Outcome run = Run({"run", "tiny.yaml", "--trials", "1"});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
  }
  stop = true;
  for (std::thread& looker : lookers) looker.join();
}

TEST_F(CliTest, LookingNeedsNoWriteAccess) {
  Write("tiny.yaml", kTiny);
  EXPECT_EQ(Run({"run", "tiny.yaml", "--trials", "1"}).exit_code, 0);
  const std::string id = NewestRun();
  // With and without what a reader has left beside the file, and with a name that a URI would read
  // otherwise.
  for (const std::string name : {"labrack", "50%3f?#"}) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"ls"}, {"show", id}, {"status", id}, {"wait", id}}) {
      std::vector<std::string> with_state = words;
      with_state.insert(with_state.end(), {"--state", StateDirectory()});
      const exec::Outcome looked = RunReadOnly(with_state);
      EXPECT_EQ(looked.exit_code, 0) << looked.errors;
      EXPECT_THAT(looked.output + looked.errors, HasSubstr(id));
    }
    fs::rename(StateDirectory(), directory_ / "state" / "50%3f?#");
    state_name_ = "50%3f?#";
    for (const char* file : {"catalog.db-wal", "catalog.db-shm"}) {
      fs::remove(StateDirectory() / "controller" / file);
    }
  }
}

TEST_F(CliTest, ACatalogOfAnOlderBuildIsBroughtUpToDateByWhoeverLooksFirst) {
  const fs::path file = StateDirectory() / "controller" / catalog::kCatalogFile;
  fs::create_directories(file.parent_path());
  {
    Result<std::unique_ptr<catalog::Database>> old =
        catalog::Database::Open(file, catalog::Access::kWriter);
    ASSERT_TRUE(old);
    ASSERT_TRUE(catalog::Migrate(**old, file, 1));
    ASSERT_TRUE((*old)->Execute(
        "INSERT INTO runs VALUES('r-old', 'done', '', 'pages', 'p.yaml', '', x'', 'me', NULL, 0, "
        "5, 6, 0, 'PASSED')"));
  }
  const exec::Outcome refused = RunReadOnly({"ls"});
  EXPECT_EQ(refused.exit_code, ToInt(ExitCode::kLabFailed));
  EXPECT_THAT(refused.errors, HasSubstr("an older labrack wrote the catalog"));
  std::vector<Background> lookers;
  for (int number = 0; number < 3; ++number) {
    lookers.push_back(Start(fmt::format("ls-{}", number), Labrack({"ls"})));
  }
  for (Background& looker : lookers) {
    EXPECT_EQ(ExitCodeOf(looker), 0) << ReadAll(looker.errors);
    EXPECT_THAT(ReadAll(looker.output), HasSubstr("r-old"));
  }
  EXPECT_TRUE(fs::exists(file.string() + ".v1"));
}

class LeftRunTest : public InterruptTest {
 protected:
  // Nobody carries the run on, and every verb that looks says so; waiting for it would never end.
  void ExpectLeft(const std::string& id) const {
    const std::string reason = "left by a lab that was killed; the next `labrack run` cancels it";
    for (const exec::Outcome& listed : {Run({"ls"}), RunReadOnly({"ls"}), Run({"status", id})}) {
      EXPECT_EQ(listed.exit_code, 0) << listed.errors;
      EXPECT_THAT(listed.output, HasSubstr("unfinished"));
      EXPECT_THAT(listed.output, HasSubstr(reason));
    }
    EXPECT_THAT(Run({"ls", "--json"}).output, HasSubstr(reason));
    const exec::Outcome shown = Run({"show", id});
    EXPECT_EQ(shown.exit_code, ToInt(ExitCode::kLabFailed)) << shown.errors;
    EXPECT_THAT(shown.output, HasSubstr("left out: " + id + ": failed: unfinished, left by a lab"));
    for (const char* verb : {"wait", "watch"}) {
      const exec::Outcome waited = Run({verb, id});
      EXPECT_EQ(waited.exit_code, ToInt(ExitCode::kLabFailed)) << waited.errors;
      EXPECT_THAT(waited.errors, HasSubstr("error: " + id + ": it will not end"));
      EXPECT_THAT(waited.errors, HasSubstr("start it again with `labrack run"));
      EXPECT_LT(waited.wall, 10s);
    }
  }
};

TEST_F(LeftRunTest, AgentsOfAKilledLabEndByThemselvesAndTheNextRunGoesOn) {
  Background run = StartLong("run");
  ASSERT_TRUE(run.child.Signal(SIGKILL));
  ExitCodeOf(run, 10s);
  EXPECT_TRUE(WaitUntil(60s, [&] { return OurProcesses().empty(); }))
      << ::testing::PrintToString(OurProcesses());
  const std::string id = NewestRun();
  ExpectLeft(id);
  // What asks the agents leaves it as it is, though they hold a trial of it.
  const std::string before = Run({"status", id}).output;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"plan", "long.yaml"}, {"host", "ls"}, {"disk", "ls"}}) {
    const exec::Outcome asked = Run(words);
    EXPECT_EQ(asked.exit_code, 0) << asked.errors;
    EXPECT_THAT(asked.errors, Not(HasSubstr(id)));
    EXPECT_EQ(Run({"status", id}).output, before);
    ExpectLeft(id);
  }
  Write("tiny.yaml", kTiny);
  const exec::Outcome next = Run({"run", "tiny.yaml", "--agents", "2", "--trials", "1"});
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_THAT(next.errors,
              HasSubstr(id + ": left unfinished by a lab that was killed; cancelling"));
  EXPECT_THAT(Run({"status", id}).output, HasSubstr("cancelled"));
  EXPECT_THAT(Run({"ls"}).output, Not(HasSubstr("unfinished")));
  EXPECT_EQ(Run({"wait", id}).exit_code, ToInt(ExitCode::kCancelled));
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
}

TEST_F(InterruptTest, ASecondRunIsToldAndLookersSeeTheFirst) {
  Background run = StartLong("run");
  Write("tiny.yaml", kTiny);
  const exec::Outcome second = Run({"run", "tiny.yaml"});
  EXPECT_EQ(second.exit_code, ToInt(ExitCode::kLabFailed));
  EXPECT_THAT(second.errors, HasSubstr("another labrack (pid"));

  const std::string id = NewestRun();
  EXPECT_THAT(Run({"status", id}).output, HasSubstr("running"));
  EXPECT_THAT(Run({"host", "ls"}).output, HasSubstr("agent-2"));
  const exec::Outcome waited = Run({"wait", id, "--timeout", "500ms"});
  EXPECT_EQ(waited.exit_code, ToInt(ExitCode::kWaitTimedOut)) << waited.errors;
  EXPECT_EQ(Run({"cancel", id}).exit_code, 0);
  EXPECT_EQ(ExitCodeOf(run, 60s), ToInt(ExitCode::kCancelled)) << ReadAll(run.errors);
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace labrack
