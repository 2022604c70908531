// Goal: the workload fio runs the real fio within the stack's directory, imports what it says
// exactly, and fails where fio fails. Method: small jobs whose number of operations is known.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/exec/program.h"
#include "agent/workload/workload.h"
#include "proto/convert/convert.h"
#include "storage/fs/host_file_system.h"
#include "storage/runtime/host_env.h"

namespace labrack::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FioRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!exec::FindProgram("fio")) GTEST_SKIP() << "fio is not installed";
    std::string name = (std::filesystem::temp_directory_path() / "labrack-fio-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    base_ = name;
    std::filesystem::create_directory(base_ / "stack:with colon");
    std::filesystem::create_directory(base_ / "scratch");
    file_system_ = fs::HostFileSystem::Open(base_ / "stack:with colon").value();
    spec_.mutable_fio()->set_timeout(60'000'000'000);
  }
  void TearDown() override {
    if (!base_.empty()) std::filesystem::remove_all(base_);
  }

  StepOutcome Run(const std::string& job, const StepContext& context = {}) {
    spec_.mutable_fio()->set_job(job);
    const Target target{.file_system = file_system_.get(),
                        .directory = base_ / "stack:with colon",
                        .scratch = base_ / "scratch"};
    Result<std::unique_ptr<Workload>> made = MakeWorkload(spec_, Seed{1}, target, env_);
    if (!made) return {std::unexpected(made.error()), {}};
    workload_ = *std::move(made);
    const Result<LayOutReport> laid_out = workload_->LayOut({});
    if (!laid_out) return {std::unexpected(laid_out.error()), {}};
    return workload_->RunStep(0, context);
  }

  std::filesystem::path base_;
  std::unique_ptr<fs::HostFileSystem> file_system_;
  runtime::HostEnv env_;
  v1::Workload spec_;
  std::unique_ptr<Workload> workload_;
};

TEST_F(FioRun, CountsAreExact) {
  // iodepth with a synchronous engine makes fio print a note before its JSON.
  const StepOutcome outcome =
      Run("[global]\nsize=1m\nbs=4k\nioengine=psync\niodepth=8\n"
          "[first]\nrw=write\nnumjobs=2\n[second]\nstonewall\nrw=randread\n");
  ASSERT_TRUE(outcome.status) << outcome.status.error().ToString();
  const v1::StepResult& result = outcome.result;
  EXPECT_EQ(result.step(), "fio");
  EXPECT_THAT(result.counted(), ElementsAre("read", "write"));
  EXPECT_EQ(result.operations(0).count(), 256U);
  EXPECT_EQ(result.operations(0).bytes(), 1U << 20);
  EXPECT_EQ(result.operations(1).count(), 512U);
  EXPECT_EQ(convert::FromMessage(result.operations(1).service())->count(), 512U);
  EXPECT_GT(result.cpu().user_ns() + result.cpu().system_ns(), 0);
  EXPECT_GT(result.measure_end_mono_ns(), result.measure_begin_mono_ns());
  std::vector<std::string> names;
  for (const v1::Figure& figure : result.figures()) names.push_back(figure.name());
  EXPECT_THAT(names, ::testing::IsSupersetOf({"first.write.iops", "second.read.iops",
                                              "second.read.latency_mean", "first.usr_cpu"}));
  // Its files lie on the stack, the job file and the report do not.
  EXPECT_TRUE(std::filesystem::exists(base_ / "stack:with colon" / "first.0.0"));
  EXPECT_FALSE(std::filesystem::exists(base_ / "stack:with colon" / "labrack.fio"));
  EXPECT_EQ(workload_->Verify({})->outcome, v1::VERIFY_OUTCOME_NOT_POSSIBLE);
}

TEST_F(FioRun, WithVerifyTheDataIsVerified) {
  const StepOutcome outcome = Run("[a]\nrw=write\nsize=256k\nbs=4k\nverify=crc32c\n");
  ASSERT_TRUE(outcome.status) << outcome.status.error().ToString();
  EXPECT_EQ(workload_->Verify({})->outcome, v1::VERIFY_OUTCOME_MATCHED);
}

TEST_F(FioRun, AJobThatFailsFailsTheStep) {
  const StepOutcome outcome = Run("[a]\nrw=read\nsize=1m\nnosuchoption=1\n");
  ASSERT_FALSE(outcome.status);
  EXPECT_THAT(outcome.status.error().ToString(), HasSubstr("nosuchoption"));
  EXPECT_NE(outcome.result.exit_code(), 0);
}

TEST_F(FioRun, CancelAndTimeOutEndIt) {
  const std::string job = "[a]\nrw=read\nsize=1m\ntime_based\nruntime=60\n";
  spec_.mutable_fio()->set_timeout(1'000'000'000);
  EXPECT_EQ(Run(job).status.error().code(), Errc::kTimedOut);
  runtime::CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(Run(job, {.start = env_.Now() + std::chrono::milliseconds(10), .cancel = &cancel})
                .status.error()
                .code(),
            Errc::kCancelled);
}

}  // namespace
}  // namespace labrack::workload
