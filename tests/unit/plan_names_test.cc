// Goal: names of steps and cells are what workers and comparison use, and fio's job files are read
// as fio reads them, as far as safety and names depend on it. Method: small messages and job texts;
// what fio 3.33 made of the same texts is the expectation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/fio_job.h"
#include "controller/plan/names.h"
#include "proto/convert/names.h"

namespace labrack::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StepNames, FollowTheWorkload) {
  v1::Workload workload;
  workload.mutable_stream()->set_direction(v1::DIRECTION_WRITE);
  EXPECT_THAT(StepNames(workload), ElementsAre("write"));
  workload.mutable_stream()->set_direction(v1::DIRECTION_READ);
  EXPECT_THAT(StepNames(workload), ElementsAre("read"));
  workload.mutable_copy();
  EXPECT_THAT(StepNames(workload), ElementsAre("copy"));
  workload.mutable_checksum();
  EXPECT_THAT(StepNames(workload), ElementsAre("checksum"));
  workload.mutable_random();
  EXPECT_THAT(StepNames(workload), ElementsAre("mix"));
  workload.mutable_sync_pages();
  EXPECT_THAT(StepNames(workload), ElementsAre("write"));
  workload.mutable_exec();
  EXPECT_THAT(StepNames(workload), ElementsAre("exec"));
}

TEST(StepNames, OfFilesKeepTheOrderOfExecution) {
  v1::Workload workload;
  workload.mutable_files();
  EXPECT_THAT(StepNames(workload), ElementsAre("create", "stat", "read", "delete"));
  workload.mutable_files()->add_steps(v1::FILES_STEP_DELETE);
  workload.mutable_files()->add_steps(v1::FILES_STEP_STAT);
  EXPECT_THAT(StepNames(workload), ElementsAre("stat", "delete"));
}

TEST(StepNames, OfFioIsOneForAllItsJobs) {
  v1::Workload workload;
  workload.mutable_fio()->set_job("[a]\nrw=write\n[b]\nrw=read\n");
  EXPECT_THAT(StepNames(workload), ElementsAre("fio"));
}

TEST(FioJob, JobsAreNamedAsFioNamesThem) {
  const FioJobFile file =
      ParseFioJob("[global]\nsize=1m\nname=not this\n[a]\nname=zzz\nrw=write\n  [b c] \nrw=read\n");
  ASSERT_EQ(file.jobs.size(), 2U);
  EXPECT_EQ(file.jobs[0].name, "zzz");
  EXPECT_EQ(file.jobs[1].name, "b c");
}

TEST(CellName, HasTheParameters) {
  v1::PlannedCell cell;
  cell.mutable_stack()->set_name("ext4");
  cell.mutable_workload()->set_name("pages");
  EXPECT_EQ(convert::CellName(cell), "ext4/pages");
  cell.set_parameters_text("block=4KiB");
  EXPECT_EQ(convert::CellName(cell), "ext4/pages block=4KiB");
}

TEST(FioJob, GlobalsReachOnlyJobsBelow) {
  const FioJobFile file =
      ParseFioJob("[a]\nrw=read\n[global]\nbs=8k ; a comment\n[b]\nbs=4k\n[c]\n");
  ASSERT_EQ(file.jobs.size(), 3U);
  EXPECT_EQ(file.jobs[0].Find("bs"), nullptr);
  EXPECT_EQ(*file.jobs[1].Find("bs"), "4k");
  EXPECT_EQ(*file.jobs[2].Find("bs"), "8k");
  EXPECT_THAT(file.problems, IsEmpty());
}

TEST(FioJob, RefusesPathsOutsideOfTheStack) {
  for (const char* option : {"filename=/dev/sda", "filename = /dev/sda", "filename=a:/dev/sda",
                             "directory=../..", "filename=${DISK}", "write_bw_log=/var/log/x",
                             "donorname=../../x", "filename=a/../../b", "iomem=mmap:/etc/x"}) {
    const FioJobFile file = ParseFioJob(std::string("[a]\n") + option + "\n");
    ASSERT_EQ(file.problems.size(), 1U) << option;
    EXPECT_EQ(file.problems[0].line, 2U);
    EXPECT_THAT(file.problems[0].message,
                ::testing::AnyOf(HasSubstr("outside of the stack's directory"),
                                 HasSubstr("leave the stack's directory")));
  }
  EXPECT_THAT(ParseFioJob("[a]\nfilename=data..1:b\ndirectory=sub/dir\n").problems, IsEmpty());
}

