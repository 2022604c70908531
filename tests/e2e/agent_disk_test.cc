// Goal: when the agent's own disk fails or is full, nothing that was promised is lost, nothing is
// claimed that is not durable, and whatever goes wrong ends with its reason. Method: the real agent
// and worker; syncs that fail with EIO (failing_sync.cc); a small file system of the test's own
// that runs full in mid-trial.
#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <sys/mount.h>
#include <thread>

#include <gtest/gtest.h>

#include "agent/stack/host_ability.h"
#include "agent/worker/trial_files.h"
#include "proto/fields/fields.h"
#include "storage/base/descriptor.h"
#include "tests/e2e/agent_fixture.h"
#include "tests/e2e/stack_traces.h"

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

// --- full disks ---

// A file system of its own, with this much room. Needs root.
class SmallFileSystem {
 public:
  SmallFileSystem(std::filesystem::path at, const std::string& size) : at_(std::move(at)) {
    std::filesystem::create_directories(at_);
    mounted_ = mount("labrack-test", at_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallFileSystem() {
    if (mounted_) umount2(at_.c_str(), MNT_DETACH);
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;

  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return at_; }

 private:
  std::filesystem::path at_;
  bool mounted_ = false;
};

// Takes what room there is in a directory, until it goes out of scope.
class Hog {
 public:
  explicit Hog(const std::filesystem::path& directory) : file_(directory / "hog") { Take(); }
  ~Hog() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;

  void Take() {
    const Descriptor file(open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (off_t piece = 64 << 20; piece >= 4096; piece /= 4) {
      while (fallocate(file.get(), 0, size_, piece) == 0) size_ += piece;
    }
  }
  off_t size() const { return size_; }

 private:
  std::filesystem::path file_;
  off_t size_ = 0;
};

class FullDiskTest : public AgentFixture {
 protected:
  FullDiskTest() { state_ = small_.path() / "state"; }
  void SetUp() override {
    if (!small_.mounted()) GTEST_SKIP() << "a tmpfs cannot be mounted here (not root)";
    std::filesystem::create_directory(elsewhere_);
  }
  void StartMeasuring(const v1::AssignmentSpec& spec) {
    StartAgent("directories: [" + elsewhere_.string() + "]\n");
    ASSERT_TRUE(WaitForHello(1)) << Log();
    ASSERT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK) << Log();
    ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  }
  // Takes its time, and says more at the end than fits into what is left of a page. The trial's own
  // files are not on the disk that runs full.
  v1::AssignmentSpec FilesElsewhere(const std::string& id, std::uint64_t epoch) const {
    v1::AssignmentSpec spec = SyncPagesOnDirectory(id, epoch, seconds(1));
    spec.mutable_stack()->mutable_host()->mutable_dir()->set_path(elsewhere_.string());
    v1::FilesWorkload& files = *spec.mutable_workload()->mutable_files();
    fields::FillDefaults(files);
    files.set_files(3000);
    files.set_fsync(true);
    return spec;
  }
  void ExpectThatTheNextTrialRuns(std::uint64_t epoch) {
    const v1::AssignmentSpec next = StreamOnDirectory("run-1/next/st-01", epoch);
    ASSERT_TRUE(WaitUntil(seconds(10), [&] {
      static int attempt = 0;
      return Assign(next, "next-" + std::to_string(++attempt)).result() == v1::COMMAND_RESULT_OK;
    })) << Log();
    ASSERT_TRUE(WaitForResult()) << Log();
    EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK)
        << controller_.heard().result()->measurement().reason();
    ExpectClosed(next);
  }
  void CloseAndForget(const v1::AssignmentSpec& spec) {
    ExpectClosed(spec);
    controller_.ForgetEvents();
  }

  SmallFileSystem small_{temp_.path() / "small", "400m"};  // a trial wants 256 MiB free
  std::filesystem::path elsewhere_ = temp_.path() / "elsewhere";
};

bool HasWarning(const v1::AssignmentResult& result, const std::string& code) {
  return std::any_of(result.warnings().begin(), result.warnings().end(),
                     [&](const v1::Warning& warning) { return warning.code() == code; });
}

TEST_F(FullDiskTest, TheResultComesFromAStateDirectoryThatRanFullWithAWordAboutWhatWasLost) {
  const v1::AssignmentSpec spec = FilesElsewhere("run-1/0/st-01", kEpoch + 1);
  ASSERT_NO_FATAL_FAILURE(StartMeasuring(spec));
  {
    const Hog hog(small_.path());
    ASSERT_GT(hog.size(), 0);
    ASSERT_TRUE(WaitForResult()) << Log();
    const Heard heard = controller_.heard();
    EXPECT_EQ(heard.result()->measurement().outcome(), v1::OUTCOME_OK)
        << heard.result()->measurement().reason();
    EXPECT_EQ(heard.result()->clean_up().outcome(), v1::OUTCOME_OK);
    EXPECT_TRUE(HasWarning(*heard.result(), "LW304"));
    EXPECT_EQ(heard.result()->steps_size(), 4) << "in the result every step stands";
    ExpectWholeHistory();
    const v1::AssignmentSpec next = StreamOnDirectory("run-1/1/st-01", kEpoch + 2);
    EXPECT_EQ(Assign(next, "c2").code(), "DISK_LOW");
  }
  CloseAndForget(spec);
  ExpectThatTheNextTrialRuns(kEpoch + 2);
}

// Whatever is released is taken at once: not even what the spool keeps in reserve is there.
TEST_F(FullDiskTest, WithoutAnyRoomLeftTheTrialWaitsForRoomAndEndsWithItsReason) {
  const v1::AssignmentSpec spec = FilesElsewhere("run-1/0/st-01", kEpoch + 1);
  ASSERT_NO_FATAL_FAILURE(StartMeasuring(spec));
  {
    Hog hog(small_.path());
    std::jthread greedy([&hog](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(milliseconds(1))) hog.Take();
    });
    EXPECT_TRUE(WaitUntil(seconds(60), [&] { return WorkerPid() < 0; })) << Log();
    std::this_thread::sleep_for(seconds(1));
    EXPECT_FALSE(agent_->Wait(Nanoseconds(0))) << "it goes on: " << Log();
  }
  ASSERT_TRUE(WaitForResult()) << Log();
  const Heard heard = controller_.heard();
  if (heard.result()->measurement().outcome() != v1::OUTCOME_OK) {
    EXPECT_NE(heard.result()->measurement().reason().find("No space left"), std::string::npos)
        << heard.result()->measurement().reason();
  }
  EXPECT_EQ(heard.result()->clean_up().outcome(), v1::OUTCOME_OK);
  ExpectWholeHistory();
  EXPECT_TRUE(FilesBelow(elsewhere_).empty());
  CloseAndForget(spec);
  ExpectThatTheNextTrialRuns(kEpoch + 2);
}

