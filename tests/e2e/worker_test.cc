// Goal: labrack-worker runs a trial by hand, says how it went however it ends, and leaves nothing
// behind. Method: the real binary on a plain directory; its spool is read as the agent would;
// signals in mid-measure.
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "agent/exec/program.h"
#include "agent/stack/host_ability.h"
#include "labrack/v1/worker.pb.h"
#include "proto/fields/fields.h"
#include "storage/base/descriptor.h"
#include "tests/e2e/trial_support.h"

namespace labrack::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkerTest : public testing::Test {
 protected:
  std::unique_ptr<Process> Start(const v1::AssignmentSpec& spec) {
    v1::WorkerSpec local;
    *local.mutable_assignment() = spec;
    local.set_agent_id("st-01");
    local.set_allow_exec(allow_exec_);
    local.set_disks_dir((temp_.path() / "disks").string());
    local.set_mount_dir((temp_.path() / "mounts").string());
    std::string json;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(local, &json).ok());
    std::ofstream(temp_.path() / "trial.json") << json;
    std::vector<std::string> words = launcher_;
    words.insert(words.end(), {Binary("labrack-worker"), "--spec",
                               (temp_.path() / "trial.json").string(), "--dir", trial_.string()});
    return std::make_unique<Process>(std::move(words), temp_.path() / "output");
  }
  std::string Output() const { return ReadText(temp_.path() / "output"); }
  bool WaitForPhase(const v1::AssignmentSpec& spec, v1::PhaseKind phase) const {
    return WaitUntil(seconds(30), [&] { return HasBegun(ReadSpool(trial_, spec), phase); });
  }
  bool NothingIsLeft() const {
    return FilesBelow(temp_.path() / "disks").empty() &&
           FilesBelow(temp_.path() / "mounts").empty();
  }

  TempDirectory temp_;
  std::filesystem::path trial_ = temp_.path() / "trial";
  bool allow_exec_ = false;
  std::vector<std::string> launcher_;  // words before the worker's own
};