// fio names a job's files after the job.
TEST(FioJob, RefusesNamesOfJobsThatArePaths) {
  for (const char* text : {"[../../../tmp/x]\nrw=write\n", "[a]\nname=../x\n", "[a/b]\n",
                           "[${HOME}]\n", "[../x]\nname=a\n"}) {
    const FioJobFile file = ParseFioJob(text);
    ASSERT_EQ(file.problems.size(), 1U) << text;
    EXPECT_THAT(file.problems[0].message, HasSubstr("leave the stack's directory"));
    EXPECT_THAT(file.problems[0].help, HasSubstr("filename="));
  }
  EXPECT_THAT(ParseFioJob("[rand read..4k]\nname=a-b\n").problems, IsEmpty());
}

TEST(FioJob, FindsCommands) {
  EXPECT_EQ(ParseFioJob("[a]\nexec_prerun=rm -rf /\n").commands.size(), 1U);
  EXPECT_EQ(ParseFioJob("[global]\nexec_postrun=x\n[a]\n").commands.size(), 1U);
  EXPECT_EQ(ParseFioJob("[a]\nioengine=exec\nprogram=/bin/sh\n").commands.size(), 2U);
  EXPECT_EQ(ParseFioJob("[a]\nioengine=external:/tmp/x.so\n").commands.size(), 1U);
  EXPECT_EQ(ParseFioJob("[a]\nioengine=./x.so\n").commands.size(), 1U);
  for (const char* engine : {"nbd", "rbd", "rados", "gfapi", "net", "e4defrag", "sg", "mtd",
                             "dev-dax", "io_uring_cmd", "http", "NBD", ""}) {
    EXPECT_EQ(ParseFioJob(std::string("[a]\nioengine=") + engine + "\n").commands.size(), 1U)
        << engine;
  }
  EXPECT_EQ(ParseFioJob("[a]\nioscheduler=none\ncgroup=x\nprofile=act\n").commands.size(), 3U);
  EXPECT_EQ(ParseFioJob("[a]\nlockmem=20g\nprioclass=1\n").commands.size(), 2U);
  for (const char* engine : {"psync", "libaio", "io_uring", "mmap", "null"}) {
    EXPECT_THAT(ParseFioJob(std::string("[a]\nioengine=") + engine + "\n").commands, IsEmpty());
  }
  EXPECT_EQ(ParseFioJob("[a]\nsize=$ncpus'; touch x; echo '\n").commands.size(), 1U);
  EXPECT_THAT(ParseFioJob("[a]\nioengine=psync\nsize=$ncpus*4\n").commands, IsEmpty());
}

TEST(FioJob, SaysWhatIsNoJobFile) {
  EXPECT_EQ(ParseFioJob("").problems.size(), 1U);
  EXPECT_EQ(ParseFioJob("[global]\nbs=4k\n").problems.size(), 1U);
  EXPECT_EQ(ParseFioJob("bs=4k\n[a]\n").problems.size(), 1U);
  EXPECT_EQ(ParseFioJob("[a]\n[a]\n").problems.size(), 1U);
  EXPECT_EQ(ParseFioJob("[a]\ninclude other.fio\n").problems.size(), 1U);
  EXPECT_EQ(ParseFioJob("[a\nbs=4k\n").problems.size(), 2U);
}

TEST(FioJob, ReadsSizesAndTimes) {
  EXPECT_EQ(ParseFioSize("64m"), Bytes(64 << 20));
  EXPECT_EQ(ParseFioSize("4KiB"), Bytes(4096));
  EXPECT_EQ(ParseFioSize("512"), Bytes(512));
  EXPECT_EQ(ParseFioSize("20%"), std::nullopt);
  EXPECT_EQ(ParseFioSize("99999999999999p"), std::nullopt);
  EXPECT_EQ(ParseFioTime("30"), std::chrono::seconds(30));
  EXPECT_EQ(ParseFioTime("500ms"), std::chrono::milliseconds(500));
  EXPECT_EQ(ParseFioTime("2m"), std::chrono::minutes(2));
  EXPECT_EQ(ParseFioTime("soon"), std::nullopt);
}

}  // namespace
}  // namespace labrack::plan
