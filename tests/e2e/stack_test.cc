// Goal: every kind of stack is really what it says, can be written to, can drop its caches, and
// leaves nothing behind - also when the worker is killed at any step of the build, or a tool fails.
// Method: real loop devices, mkfs and mounts in a directory of the test's own; after each test the
// mount table, the loop devices and the directory are searched for what is left.
#include "agent/stack/stack.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/exec/child.h"
#include "agent/exec/program.h"
#include "agent/exec/run.h"
#include "agent/stack/host_ability.h"
#include "agent/stack/loop_device.h"
#include "agent/stack/mounts.h"

namespace labrack::stack {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::string FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

class StackTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = WhyNoDisks(ProbeHost(ZfsProbe::kSkip));
    if (!reason.empty()) GTEST_SKIP() << reason;
    std::string name = testing::TempDir() + "labrack-stack-test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    base_ = std::filesystem::canonical(name);
  }

  void TearDown() override {
    if (base_.empty()) return;
    if (Result<UndoLog> log = OpenLog()) {
      EXPECT_TRUE(log->RunAll({}).has_value());
    }
    EXPECT_EQ(Leftovers(), "");
    std::error_code ignored;
    std::filesystem::remove_all(base_, ignored);
  }

  Result<UndoLog> OpenLog() { return UndoLog::Open(base_ / "undo.log"); }

  BuildRequest Request(std::uint32_t count, Bytes size) const {
    BuildRequest request;
    request.disks.set_count(count);
    request.disks.set_size(size.count());
    request.disks.set_kind(v1::DISK_KIND_FILE);
    request.disks.set_prepare(v1::DISK_PREPARATION_ALLOCATED);
    request.disks_dir = base_ / "disks" / "trial";
    request.mount_dir = base_ / "mounts" / "trial";
    request.tag = "test-" + std::to_string(getpid());
    request.timeout = seconds(60);
    return request;
  }

  // Mounts, loop devices, files and directories of ours that are still there.
  std::string Leftovers() const {
    std::string left;
    for (const MountEntry& entry : ReadMounts().value()) {
      if (entry.mount_point.starts_with(base_.string()))
        left += "mount " + entry.mount_point + "\n";
    }
    for (const auto& entry : std::filesystem::directory_iterator("/sys/block")) {
      const std::string file = FirstLine(entry.path() / "loop/backing_file");
      if (file.starts_with(base_.string())) {
        left += entry.path().filename().string() + " on " + file + "\n";
      }
    }
    for (const char* folder : {"disks", "mounts"}) {
      std::error_code ignored;
      std::filesystem::directory_iterator entry(base_ / folder, ignored);
      for (; !ignored && entry != std::filesystem::directory_iterator(); ++entry) {
        left += entry->path().string() + "\n";
      }
    }
    return left;
  }

  // Builds, writes, drops caches, reads back, and undoes.
  void UseAndUndo(const BuildRequest& request, const std::string& file_system) {
    Result<UndoLog> log = OpenLog();
    ASSERT_TRUE(log.has_value()) << log.error().ToString();
    Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
    ASSERT_TRUE(built.has_value()) << built.error().ToString();
    BuiltStack& stack = **built;
    EXPECT_EQ(MountOf(stack.directory())->file_system, file_system) << stack.description();
    EXPECT_FALSE(stack.backing().empty());
    EXPECT_TRUE(std::filesystem::is_empty(stack.directory()));
    const Result<std::vector<v1::DeviceUse>> before = ReadDeviceUse(stack.devices());
    ASSERT_TRUE(before.has_value());

    const std::string data(3'000'000, 'd');
    std::ofstream(stack.directory() / "file") << data;
    const Result<void> dropped = stack.DropCaches();
    ASSERT_TRUE(dropped.has_value()) << dropped.error().ToString();
    std::ifstream file(stack.directory() / "file");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), data);
    file.close();

    const Result<std::vector<v1::DeviceUse>> after = ReadDeviceUse(stack.devices());
    ASSERT_TRUE(after.has_value());
    std::uint64_t written = 0;
    for (const v1::DeviceUse& use : Subtract(*after, *before)) written += use.write_bytes();
    EXPECT_GT(written, 20'000u) << "nothing reached " << stack.description();
    EXPECT_TRUE(stack.Check().has_value());

    const Result<void> undone = log->RunAll({});
    EXPECT_TRUE(undone.has_value()) << undone.error().ToString();
    EXPECT_EQ(Leftovers(), "");
    EXPECT_FALSE(stack.Check().has_value());
    EXPECT_TRUE(log->RunAll({}).has_value());
  }

  // Forks a process that is killed by itself at the given step of the undo log, before the step is
  // written or after it is durable. False when the build came to its end.
  bool BuildAndDie(const BuildRequest& request, std::size_t step, bool durable) {
    const pid_t pid = fork();
    if (pid == 0) {
      Result<UndoLog> log = OpenLog();
      if (!log) _exit(3);
      log->set_observer([&](std::size_t at, bool is_durable) {
        if (at == step && is_durable == durable) kill(getpid(), SIGKILL);
      });
      Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
      _exit(built.has_value() ? 0 : 4);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
    return WIFSIGNALED(status);
  }

  void CrashAtEveryStep(const BuildRequest& request) {
    bool died = true;
    for (std::size_t step = 0; died; ++step) {
      for (bool durable : {false, true}) {
        died = BuildAndDie(request, step, durable);
        Result<UndoLog> log = OpenLog();
        ASSERT_TRUE(log.has_value()) << log.error().ToString();
        EXPECT_EQ(log->steps().size(), died ? step + (durable ? 1 : 0) : step);
        const Result<void> undone = log->RunAll({});
        ASSERT_TRUE(undone.has_value()) << "step " << step << ": " << undone.error().ToString();
        ASSERT_EQ(Leftovers(), "") << "step " << step << (durable ? " durable" : "");
      }
      ASSERT_LT(step, 40u);
    }
  }

  std::filesystem::path base_;
};

