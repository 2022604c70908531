// Goal: whatever a trial starts ends with it, and a host that could not be cleaned is said to be so
// until it is clean: nothing is forgotten, and no trial is measured beside it. Method: the real
// agent and worker on an ext4 of loop devices; daemons, fio, a worker that is killed, a file that
// somebody else keeps open. Needs root; skipped otherwise.
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "agent/exec/family.h"
#include "agent/exec/program.h"
#include "agent/stack/host_ability.h"
#include "agent/worker/trial_files.h"
#include "proto/fields/fields.h"
#include "storage/base/descriptor.h"
#include "tests/e2e/agent_fixture.h"
#include "tests/e2e/stack_traces.h"

namespace labrack::e2e {
namespace {

using std::chrono::seconds;
using Heard = TestController::Heard;

class AgentCleanTest : public AgentFixture {
 protected:
  void SetUp() override {
    const std::string reason = stack::WhyNoDisks(stack::ProbeHost(stack::ZfsProbe::kSkip));
    if (!reason.empty()) GTEST_SKIP() << reason;
    StartAgent("allow_exec: true\n");
    ASSERT_TRUE(WaitForHello(1)) << Log();
  }
  static v1::AssignmentSpec PagesOnExt4(const std::string& id, std::uint64_t epoch) {
    return OnExt4(SyncPagesOnDirectory(id, epoch, seconds(60)));
  }
  v1::AssignmentSpec ExecOnExt4(const std::string& script) const {
    v1::AssignmentSpec spec = PagesOnExt4("run-1/0/st-01", kEpoch + 1);
    v1::ExecWorkload& command = *spec.mutable_workload()->mutable_exec();
    fields::FillDefaults(command);
    for (const std::string& word : {std::string("sh"), std::string("-c"), script}) {
      command.add_command(word);
    }
    return spec;
  }
  // Where the stack is mounted now; empty: nowhere.
  std::filesystem::path Mounted() const { return MountBelow(state_); }
  void ExpectCleanAndClosed(const v1::AssignmentSpec& spec) {
    ExpectClosed(spec);
    EXPECT_EQ(Mounted(), "");
    EXPECT_FALSE(HasLoopDeviceBelow(state_));
  }
  void ExpectCleanUp(v1::Outcome outcome) {
    const Heard heard = controller_.heard();
    ASSERT_NE(heard.result(), nullptr);
    EXPECT_EQ(heard.result()->clean_up().outcome(), outcome) << heard.result()->clean_up().reason();
  }
};

// It works on the stack, so that nothing could be unmounted under it.
TEST_F(AgentCleanTest, ADaemonOfACommandEndsWithItsTrial) {
  for (const char* way : {"", "env -i "}) {
    const std::string word = (temp_.path() / "daemon").string();
    const v1::AssignmentSpec spec = [&] {
      v1::AssignmentSpec made = ExecOnExt4(std::string(way) + "setsid -f sh -c 'touch " + word +
                                           "; while sleep 0.05; do : > tick; done'; while [ ! -e " +
                                           word + " ]; do sleep 0.01; done");
      made.set_assignment_id(std::string("run-1/") + (*way == '\0' ? "0" : "1") + "/st-01");
      made.set_epoch(kEpoch + (*way == '\0' ? 1 : 2));
      return made;
    }();
    ASSERT_EQ(Assign(spec, spec.assignment_id()).result(), v1::COMMAND_RESULT_OK) << Log();
    ASSERT_TRUE(WaitForResult()) << Log();
    EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK)
        << controller_.heard().result()->measurement().reason();
    ExpectCleanUp(v1::OUTCOME_OK);
    EXPECT_TRUE(ProcessesWith(word).empty());
    ExpectCleanAndClosed(spec);
    controller_.ForgetEvents();
    std::filesystem::remove(word);
  }
}

// fio puts each job into a session of its own.
TEST_F(AgentCleanTest, FiosJobsEndWithAWorkerThatIsKilled) {
  if (!exec::FindProgram("fio")) GTEST_SKIP() << "fio is not installed";
  v1::AssignmentSpec spec = PagesOnExt4("run-1/0/st-01", kEpoch + 1);
  v1::FioWorkload& fio = *spec.mutable_workload()->mutable_fio();
  fields::FillDefaults(fio);
  const std::string job = "job" + std::to_string(getpid());
  fio.set_job("[" + job + "]\nrw=randwrite\nbs=4k\nsize=4m\nioengine=psync\nnumjobs=2\n" +
              "time_based=1\nruntime=120\n");
  ASSERT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK) << Log();
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  // fio and its two jobs.
  const std::filesystem::path trial =
      state_ / "trials" / worker::TrialName(spec.assignment_id(), spec.epoch());
  const auto jobs = [&] {
    std::size_t count = 0;
    for (const exec::ProcessFacts& one : exec::MembersOf(exec::TrialFamily(trial.string()))) {
      count += one.name == "fio" ? 1 : 0;
    }
    return count;
  };
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return jobs() >= 3; })) << jobs();
  const pid_t worker = WorkerPid();
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_CRASHED);
  ExpectCleanUp(v1::OUTCOME_OK);
  EXPECT_EQ(jobs(), 0U);
  ExpectCleanAndClosed(spec);
}