TEST_F(WorkerTest, RunsAStreamFromStartToEnd) {
  const v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", 1);
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_EQ(worker->Wait(seconds(60)), 0) << Output();
  const std::vector<v1::EventRecord> records = ReadSpool(trial_, spec);
  const v1::AssignmentResult* result = FindResult(records);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->measurement().outcome(), v1::OUTCOME_OK) << result->measurement().reason();
  EXPECT_EQ(result->environment_verdict().outcome(), v1::OUTCOME_OK);
  EXPECT_EQ(result->clean_up().outcome(), v1::OUTCOME_OK);
  EXPECT_EQ(result->verified(), v1::VERIFY_OUTCOME_MATCHED) << result->verify_detail();
  ASSERT_EQ(result->steps_size(), 1);
  EXPECT_EQ(CountOf(*result, "write"), 64U);
  EXPECT_GT(result->steps(0).measure_end_mono_ns(), result->steps(0).measure_begin_mono_ns());
  EXPECT_TRUE(result->steps(0).has_cpu());
  EXPECT_FALSE(result->environment().host().host_name().empty());
  for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].seq(), i + 1);
  std::vector<v1::PhaseKind> phases;
  for (const v1::PhaseRecord& phase : result->phases()) {
    EXPECT_EQ(phase.end(), v1::PHASE_END_DONE) << phase.ShortDebugString();
    EXPECT_LE(phase.begin_mono_ns(), phase.end_mono_ns());
    if (phases.empty() || phases.back() != phase.phase()) phases.push_back(phase.phase());
  }
  EXPECT_EQ(phases.front(), v1::PHASE_CLAIM);
  EXPECT_NE(std::find(phases.begin(), phases.end(), v1::PHASE_MEASURE), phases.end());
  EXPECT_EQ(phases.back(), v1::PHASE_TEAR_DOWN);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(WorkerTest, RunsSyncPagesForTheirTime) {
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/1/st-01", 2, milliseconds(500));
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_EQ(worker->Wait(seconds(60)), 0) << Output();
  const std::vector<v1::EventRecord> records = ReadSpool(trial_, spec);
  const v1::AssignmentResult* result = FindResult(records);
  ASSERT_NE(result, nullptr);
  ASSERT_EQ(result->steps_size(), 1);
  const v1::StepResult& step = result->steps(0);
  const Nanoseconds window(step.measure_end_mono_ns() - step.measure_begin_mono_ns());
  EXPECT_GE(window, milliseconds(400));  // a client that wakes late begins late
  EXPECT_GT(CountOf(*result, "write"), 0U);
  EXPECT_EQ(result->verified(), v1::VERIFY_OUTCOME_MATCHED) << result->verify_detail();
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(WorkerTest, SigtermInMeasureCancelsAndCleansUp) {
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/2/st-01", 3, seconds(60));
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_TRUE(WaitForPhase(spec, v1::PHASE_MEASURE)) << Output();
  worker->Signal(SIGTERM);
  ASSERT_EQ(worker->Wait(seconds(20)), 1) << Output();
  const std::vector<v1::EventRecord> records = ReadSpool(trial_, spec);
  const v1::AssignmentResult* result = FindResult(records);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->measurement().outcome(), v1::OUTCOME_CANCELLED);
  EXPECT_NE(result->measurement().reason().find("signal 15"), std::string::npos)
      << result->measurement().reason();
  EXPECT_EQ(result->environment_verdict().outcome(), v1::OUTCOME_OK)
      << result->environment_verdict().reason();
  EXPECT_EQ(result->clean_up().outcome(), v1::OUTCOME_OK);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(WorkerTest, APhaseThatTakesTooLongTimesOutAndCleansUp) {
  v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/3/st-01", 4, seconds(60));
  spec.mutable_timeouts()->set_measure(Nanoseconds(seconds(1)).count());
  spec.mutable_workload()->mutable_sync_pages()->set_clients(64);  // a warning, LW105
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_EQ(worker->Wait(seconds(30)), 1) << Output();
  const std::vector<v1::EventRecord> records = ReadSpool(trial_, spec);
  const v1::AssignmentResult* result = FindResult(records);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->measurement().outcome(), v1::OUTCOME_TIMED_OUT)
      << result->measurement().reason();
  EXPECT_NE(result->measurement().reason().find("`timeouts.measure` of 1s"), std::string::npos)
      << result->measurement().reason();
  // One verdict never changes another, and what was seen is said all the same.
  EXPECT_EQ(result->environment_verdict().outcome(), v1::OUTCOME_OK)
      << result->environment_verdict().reason();
  EXPECT_NE(std::find_if(result->warnings().begin(), result->warnings().end(),
                         [](const v1::Warning& warning) { return warning.code() == "LW105"; }),
            result->warnings().end());
  EXPECT_EQ(result->clean_up().outcome(), v1::OUTCOME_OK);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(WorkerTest, JobFileAndReportOfFioDoNotLieOnTheStack) {
  if (!exec::FindProgram("fio")) GTEST_SKIP() << "fio is not installed";
  v1::AssignmentSpec spec = StreamOnDirectory("run-1/8/st-01", 9);
  v1::FioWorkload& fio = *spec.mutable_workload()->mutable_fio();
  fio.set_job("[a]\nsize=1m\nbs=4k\nrw=write\n");
  fio.set_timeout(Nanoseconds(seconds(60)).count());
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_EQ(worker->Wait(seconds(60)), 0) << Output();
  EXPECT_TRUE(std::filesystem::exists(trial_ / "labrack.fio"));
  EXPECT_TRUE(std::filesystem::exists(trial_ / "labrack-fio.json"));
}

// Only what Verify reads back is unmounted for it: here nothing is, and whoever stands in the file
// system, which could not be unmounted then, does no harm.
TEST_F(WorkerTest, WhereNothingIsReadBackNothingIsUnmountedForIt) {
  const std::string reason = stack::WhyNoDisks(stack::ProbeHost(stack::ZfsProbe::kSkip));
  if (!reason.empty()) GTEST_SKIP() << reason;
  v1::AssignmentSpec spec = OnExt4(StreamOnDirectory("run-1/9/st-01", 10));
  v1::ExecWorkload& exec = *spec.mutable_workload()->mutable_exec();
  const std::filesystem::path go = temp_.path() / "go";
  const std::string wait = "until test -e " + go.string() + "; do sleep 0.05; done";
  for (const std::string& word : {std::string("sh"), std::string("-c"), wait}) {
    exec.add_command(word);
  }
  exec.set_timeout(Nanoseconds(seconds(60)).count());
  allow_exec_ = true;
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_TRUE(WaitForPhase(spec, v1::PHASE_MEASURE)) << Output();
  const std::vector<std::string> mounts = FilesBelow(temp_.path() / "mounts");
  ASSERT_FALSE(mounts.empty());
  const std::filesystem::path mounted = temp_.path() / "mounts" / mounts.front();
  Descriptor inside(open(mounted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(inside.valid());
  std::ofstream(go) << "go";
  EXPECT_TRUE(WaitForPhase(spec, v1::PHASE_COLLECT)) << Output();
  inside.Close();
  worker->Wait(seconds(60));
  const std::vector<v1::EventRecord> records = ReadSpool(trial_, spec);
  const v1::AssignmentResult* result = FindResult(records);
  ASSERT_NE(result, nullptr) << Output();
  EXPECT_EQ(result->measurement().outcome(), v1::OUTCOME_OK) << Output();
  EXPECT_EQ(result->environment_verdict().outcome(), v1::OUTCOME_OK)
      << result->environment_verdict().reason();
  EXPECT_EQ(result->clean_up().outcome(), v1::OUTCOME_OK) << result->clean_up().reason();
}

// The choice of `verify` must not decide how fast `delete` is: it finds the file system mounted as
// it was, whether something was read back or not.
TEST_F(WorkerTest, VerifyMountsNothingAnewBeforeTheStepsThatFollow) {
  const std::string reason = stack::WhyNoDisks(stack::ProbeHost(stack::ZfsProbe::kSkip));
  if (!reason.empty()) GTEST_SKIP() << reason;
  std::uint64_t epoch = 11;
  for (const v1::Verify verify : {v1::VERIFY_NONE, v1::VERIFY_ALL}) {
    v1::AssignmentSpec spec = OnExt4(StreamOnDirectory("run-1/10/st-01", ++epoch));
    v1::FilesWorkload& files = *spec.mutable_workload()->mutable_files();
    fields::FillDefaults(files);
    files.set_files(2000);
    files.set_size(100);
    files.set_fsync(false);
    files.set_cache(v1::CACHE_WARM);
    files.set_verify(verify);
    trial_ = temp_.path() / fmt::format("trial-{}", epoch);
    std::unique_ptr<Process> worker = Start(spec);
    ASSERT_EQ(worker->Wait(seconds(60)), 0) << Output();
    const std::vector<v1::EventRecord> records = ReadSpool(trial_, spec);
    const v1::AssignmentResult* result = FindResult(records);
    ASSERT_NE(result, nullptr) << Output();
    ASSERT_EQ(result->steps_size(), 4);
    EXPECT_EQ(result->verified(),
              verify == v1::VERIFY_ALL ? v1::VERIFY_OUTCOME_MATCHED : v1::VERIFY_OUTCOME_NOT_ASKED);
    // A file system that was mounted anew reads its bitmaps and inodes again.
    std::uint64_t read = 0;
    for (const v1::DeviceUse& device : result->steps(3).devices()) read += device.read_bytes();
    EXPECT_EQ(read, 0U) << "verify " << v1::Verify_Name(verify);
  }
}

TEST_F(WorkerTest, AfterSigkillUndoLeavesNothing) {
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/4/st-01", 5, seconds(60));
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_TRUE(WaitForPhase(spec, v1::PHASE_MEASURE)) << Output();
  Process too_early({Binary("labrack-worker"), "--undo", trial_.string()}, temp_.path() / "undo");
  EXPECT_NE(too_early.Wait(seconds(10)), 0) << "nobody undoes under a living worker";
  worker->Signal(SIGKILL);
  ASSERT_EQ(worker->Wait(seconds(10)), 128 + SIGKILL);
  EXPECT_FALSE(NothingIsLeft());
  for (int i = 0; i < 2; ++i) {
    Process undo({Binary("labrack-worker"), "--undo", trial_.string()}, temp_.path() / "undo");
    EXPECT_EQ(undo.Wait(seconds(20)), 0) << ReadText(temp_.path() / "undo");
  }
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(WorkerTest, WhatCannotBeBuiltIsSaidAndNotMeasured) {
  v1::AssignmentSpec spec = StreamOnDirectory("run-1/5/st-01", 6);
  spec.mutable_stack()->mutable_host()->mutable_dir()->set_path("/proc/not-allowed");
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_EQ(worker->Wait(seconds(30)), 1) << Output();
  const std::vector<v1::EventRecord> records = ReadSpool(trial_, spec);
  const v1::AssignmentResult* result = FindResult(records);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->measurement().outcome(), v1::OUTCOME_NOT_STARTED);
  EXPECT_EQ(result->environment_verdict().outcome(), v1::OUTCOME_FAILED);
  EXPECT_NE(result->environment_verdict().reason().find("build"), std::string::npos);
  EXPECT_EQ(result->clean_up().outcome(), v1::OUTCOME_OK);
}

// A second sync may report success for what the first one has lost, so that there is no result; the
// agent says so in its place.
TEST_F(WorkerTest, ASpoolThatCannotBeSyncedEndsInNoResultAndNothingIsLeft) {
  const std::filesystem::path control = temp_.path() / "failing";
  launcher_ = {"/usr/bin/env", std::string("LD_PRELOAD=") + LABRACK_FAILING_SYNC_LIBRARY,
               "LABRACK_FAILING_SYNC=" + control.string()};
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/6/st-01", 7, seconds(1));
  std::unique_ptr<Process> worker = Start(spec);
  ASSERT_TRUE(WaitForPhase(spec, v1::PHASE_MEASURE)) << Output();
  std::ofstream(control) << "/spool";
  ASSERT_EQ(worker->Wait(seconds(20)), 5) << Output();
  EXPECT_NE(Output().find("labrack-worker: "), std::string::npos);
  EXPECT_NE(Output().find("fdatasync: Input/output error"), std::string::npos) << Output();
  EXPECT_EQ(FindResult(ReadSpool(trial_, spec)), nullptr);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(WorkerTest, ASpecificationThatIsNoneIsRefused) {
  std::ofstream(temp_.path() / "trial.json") << "{\"assignment\": {\"epoch\": \"x\"}}";
  Process worker({Binary("labrack-worker"), "--spec", (temp_.path() / "trial.json").string(),
                  "--dir", trial_.string()},
                 temp_.path() / "output");
  EXPECT_EQ(worker.Wait(seconds(10)), 3) << Output();
  // A limit that is not kept is named; what is left out has its default.
  const auto with = [](const std::string& stream) {
    return "{\"assignment\": {\"assignmentId\": \"a/0/b\", \"epoch\": \"1\", \"stack\": {\"host\": "
           "{\"dir\": {}}}, \"workload\": {\"stream\": " +
           stream + "}}}";
  };
  std::ofstream(temp_.path() / "trial.json") << with("{\"clients\": 5000}");
  Process wrong({Binary("labrack-worker"), "--spec", (temp_.path() / "trial.json").string(),
                 "--dir", trial_.string()},
                temp_.path() / "output");
  EXPECT_EQ(wrong.Wait(seconds(10)), 3) << Output();
  EXPECT_NE(Output().find("clients"), std::string::npos) << Output();
  std::ofstream(temp_.path() / "trial.json") << with("{\"file\": \"8388608\"}");
  Process right({Binary("labrack-worker"), "--spec", (temp_.path() / "trial.json").string(),
                 "--dir", trial_.string()},
                temp_.path() / "output");
  EXPECT_EQ(right.Wait(seconds(60)), 0) << Output();
  Process usage({Binary("labrack-worker")}, temp_.path() / "output");
  EXPECT_EQ(usage.Wait(seconds(10)), 2);
}

}  // namespace
}  // namespace labrack::e2e