TEST_F(StackTest, Ext4WithOptions) {
  BuildRequest request = Request(2, 64_MiB);
  v1::Ext4Stack* ext4 = request.stack.mutable_host()->mutable_ext4();
  for (const char* word : {"-i", "131072", "-E", "stride=4"}) ext4->add_mkfs_options(word);
  for (const char* word : {"noatime", "data=journal"}) ext4->add_mount_options(word);
  UseAndUndo(request, "ext4");
}

TEST_F(StackTest, DisksAreWrittenThroughWhenAsked) {
  BuildRequest request = Request(1, 32_MiB);
  request.disks.set_prepare(v1::DISK_PREPARATION_WRITTEN);
  request.stack.mutable_host()->mutable_ext4();
  UseAndUndo(request, "ext4");
}

TEST_F(StackTest, XfsWithOptions) {
  BuildRequest request = Request(1, 300_MiB);
  v1::XfsStack* xfs = request.stack.mutable_host()->mutable_xfs();
  for (const char* word : {"-m", "reflink=0"}) xfs->add_mkfs_options(word);
  xfs->add_mount_options("noatime");
  UseAndUndo(request, "xfs");
}

struct BtrfsCase {
  v1::BtrfsProfile data;
  v1::BtrfsProfile metadata;
  std::uint32_t disks;
};
class BtrfsTest : public StackTest, public testing::WithParamInterface<BtrfsCase> {};

TEST_P(BtrfsTest, EveryProfile) {
  // The least that is accepted.
  BuildRequest request = Request(GetParam().disks, GetParam().disks == 1 ? 110_MiB : 125_MiB);
  v1::BtrfsStack* btrfs = request.stack.mutable_host()->mutable_btrfs();
  btrfs->set_data(GetParam().data);
  btrfs->set_metadata(GetParam().metadata);
  btrfs->add_mount_options("noatime");
  UseAndUndo(request, "btrfs");
}

INSTANTIATE_TEST_SUITE_P(
    Profiles, BtrfsTest,
    testing::Values(BtrfsCase{v1::BTRFS_PROFILE_SINGLE, v1::BTRFS_PROFILE_SINGLE, 1},
                    BtrfsCase{v1::BTRFS_PROFILE_RAID0, v1::BTRFS_PROFILE_RAID0, 2},
                    BtrfsCase{v1::BTRFS_PROFILE_RAID1, v1::BTRFS_PROFILE_RAID1, 2},
                    BtrfsCase{v1::BTRFS_PROFILE_RAID10, v1::BTRFS_PROFILE_RAID10, 4},
                    BtrfsCase{v1::BTRFS_PROFILE_RAID5, v1::BTRFS_PROFILE_RAID1, 3},
                    BtrfsCase{v1::BTRFS_PROFILE_RAID5, v1::BTRFS_PROFILE_RAID5, 3}),
    [](const auto& info) {
      return "Data" + std::to_string(info.param.data) + "Metadata" +
             std::to_string(info.param.metadata);
    });

