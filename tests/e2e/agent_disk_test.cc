// Goal: when the agent's own disk fails or is full, nothing that was promised is lost, nothing is
// claimed that is not durable, and whatever goes wrong ends with its reason. Method: the real agent
// and worker; syncs that fail with EIO (failing_sync.cc); a small file system of the test's own
// that runs full in mid-trial.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "agent/worker/trial_files.h"
#include "tests/e2e/agent_fixture.h"

namespace labrack::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Heard = TestController::Heard;

// Words to start a program with, so that a sync can be made to fail.
std::vector<std::string> WithFailingSync(const std::filesystem::path& control) {
  return {"/usr/bin/env", std::string("LD_PRELOAD=") + LABRACK_FAILING_SYNC_LIBRARY,
          "LABRACK_FAILING_SYNC=" + control.string()};
}

class AgentDiskTest : public AgentFixture {
 protected:
  AgentDiskTest() { launcher_ = WithFailingSync(control_); }
  void FailSyncOf(const std::string& path) { std::ofstream(control_) << path; }

  std::filesystem::path control_ = temp_.path() / "failing";
};

TEST_F(AgentDiskTest, AJournalThatCannotBeSyncedEndsTheAgentAndTheNextOneGoesOn) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(4));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();

  FailSyncOf("agent.db");
  const v1::AssignmentSpec next = StreamOnDirectory("run-1/1/st-01", kEpoch + 2);
  controller_.SendAssign(next, "c2");
  EXPECT_EQ(agent_->Wait(seconds(10)), 5) << Log();
  EXPECT_NE(Log().find("fsync failed"), std::string::npos) << Log();
  EXPECT_NE(Log().find("start the agent again"), std::string::npos) << Log();
  // Neither yes nor no: what the journal holds is not known before it is read again.
  EXPECT_EQ(controller_.heard().AckOf("c2"), nullptr);
  EXPECT_EQ(controller_.heard().goodbyes, 1U);
  EXPECT_GT(WorkerPid(), 0) << "the trial that runs is not touched";

  StartAgent();
  ASSERT_TRUE(WaitForHello(2)) << Log();
  EXPECT_GE(controller_.heard().hellos[1].held_size(), 1);
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->assignment_id(), spec.assignment_id());
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK);
  ExpectWholeHistory();
  controller_.ForgetEvents();
  controller_.SendWant(spec, v1::WANT_CLOSED, "closed");
  EXPECT_EQ(Assign(next, "c3").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK);
  ExpectClosed(next);
}

TEST_F(AgentDiskTest, WithItsParentAnAgentWithoutAJournalStopsItsTrialFirst) {
  StartAgent("exit_with_parent: true\n");
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(60));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  FailSyncOf("agent.db");
  controller_.SendAssign(StreamOnDirectory("run-1/1/st-01", kEpoch + 2), "c2");
  EXPECT_EQ(agent_->Wait(seconds(20)), 5) << Log();
  EXPECT_EQ(WorkerPid(), -1);
  EXPECT_TRUE(FilesBelow(state_ / "disks").empty());
}

TEST_F(AgentDiskTest, AnAgentWhoseJournalCannotBeSyncedAtItsStartSaysSo) {
  std::filesystem::create_directories(state_);
  FailSyncOf("agent.db");
  StartAgent();
  EXPECT_EQ(agent_->Wait(seconds(10)), 5) << Log();
  EXPECT_NE(Log().find("fsync failed"), std::string::npos) << Log();
}

TEST_F(AgentDiskTest, AWorkerThatCannotStartItsSpoolIsQuoted) {
  const v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  // Somebody else's spool where the trial's will be.
  const std::filesystem::path spool =
      state_ / "trials" / worker::TrialName(spec.assignment_id(), spec.epoch()) / "spool";
  std::filesystem::create_directories(spool);
  std::ofstream(spool / "000001.seg") << "not ours";
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForResult()) << Log();
  const Heard heard = controller_.heard();
  EXPECT_NE(heard.result()->measurement().reason().find("exit code 5: "), std::string::npos)
      << heard.result()->measurement().reason();
  EXPECT_NE(heard.result()->measurement().reason().find("holds a spool already"), std::string::npos)
      << heard.result()->measurement().reason();
  ExpectClosed(spec);
}

}  // namespace
}  // namespace labrack::e2e