class FullStackTest : public FullDiskTest {
 protected:
  void SetUp() override {
    FullDiskTest::SetUp();
    if (IsSkipped()) return;
    const std::string reason = stack::WhyNoDisks(stack::ProbeHost(stack::ZfsProbe::kSkip));
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  // 32 MiB written block by block, each of them synced.
  static v1::AssignmentSpec StreamOnExt4(const std::string& id, std::uint64_t epoch) {
    v1::AssignmentSpec spec = OnExt4(StreamOnDirectory(id, epoch));
    v1::StreamWorkload& stream = *spec.mutable_workload()->mutable_stream();
    stream.set_file(32 << 20);
    stream.set_block(4096);
    stream.set_sync(v1::STREAM_SYNC_EACH);
    return spec;
  }
  static std::uintmax_t BytesBelow(const std::filesystem::path& directory) {
    std::uintmax_t bytes = 0;
    for (const std::string& name : FilesBelow(directory)) {
      std::error_code ignored;
      const std::uintmax_t size = std::filesystem::file_size(directory / name, ignored);
      if (!ignored) bytes += size;
    }
    return bytes;
  }
  void ExpectNothingIsLeft() const {
    EXPECT_EQ(MountBelow(state_), "");
    EXPECT_FALSE(HasLoopDeviceBelow(state_));
    EXPECT_TRUE(FilesBelow(state_ / "disks").empty());
    EXPECT_TRUE(FilesBelow(state_ / "mounts").empty());
  }
};

TEST_F(FullStackTest, AFileSystemUnderTestThatRunsFullFailsTheMeasurementAndNothingStays) {
  const v1::AssignmentSpec spec = StreamOnExt4("run-1/0/st-01", kEpoch + 1);
  ASSERT_NO_FATAL_FAILURE(StartMeasuring(spec));
  const std::filesystem::path mounted = MountBelow(state_);
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return BytesBelow(mounted) > 64 << 10; })) << Log();
  {
    // As a process of somebody else's would, which then goes away.
    const Hog hog(mounted);
    ASSERT_GT(hog.size(), 0);
    ASSERT_TRUE(WaitForResult()) << Log();
  }
  const Heard heard = controller_.heard();
  const v1::AssignmentResult& result = *heard.result();
  EXPECT_EQ(result.measurement().outcome(), v1::OUTCOME_FAILED) << result.measurement().reason();
  EXPECT_NE(result.measurement().reason().find("No space left on device"), std::string::npos)
      << result.measurement().reason();
  EXPECT_EQ(result.environment_verdict().outcome(), v1::OUTCOME_OK)
      << result.environment_verdict().reason();
  EXPECT_EQ(result.clean_up().outcome(), v1::OUTCOME_OK) << result.clean_up().reason();
  EXPECT_GT(CountOf(result, "write"), 0U) << "it was measured until then";
  ExpectWholeHistory();
  ExpectNothingIsLeft();
  CloseAndForget(spec);
  ExpectThatTheNextTrialRuns(kEpoch + 2);
}

// The disks' room was taken when they were made.
TEST_F(FullStackTest, AStackIsMeasuredOnThoughTheFileSystemBelowItsDisksRunsFull) {
  const v1::AssignmentSpec spec = StreamOnExt4("run-1/0/st-01", kEpoch + 1);
  // 64 MiB of the 400 MiB are the disk's.
  ASSERT_NO_FATAL_FAILURE(StartMeasuring(spec));
  {
    const Hog hog(small_.path());
    ASSERT_GT(hog.size(), 0);
    ASSERT_TRUE(WaitForResult()) << Log();
  }
  const Heard heard = controller_.heard();
  EXPECT_EQ(heard.result()->measurement().outcome(), v1::OUTCOME_OK)
      << heard.result()->measurement().reason();
  EXPECT_EQ(heard.result()->verified(), v1::VERIFY_OUTCOME_MATCHED);
  EXPECT_EQ(heard.result()->clean_up().outcome(), v1::OUTCOME_OK);
  ExpectNothingIsLeft();
  CloseAndForget(spec);
  ExpectThatTheNextTrialRuns(kEpoch + 2);
}

}  // namespace
}  // namespace labrack::e2e