TEST_F(StackTest, Ext4OnRamDisks) {
  BuildRequest request = Request(1, 48_MiB);
  request.disks.set_kind(v1::DISK_KIND_RAM);
  request.stack.mutable_host()->mutable_ext4();
  UseAndUndo(request, "ext4");
}

// The pool needs the kernel's module or zfs-fuse, which the test starts itself where it can.
class ZfsTest : public StackTest {
 protected:
  void SetUp() override {
    StackTest::SetUp();
    if (IsSkipped()) return;
    if (!ProbeHost(ZfsProbe::kTry).zfs_problem.empty() && exec::FindProgram("zfs-fuse")) {
      exec::Command command;
      command.words = {"zfs-fuse", "--no-daemon", "--pidfile", (base_ / "zfs.pid").string()};
      Result<exec::Child> child = exec::Child::Spawn(command, {.new_session = true});
      ASSERT_TRUE(child.has_value()) << child.error().ToString();
      daemon_ = std::move(*child);
      for (int i = 0; i < 50 && !ProbeHost(ZfsProbe::kTry).zfs_problem.empty(); ++i) {
        std::this_thread::sleep_for(milliseconds(100));
      }
    }
    const HostAbility ability = ProbeHost(ZfsProbe::kTry);
    if (!ability.programs.contains("zpool")) GTEST_SKIP() << "zpool is not installed";
    if (!ability.zfs_problem.empty()) GTEST_SKIP() << ability.zfs_problem;
  }
  void TearDown() override {
    StackTest::TearDown();
    if (!daemon_) return;
    EXPECT_TRUE(daemon_->Signal(SIGTERM).has_value());
    if (!daemon_->WaitUntil(MonotonicClock().Now() + seconds(10))) {
      EXPECT_TRUE(daemon_->KillGroup().has_value());
      EXPECT_TRUE(daemon_->WaitUntil(MonotonicClock().Now() + seconds(10)).has_value());
    }
  }
  std::string PoolFileSystem() { return exec::FindProgram("zfs-fuse") ? "fuse.zfs" : "zfs"; }

  std::optional<exec::Child> daemon_;
};

TEST_F(ZfsTest, RaidzWithOptions) {
  BuildRequest request = Request(3, 128_MiB);
  v1::ZfsStack* zfs = request.stack.mutable_host()->mutable_zfs();
  zfs->set_layout(v1::ZFS_LAYOUT_RAIDZ);
  zfs->add_options("recordsize=8K");
  UseAndUndo(request, PoolFileSystem());
}

TEST_F(ZfsTest, MirrorsSurviveACrashAtEveryStep) {
  BuildRequest request = Request(4, 64_MiB);
  request.stack.mutable_host()->mutable_zfs()->set_layout(v1::ZFS_LAYOUT_MIRRORS);
  CrashAtEveryStep(request);
}

TEST_F(StackTest, ACrashAtEveryStepLeavesNothingExt4) {
  BuildRequest request = Request(1, 32_MiB);
  request.stack.mutable_host()->mutable_ext4();
  CrashAtEveryStep(request);
}

TEST_F(StackTest, ACrashAtEveryStepLeavesNothingBtrfs) {
  BuildRequest request = Request(2, 128_MiB);
  v1::BtrfsStack* btrfs = request.stack.mutable_host()->mutable_btrfs();
  btrfs->set_data(v1::BTRFS_PROFILE_RAID1);
  btrfs->set_metadata(v1::BTRFS_PROFILE_RAID1);
  CrashAtEveryStep(request);
}

TEST_F(StackTest, ACrashAtEveryStepLeavesNothingInMemory) {
  BuildRequest request = Request(1, 32_MiB);
  request.disks.set_kind(v1::DISK_KIND_RAM);
  request.stack.mutable_host()->mutable_ext4();
  CrashAtEveryStep(request);
}