TEST_F(AgentCleanTest, AKilledAgentsNextOneEndsWhatWorkerAndAgentLeft) {
  if (!exec::FindProgram("fio")) GTEST_SKIP() << "fio is not installed";
  v1::AssignmentSpec spec = PagesOnExt4("run-1/0/st-01", kEpoch + 1);
  v1::FioWorkload& fio = *spec.mutable_workload()->mutable_fio();
  fields::FillDefaults(fio);
  fio.set_job("[j]\nrw=write\nsize=4m\nioengine=psync\ntime_based=1\nruntime=120\n");
  ASSERT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK) << Log();
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  const pid_t worker = WorkerPid();
  ASSERT_GT(worker, 0);
  agent_->Signal(SIGKILL);
  ASSERT_TRUE(agent_->Wait(seconds(5)));
  kill(worker, SIGKILL);
  StartAgent();
  ASSERT_TRUE(WaitForResult()) << Log();
  ExpectCleanUp(v1::OUTCOME_OK);
  ExpectCleanAndClosed(spec);
}

TEST_F(AgentCleanTest, AHostThatIsNotCleanTakesNoTrialAndForgetsNothingUntilItIs) {
  v1::AssignmentSpec spec = PagesOnExt4("run-1/0/st-01", kEpoch + 1);
  ASSERT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK) << Log();
  const v1::AssignmentSpec waiting = StreamOnDirectory("run-1/1/st-01", kEpoch + 2);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  // Somebody's that is none of ours to kill.
  Descriptor held(open((Mounted() / "held").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(held.valid());
  controller_.SendWant(spec, v1::WANT_STOP, "enough");
  ASSERT_TRUE(WaitForResult()) << Log();
  ExpectCleanUp(v1::OUTCOME_FAILED);
  controller_.ForgetEvents();
  EXPECT_EQ(Assign(waiting, "c2").result(), v1::COMMAND_RESULT_OK) << "it may be clean in time";
  // As the controller does at once.
  controller_.SendWant(spec, v1::WANT_CLOSED, "closed");
  const auto refused = [&] {
    static int attempt = 0;
    v1::AssignmentSpec next = StreamOnDirectory("run-1/2/st-01", kEpoch + 3);
    return Assign(next, "n" + std::to_string(++attempt)).code() == "DIRTY_HOST";
  };
  ASSERT_TRUE(WaitUntil(seconds(90), [&] {
    return Log().find("this host is not clean") != std::string::npos;
  })) << Log();
  EXPECT_TRUE(refused()) << Log();
  EXPECT_TRUE(controller_.WaitFor([&](const Heard& heard) {
    return heard.heartbeat.dirty().find("cannot be unmounted") != std::string::npos;
  })) << controller_.heard().heartbeat.dirty();
  EXPECT_TRUE(controller_.WaitFor([&](const Heard& heard) {
    return heard.result() != nullptr && heard.result()->assignment_id() == waiting.assignment_id();
  })) << "what waits ends too: "
      << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_NOT_STARTED);
  EXPECT_NE(Mounted(), "");
  held.Close();
  EXPECT_TRUE(WaitUntil(seconds(60), [&] {
    return Mounted().empty() && !HasLoopDeviceBelow(state_);
  })) << Log();
  ExpectCleanAndClosed(waiting);
  EXPECT_TRUE(
      controller_.WaitFor([](const Heard& heard) { return heard.heartbeat.dirty().empty(); }));
  controller_.ForgetEvents();
  const v1::AssignmentSpec after = StreamOnDirectory("run-1/3/st-01", kEpoch + 4);
  EXPECT_EQ(Assign(after, "c4").result(), v1::COMMAND_RESULT_OK) << Log();
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK);
  ExpectCleanAndClosed(after);
}

}  // namespace
}  // namespace labrack::e2e
