// Goal: lists show what was said, fit a terminal, and never carry a host's control characters to
// it. Method: made-up messages; golden files (LABRACK_UPDATE_GOLDEN=1 writes them anew).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/report/lists.h"
#include "tests/unit/golden.h"
#include "tests/unit/run_record_builder.h"

namespace labrack::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::HostsReply TwoHosts() {
  v1::HostsReply hosts;
  v1::HostRecord& good = *hosts.add_hosts();
  good.set_agent_id("agent-st-01");
  good.set_session_state("ONLINE");
  good.set_working_on("r-7f3a trial 3");
  good.set_round_trip_ns(180'000);
  v1::Inventory& inventory = *good.mutable_inventory();
  inventory.set_host_name("st-01");
  inventory.set_kernel("Linux 6.1.0-18-amd64");
  inventory.set_os("Debian GNU/Linux 12 (bookworm)");
  inventory.set_cpu_model("AMD EPYC 7313P");
  inventory.set_cpu_count(32);
  inventory.set_memory_bytes(128ULL << 30);
  inventory.set_is_root(true);
  (*inventory.mutable_labels())["role"] = "bench";
  (*inventory.mutable_labels())["rack"] = "b7";
  v1::LentDisk& disk = *inventory.add_disks();
  disk.set_id("file:/var/lib/labrack-agent/disks");
  disk.set_kind("file");
  disk.set_backing("ext4 on /dev/nvme0n1p2 (Samsung PM9A3, serial S64)");
  disk.set_capacity_bytes(1ULL << 40);
  disk.set_free_bytes(900ULL << 30);
  v1::StackSupport& ext4 = *inventory.add_stack_support();
  ext4.set_kind("ext4");
  ext4.set_supported(true);
  v1::StackSupport& zfs = *inventory.add_stack_support();
  zfs.set_kind("zfs");
  zfs.set_reason("zpool is not installed (package zfsutils-linux)");
  v1::HostRecord& silent = *hosts.add_hosts();
  silent.set_agent_id("agent-st-02");
  silent.set_session_state("OFFLINE");
  silent.set_silent_ns(95'000'000'000);
  v1::LentDisk& refused = *silent.mutable_inventory()->add_disks();
  refused.set_id("/dev/disk/by-id/wwn-0x5000");
  refused.set_kind("block");
  refused.set_refused("block devices are not supported yet");
  return hosts;
}

TEST(ReportListsTest, HostsAndDisks) {
  ExpectGolden("report/hosts.txt", FormatHosts(TwoHosts()));
  ExpectGolden("report/host.txt", FormatHost(TwoHosts().hosts(0)));
  ExpectGolden("report/disks.txt", FormatDisks(TwoHosts()));
  EXPECT_THAT(FormatHosts({}), HasSubstr("no hosts"));
  EXPECT_THAT(FormatDisks({}), HasSubstr("no disks"));
}

TEST(ReportListsTest, AHostThatIsNotCleanSaysSoAndWhy) {
  v1::HostsReply hosts = TwoHosts();
  EXPECT_THAT(FormatHosts(hosts), Not(HasSubstr("dirty")));
  EXPECT_THAT(FormatHost(hosts.hosts(0)), Not(HasSubstr("dirty")));
  hosts.mutable_hosts(0)->set_dirty("/mnt/a: cannot be unmounted: in use by sh (pid 7)");
  EXPECT_THAT(FormatHosts(hosts), HasSubstr("ONLINE, dirty"));
  EXPECT_THAT(FormatHost(hosts.hosts(0)),
              HasSubstr("  dirty       /mnt/a: cannot be unmounted: in use by sh (pid 7)\n"));
}

TEST(ReportListsTest, RunsAndStatus) {
  RunRecordBuilder builder("copy-day");
  builder.AddHost("st-01");
  builder.AddHost("st-02");
  builder.AddCell("ext4", RunRecordBuilder::SyncPages("pages"), {RunRecordBuilder::PagesStep()});
  v1::TrialRecord& valid = builder.AddTrial({.cell = 0, .repeat = 0, .rate = 1000});
  valid.mutable_summary()->set_host_count(2);
  valid.mutable_summary()->set_start_skew_ns(1'800'000);
  valid.mutable_summary()->set_overlap(0.996);
  v1::TrialRecord& lost = builder.AddTrial({.cell = 0, .repeat = 1, .rate = 1000});
  lost.mutable_summary()->set_state("lost");
  lost.mutable_summary()->set_reason("st-02: silent for 15 min");
  v1::RunRecord run = builder.Build();
  run.mutable_summary()->set_verdict("INVALID");
  run.mutable_summary()->set_exit_code(5);
  ExpectGolden("report/status.txt", FormatStatus(run, Unfinished::kGoesOn));

  v1::ListRunsReply runs;
  *runs.add_runs() = run.summary();
  v1::RunSummary& going = *runs.add_runs();
  going.set_run_id("r-8000");
  going.set_playbook_name("quickstart");
  going.set_state(v1::RUN_STATE_RUNNING);
  going.set_trials_total(12);
  going.set_trials_done(3);
  going.set_exit_code(-1);
  ExpectGolden("report/runs.txt", FormatRuns(runs, Unfinished::kGoesOn));
  EXPECT_THAT(FormatRuns({}, Unfinished::kGoesOn), HasSubstr("no runs"));
}

TEST(ReportListsTest, ARunThatWasLeftIsUnfinishedAndSaysWhy) {
  v1::RunRecord record;
  v1::RunSummary& run = *record.mutable_summary();
  run.set_run_id("r-8000");
  run.set_reason("left by a lab that was killed");
  const auto list = [&](Unfinished unfinished) {
    v1::ListRunsReply runs;
    *runs.add_runs() = run;
    return FormatRuns(runs, unfinished);
  };
  for (const v1::RunState state :
       {v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING, v1::RUN_STATE_CANCELLING}) {
    run.set_state(state);
    EXPECT_THAT(list(Unfinished::kLeft), HasSubstr("unfinished"));
    EXPECT_THAT(list(Unfinished::kLeft), HasSubstr("\nr-8000: left by a lab that was killed\n"));
    EXPECT_THAT(list(Unfinished::kGoesOn), Not(HasSubstr("unfinished")));
    EXPECT_THAT(list(Unfinished::kGoesOn), Not(HasSubstr("killed")));
    EXPECT_THAT(FormatStatus(record, Unfinished::kLeft), HasSubstr("unfinished"));
    EXPECT_THAT(FormatStatus(record, Unfinished::kGoesOn), Not(HasSubstr("unfinished")));
  }
  run.set_state(v1::RUN_STATE_DONE);
  EXPECT_THAT(list(Unfinished::kLeft), Not(HasSubstr("killed")));
  EXPECT_THAT(FormatStatus(record, Unfinished::kLeft), HasSubstr("done"));
}

TEST(ReportListsTest, PlanNamesEveryDiskAndTheBytesToBeWritten) {
  RunRecordBuilder builder("copy-day");
  builder.playbook().set_summary("What parity costs a database.");
  builder.AddHost("st-01");
  builder.AddHost("st-02");
  for (const char* stack : {"ext4", "xfs"}) {
    const std::uint32_t cell = builder.AddCell(stack, RunRecordBuilder::SyncPages("pages"),
                                               {RunRecordBuilder::PagesStep()}, "block=4KiB");
    for (std::uint32_t repeat = 0; repeat < 2; ++repeat) {
      builder.AddTrial({.cell = cell, .repeat = repeat, .rate = 1});
    }
  }
  v1::Plan plan = builder.Build().plan();
  plan.set_write_bytes(16ULL << 30);
  plan.set_duration_ns(95'000'000'000);
  plan.add_notes("st-02: zfs is left out there: zpool is not installed");
  (*plan.mutable_cells(1)->mutable_stand_ins())["agent-st-02"] = "not root";
  const std::string text = FormatPlan(plan);
  ExpectGolden("report/plan.txt", text);
  for (const v1::PlannedHost& host : plan.hosts()) {
    EXPECT_THAT(text, HasSubstr(host.disks(0)));
  }
}

TEST(ReportListsTest, TextsOfHostsCannotMoveTheCursor) {
  v1::HostsReply hosts = TwoHosts();
  hosts.mutable_hosts(0)->set_working_on("\x1b[2Jgone\xff");
  EXPECT_THAT(FormatHosts(hosts), Not(HasSubstr("\x1b")));
  EXPECT_THAT(FormatHosts(hosts), HasSubstr("?[2Jgone?"));
}

TEST(ReportListsTest, TextHelpers) {
  EXPECT_EQ(ColumnsOf("caf\xc3\xa9"), 4u);
  EXPECT_EQ(Clipped("caf\xc3\xa9s", 4), "caf~");
  EXPECT_EQ(Clipped("caf\xc3\xa9", 4), "caf\xc3\xa9");
  EXPECT_EQ(Clipped("abc", 0), "");
  EXPECT_EQ(Printable("a\tb\xc2\x85 \xe2\x82\xac \xed\xa0\x80"), "a?b? \xe2\x82\xac ???");
  EXPECT_EQ(Wrapped("1  ", "one two three", 10), "1  one two\n   three\n");
  EXPECT_EQ(Wrapped("", "", 10), "\n");
  EXPECT_EQ(FormatWallTime(0), "-");
  EXPECT_EQ(FormatWallTime(1'796'000'000'000'000'000), "2026-11-30 00:53:20Z");
}

}  // namespace
}  // namespace labrack::report
