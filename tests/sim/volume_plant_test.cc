// Goal: the simulations of mirrors and sets would notice real mistakes, and say how to replay them.
// Method: each of their planted faults (storage/base/plant.h), one at a time, in a program that has
// the same tests and volumes compiled with faults. README.md has what it took.
#include <iostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/exec/run.h"

namespace labrack::sim {
namespace {

using testing::HasSubstr;

exec::Outcome RunPlanted(const std::string& plant) {
  exec::Command command;
  command.words = {"env", "LABRACK_PLANT=" + plant, LABRACK_PLANTS_PROGRAM, "--gtest_brief=1",
                   "--gtest_fail_fast"};
  command.timeout = std::chrono::seconds(100);
  Result<exec::Outcome> outcome = exec::Run(command);
  EXPECT_TRUE(outcome) << outcome.error().ToString();
  return outcome ? *std::move(outcome) : exec::Outcome();
}

class VolumePlant : public testing::TestWithParam<const char*> {};

TEST_P(VolumePlant, IsFound) {
  const exec::Outcome outcome = RunPlanted(GetParam());
  EXPECT_NE(outcome.exit_code, 0) << "not found";
  EXPECT_FALSE(outcome.timed_out);
  // The first way to replay it; exhaustive tests need no seed.
  const std::string all = outcome.output + outcome.errors;
  const std::size_t replay = all.find("replay: ");
  std::cout << GetParam() << ": "
            << (replay == std::string::npos ? "by enumeration"
                                            : all.substr(replay, all.find('\n', replay) - replay))
            << '\n';
}

INSTANTIATE_TEST_SUITE_P(All, VolumePlant,
                         testing::Values("DirtyMarkSkipped", "DirtyClearedEarly",
                                         "UnsyncedReadAnywhere", "MirrorLossNotRecorded",
                                         "ResyncUnlocked", "CopiedNotFlushed", "NothingCopied",
                                         "HalfStarts", "PromiseSkipped", "MissingNotFailed"),
                         [](const auto& one) { return std::string(one.param); });

TEST(VolumePlants, FindNothingWithoutAFault) {
  EXPECT_EQ(RunPlanted("").exit_code, 2);  // an empty name is none
}

}  // namespace
}  // namespace labrack::sim