TEST_F(StackTest, ARefusalOfMkfsIsToldInItsOwnWordsAndUndone) {
  BuildRequest request = Request(1, 32_MiB);
  v1::Ext4Stack* ext4 = request.stack.mutable_host()->mutable_ext4();
  for (const char* word : {"-b", "12345"}) ext4->add_mkfs_options(word);
  Result<UndoLog> log = OpenLog();
  ASSERT_TRUE(log.has_value());
  const Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
  ASSERT_FALSE(built.has_value());
  EXPECT_THAT(built.error().ToString(), HasSubstr("mkfs.ext4: exit code 1"));
  EXPECT_THAT(built.error().ToString(), HasSubstr("12345"));
  EXPECT_TRUE(log->RunAll({}).has_value());
  EXPECT_EQ(Leftovers(), "");
}

TEST_F(StackTest, AWrongMountOptionIsNamedByTheKernelAndUndone) {
  BuildRequest request = Request(1, 32_MiB);
  request.stack.mutable_host()->mutable_ext4()->add_mount_options("nonsense=1");
  Result<UndoLog> log = OpenLog();
  ASSERT_TRUE(log.has_value());
  const Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
  ASSERT_FALSE(built.has_value());
  EXPECT_THAT(built.error().ToString(), HasSubstr("option 'nonsense=1'"));
  EXPECT_TRUE(log->RunAll({}).has_value());
  EXPECT_EQ(Leftovers(), "");
}

TEST_F(StackTest, TooSmallTooFewAndTooLargeDisksAreRefusedBeforeAnythingIsMade) {
  Result<UndoLog> log = OpenLog();
  ASSERT_TRUE(log.has_value());
  BuildRequest request = Request(1, 16_MiB);
  request.stack.mutable_host()->mutable_xfs();
  Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
  EXPECT_EQ(built.error().code(), Errc::kInvalidArgument);
  EXPECT_THAT(built.error().ToString(), HasSubstr("at least 300MiB"));
  request.stack.mutable_host()->mutable_btrfs()->set_data(v1::BTRFS_PROFILE_RAID10);
  built = BuildStack(request, *log);
  EXPECT_THAT(built.error().ToString(), HasSubstr("raid10 needs 4 disks"));
  EXPECT_TRUE(log->steps().empty());

  request = Request(1, Bytes(std::uint64_t{1} << 50));
  request.stack.mutable_host()->mutable_ext4();
  built = BuildStack(request, *log);
  EXPECT_EQ(built.error().code(), Errc::kNoSpace);
  EXPECT_THAT(built.error().ToString(), HasSubstr("can be lent"));
  EXPECT_TRUE(log->RunAll({}).has_value());
  EXPECT_EQ(Leftovers(), "");
}

TEST_F(StackTest, AFullDeviceUnderTheDisksIsNoSpaceAndUndone) {
  const std::filesystem::path small = base_ / "small";
  ASSERT_TRUE(std::filesystem::create_directory(small));
  ASSERT_TRUE(
      Mount({.file_system = "tmpfs", .source = "small", .target = small, .options = {"size=40m"}})
          .has_value());
  {
    // A sparse file hides from the first check how little there is.
    std::ofstream(small / "filler") << std::string(10 << 20, 'f');
    Result<UndoLog> log = OpenLog();
    ASSERT_TRUE(log.has_value());
    BuildRequest request = Request(2, 16_MiB);
    request.disks_dir = small / "trial";
    request.stack.mutable_host()->mutable_btrfs();
    request.disks.set_size((128_MiB).count());
    const Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
    EXPECT_EQ(built.error().code(), Errc::kNoSpace);
    EXPECT_TRUE(log->RunAll({}).has_value());
    EXPECT_FALSE(std::filesystem::exists(small / "trial"));
  }
  EXPECT_TRUE(Unmount(small, seconds(1)).has_value());
}

