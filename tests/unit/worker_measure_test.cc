// Goal: what stands beside the counts of a step is the step's own and says what is true: counters
// of its window, warnings that follow from counted bytes only, limits that end with their phases.
// Method: figures made by hand.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/worker/measure.h"
#include "agent/worker/result_size.h"
#include "agent/worker/stack_file_system.h"
#include "agent/worker/trial_control.h"

namespace labrack::worker {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Codes(const std::vector<v1::Warning>& warnings) {
  std::vector<std::string> codes;
  for (const v1::Warning& warning : warnings) codes.push_back(warning.code());
  return codes;
}

v1::StepResult StepOn(Bytes device_read, Bytes device_written) {
  v1::StepResult step;
  step.set_step("read");
  v1::DeviceUse& device = *step.add_devices();
  device.set_read_bytes(device_read.count());
  device.set_write_bytes(device_written.count());
  return step;
}

TEST(DeviceWarnings, CountOnlyWhatTheStepCounts) {
  // What `files` says of one read twice, as the whole and as its part, was read once.
  v1::StepResult step = StepOn(40_MiB, Bytes(0));
  for (const char* name : {"read", "read_data"}) {
    v1::OperationResult& operation = *step.add_operations();
    operation.set_operation(name);
    operation.set_bytes((64_MiB).count());
  }
  step.add_counted("read");
  std::vector<v1::Warning> warnings;
  AddDeviceWarnings(step, {.read = 64_MiB, .written = {}}, /*cold=*/true, warnings);
  EXPECT_THAT(Codes(warnings), ElementsAre());
}

TEST(DeviceWarnings, ACopyReadsAndWrites) {
  std::vector<v1::Warning> warnings;
  AddDeviceWarnings(StepOn(1_MiB, 1_MiB), {.read = 64_MiB, .written = 64_MiB}, /*cold=*/true,
                    warnings);
  EXPECT_THAT(Codes(warnings), ElementsAre("LW101", "LW302"));
}

TEST(WindowMeter, KeepsNothingOfTheStepBefore) {
  WindowMeter meter({});
  meter.Open();
  meter.Close();
  v1::StepResult first;
  meter.Fill(first);
  EXPECT_TRUE(first.has_cpu());
  meter.Reset();
  meter.Close();
  v1::StepResult ended_before_it_measured;
  meter.Fill(ended_before_it_measured);
  EXPECT_FALSE(ended_before_it_measured.has_cpu());
}

TEST(HostLoad, IsWhatOtherProgramsUsed) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "labrack-proc-stat";
  std::ofstream(file) << "cpu  100 20 50 780 40 0 10 0 0 0\ncpu0 1 2 3\n";
  const Result<HostTicks> ticks = ReadHostTicks(file);
  ASSERT_TRUE(ticks) << ticks.error().ToString();
  EXPECT_EQ(ticks->all, 1000U);
  EXPECT_EQ(ticks->user, 120U);
  const HostTicks before{.all = 1000, .user = 120};
  // 100 ticks, 40 of programs, of which the worker used a tenth of a second.
  EXPECT_DOUBLE_EQ(OthersShare(before, {.all = 1100, .user = 160}, 100'000'000, 100), 0.3);
  EXPECT_EQ(OthersShare(before, {.all = 1100, .user = 160}, 900'000'000, 100), 0);
  EXPECT_EQ(OthersShare(before, {.all = 1049, .user = 160}, 0, 100), 0) << "too short to say";
  EXPECT_EQ(OthersShare(before, before, 0, 100), 0);
  std::ofstream(file) << "nothing";
  EXPECT_FALSE(ReadHostTicks(file));
  std::filesystem::remove(file);
  std::vector<v1::Warning> warnings;
  AddHostWarnings(0.1, warnings);
  EXPECT_THAT(Codes(warnings), ElementsAre());
  AddHostWarnings(0.3, warnings);
  EXPECT_THAT(Codes(warnings), ElementsAre("LW303"));
}

TEST(TrialControl, ALimitThatHasPassedStopsOnlyItsOwnPhases) {
  TrialControl control(MonotonicClock(), [] {});
  control.SetDeadline(MonotonicClock().Now() - seconds(1));
  const runtime::CancelToken& measure = control.cancel();
  control.CheckDeadline();
  EXPECT_TRUE(measure.cancelled());
  EXPECT_TRUE(control.view().timed_out);
  control.SetDeadline(MonotonicClock().Now() + hours(1));
  EXPECT_TRUE(measure.cancelled());
  EXPECT_FALSE(control.cancel().cancelled());
  EXPECT_FALSE(control.view().timed_out);
  control.Stop("by hand");
  EXPECT_TRUE(control.cancel().cancelled());
  control.SetDeadline(MonotonicClock().Now() + hours(1));
  EXPECT_TRUE(control.cancel().cancelled()) << "a stop is for good";
}

TEST(StackFileSystem, ThatIsLetGoFailsAndDoesNotCrash) {
  StackFileSystem files(testing::TempDir());
  EXPECT_FALSE(files.taken());
  const auto opened = runtime::RunToCompletion(files.Open("x", {}));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Errc::kNotFound);
  EXPECT_THAT(opened.error().ToString(), HasSubstr("not mounted any more"));
  EXPECT_FALSE(runtime::RunToCompletion(files.SyncAll()));
  EXPECT_FALSE(runtime::RunToCompletion(files.Remove("x")));
  ASSERT_TRUE(files.Take());
  EXPECT_TRUE(runtime::RunToCompletion(files.Space()));
}

}  // namespace
}  // namespace labrack::worker