TEST_F(StackTest, LimitsInTimeAndCancelEndTheBuild) {
  BuildRequest request = Request(1, 64_MiB);
  request.stack.mutable_host()->mutable_ext4();
  request.timeout = Nanoseconds(1);
  Result<UndoLog> log = OpenLog();
  ASSERT_TRUE(log.has_value());
  EXPECT_EQ(BuildStack(request, *log).error().code(), Errc::kTimedOut);
  EXPECT_TRUE(log->RunAll({}).has_value());
  runtime::CancelToken cancel;
  cancel.Cancel();
  request.cancel = &cancel;
  request.timeout = seconds(10);
  EXPECT_EQ(BuildStack(request, *log).error().code(), Errc::kCancelled);
  EXPECT_TRUE(log->RunAll({}).has_value());
  EXPECT_EQ(Leftovers(), "");
}

TEST_F(StackTest, AMountInUseNamesItsUserAndIsUndoneLater) {
  BuildRequest request = Request(1, 32_MiB);
  request.stack.mutable_host()->mutable_ext4();
  Result<UndoLog> log = OpenLog();
  ASSERT_TRUE(log.has_value());
  const Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
  ASSERT_TRUE(built.has_value()) << built.error().ToString();
  exec::Command command;
  command.words = {"sleep", "60"};
  command.directory = (*built)->directory();
  Result<exec::Child> user = exec::Child::Spawn(command, {});
  ASSERT_TRUE(user.has_value());

  const std::size_t steps = log->steps().size();
  const Result<void> undone = log->RunAll({}, milliseconds(200));
  ASSERT_FALSE(undone.has_value());
  EXPECT_EQ(undone.error().code(), Errc::kBusy);
  EXPECT_THAT(undone.error().ToString(), HasSubstr("sleep (pid " + std::to_string(user->pid())));
  EXPECT_EQ(log->steps().size(), steps);
  EXPECT_TRUE((*built)->Check().has_value()) << "what is below was pulled away";

  ASSERT_TRUE(user->KillGroup().has_value());
  ASSERT_TRUE(user->WaitUntil(MonotonicClock().Now() + seconds(5)).has_value());
  EXPECT_TRUE(log->RunAll({}).has_value());
  EXPECT_EQ(Leftovers(), "");
}

TEST_F(StackTest, ALoopDeviceOfSomebodyElseIsLeftAlone) {
  const std::filesystem::path theirs = base_ / "theirs";
  std::ofstream(theirs) << std::string(1 << 20, 'x');
  const Result<LoopDevice> loop =
      AttachLoop(theirs, false, [](const std::string&) { return Result<void>(); });
  ASSERT_TRUE(loop.has_value()) << loop.error().ToString();
  EXPECT_TRUE(DetachLoop(loop->name, base_ / "ours", seconds(1)).has_value());
  EXPECT_TRUE(*IsLoopOf(loop->name, theirs));
  // Same path, other file.
  std::filesystem::rename(theirs, base_ / "moved");
  std::ofstream(theirs) << "new";
  EXPECT_FALSE(*IsLoopOf(loop->name, theirs));
  EXPECT_TRUE(DetachLoop(loop->name, base_ / "moved", seconds(1)).has_value());
  EXPECT_FALSE(*IsLoopOf(loop->name, base_ / "moved"));
}

TEST_F(StackTest, SeveralAgentsAtOnceGetLoopDevicesOfTheirOwn) {
  constexpr int kAgents = 6;
  std::vector<pid_t> agents;
  for (int agent = 0; agent < kAgents; ++agent) {
    const pid_t pid = fork();
    if (pid == 0) {
      BuildRequest request = Request(2, 128_MiB);
      const std::string name = "agent-" + std::to_string(agent);
      request.disks_dir = base_ / "disks" / name;
      request.mount_dir = base_ / "mounts" / name;
      request.tag += "-" + name;
      request.stack.mutable_host()->mutable_btrfs()->set_data(v1::BTRFS_PROFILE_RAID0);
      Result<UndoLog> log = UndoLog::Open(base_ / (name + ".log"));
      if (!log) _exit(2);
      const Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
      if (!built) fprintf(stderr, "%s\n", built.error().ToString().c_str());
      const Result<void> undone = log->RunAll({});
      if (!undone) fprintf(stderr, "%s\n", undone.error().ToString().c_str());
      _exit(built && undone ? 0 : 1);
    }
    agents.push_back(pid);
  }
  for (pid_t pid : agents) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace labrack::stack
