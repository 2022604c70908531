// Goal: what of agent/stack needs no root: which options are let through, what a host is told it
// cannot do, the undo log's file, plain directories, the parsers. Method: texts and temporary
// directories.
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "agent/stack/backing.h"
#include "agent/stack/disks.h"
#include "agent/stack/host_ability.h"
#include "agent/stack/mounts.h"
#include "agent/stack/option_words.h"
#include "agent/stack/stack.h"
#include "agent/stack/stack_backend.h"

namespace labrack::stack {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = testing::TempDir() + "labrack-stack-parts.XXXXXX";
    path_ = std::filesystem::canonical(mkdtemp(name.data()));
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(MountInfoTest, NamesWithBlanksAndReadOnlyOnesAreRead) {
  const std::vector<MountEntry> mounts = ParseMountInfo(
      "36 35 8:1 / /a\\040b rw,noatime master:1 shared:2 - ext4 /dev/sda1 rw,errors=continue\n"
      "garbage\n"
      "37 35 0:40 / /pool rw,relatime - fuse.zfs tank rw\n"
      "38 35 7:3 / /gone rw - xfs /dev/loop3 ro,attr2\n"
      "39 35 7:4 / /ro ro - xfs /dev/loop4 rw\n");
  ASSERT_EQ(mounts.size(), 4u);
  EXPECT_EQ(mounts[0].mount_point, "/a b");
  EXPECT_EQ(mounts[0].source, "/dev/sda1");
  EXPECT_EQ(mounts[0].device_major, 8u);
  EXPECT_FALSE(mounts[0].read_only);
  EXPECT_EQ(mounts[1].file_system, "fuse.zfs");
  EXPECT_TRUE(mounts[2].read_only);
  EXPECT_TRUE(mounts[3].read_only);
}

// What the kernel wrote for a process on a host with a root, a btrfs with two subvolumes, an
// overlay and a bind mount; shortened.
constexpr std::string_view kHostTable =
    "24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "25 24 0:22 / /proc rw,nosuid - proc proc rw\n"
    "26 24 0:38 /@ /srv rw,relatime shared:9 - btrfs /dev/vdb rw,subvolid=256,subvol=/@\n"
    "27 26 0:38 /@home /srv/home rw,relatime - btrfs /dev/vdb rw,subvolid=257,subvol=/@home\n"
    "28 24 0:51 / /var/lib/box/merged rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n"
    "29 24 254:0 /home/me/disks\\040of\\040mine /mnt/my\\040disks ro,relatime shared:1 - ext4 "
    "/dev/vda rw\n";

std::string FoundIn(std::string_view table, std::string_view path) {
  const std::vector<MountEntry> mounts = ParseMountInfo(table);
  const MountEntry* found = FindMount(mounts, path);
  if (found == nullptr) return "none";
  return found->source + " on " + found->mount_point + (found->read_only ? " ro" : "");
}

TEST(FindMountTest, BindMountsSubvolumesAndOverlaysAreTheDeepestOnTheWay) {
  EXPECT_EQ(FoundIn(kHostTable, "/"), "/dev/vda on /");
  EXPECT_EQ(FoundIn(kHostTable, "/process"), "/dev/vda on /");
  EXPECT_EQ(FoundIn(kHostTable, "/proc"), "proc on /proc");
  EXPECT_EQ(FoundIn(kHostTable, "/srv/x"), "/dev/vdb on /srv");
  EXPECT_EQ(FoundIn(kHostTable, "/srv/homes"), "/dev/vdb on /srv");
  EXPECT_EQ(FoundIn(kHostTable, "/srv/home/x/y"), "/dev/vdb on /srv/home");
  EXPECT_EQ(FoundIn(kHostTable, "/var/lib/box/merged/etc"), "overlay on /var/lib/box/merged");
  EXPECT_EQ(FoundIn(kHostTable, "/mnt/my disks/1"), "/dev/vda on /mnt/my disks ro");
}

TEST(FindMountTest, WhatALaterMountCoversIsNotSeen) {
  const std::string table = std::string(kHostTable) +
                            "30 24 7:0 / /srv/over rw - xfs /dev/loop0 rw\n"  // under /srv: covered
                            "31 26 7:1 / /srv rw - ext4 /dev/loop1 rw\n"      // upon /srv itself
                            "32 24 0:60 / /var rw - tmpfs tmpfs rw\n"         // covers the overlay
                            "33 32 7:2 / /var/lib/box rw - xfs /dev/loop2 rw\n";  // on that
  EXPECT_EQ(FoundIn(table, "/srv/over/x"), "/dev/loop1 on /srv");
  EXPECT_EQ(FoundIn(table, "/srv/home/x"), "/dev/loop1 on /srv");
  EXPECT_EQ(FoundIn(table, "/var/lib/x"), "tmpfs on /var");
  EXPECT_EQ(FoundIn(table, "/var/lib/box/merged/etc"), "/dev/loop2 on /var/lib/box");
}

// A root that was mounted after what stands on it (an initial RAM disk hands /proc on), whose
// parent is itself.
TEST(FindMountTest, TheOrderOfTheTableDoesNotCount) {
  constexpr std::string_view kTable =
      "20 24 0:5 / /proc rw - proc proc rw\n"
      "21 20 0:6 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw\n"
      "24 24 254:0 / / rw - ext4 /dev/vda rw\n";
  EXPECT_EQ(FoundIn(kTable, "/proc/self"), "proc on /proc");
  EXPECT_EQ(FoundIn(kTable, "/proc/sys/fs/binfmt_misc"), "binfmt_misc on /proc/sys/fs/binfmt_misc");
  EXPECT_EQ(FoundIn(kTable, "/etc"), "/dev/vda on /");
  EXPECT_EQ(FoundIn("1 2 0:1 / / rw - a a rw\n2 1 0:2 / / rw - b b rw\n", "/x"), "none");
}

// As seen from inside a chroot at /srv/home/root of the host above: its root's mount is left out.
TEST(FindMountTest, InAChrootTheRootIsInNoTableAndThePathSaysWhatItIs) {
  constexpr std::string_view kTable =
      "40 27 0:22 / /proc rw,nosuid - proc proc rw\n"
      "41 27 254:0 /data /mnt rw - ext4 /dev/vda rw\n"
      "42 41 0:70 / /mnt/ram rw - tmpfs tmpfs rw\n";
  EXPECT_EQ(FoundIn(kTable, "/srv/state"), "none");
  EXPECT_EQ(FoundIn(kTable, "/proc/1"), "proc on /proc");
  EXPECT_EQ(FoundIn(kTable, "/mnt/x"), "/dev/vda on /mnt");
  EXPECT_EQ(FoundIn(kTable, "/mnt/ram/x"), "tmpfs on /mnt/ram");
  EXPECT_EQ(FoundIn("", "/"), "none");

  const MountEntry disk = MountFromFacts({.device_major = 254,
                                          .device_minor = 1,
                                          .file_system = "ext4",
                                          .block_device = "vda1",
                                          .read_only = true});
  EXPECT_EQ(disk.mount_point, "/");
  EXPECT_EQ(disk.source, "/dev/vda1");
  EXPECT_EQ(disk.device_major, 254u);
  EXPECT_EQ(disk.device_minor, 1u);
  EXPECT_TRUE(disk.read_only);
  // A subvolume's number belongs to no device.
  EXPECT_EQ(MountFromFacts({.device_minor = 41, .file_system = "btrfs", .block_device = ""}).source,
            "btrfs");
}

// 0: as outside; 77: not possible here; else what was wrong.
int LookFromAChroot(const std::filesystem::path& root, const MountEntry& outside) {
  if (unshare(CLONE_NEWNS) != 0) return 77;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (mount("proc", (root / "proc").c_str(), "proc", 0, nullptr) != 0) return 77;
  if (chroot(root.c_str()) != 0 || chdir("/") != 0) return 77;
  const Result<std::vector<MountEntry>> mounts = ReadMounts();
  if (!mounts || FindMount(*mounts, "/work") != nullptr) return 1;
  const Result<MountEntry> proc = MountOf("/proc/self");
  if (!proc || proc->file_system != "proc") return 2;
  const Result<MountEntry> work = MountOf("/work");
  if (!work || work->mount_point != "/") return 3;
  if (work->file_system != outside.file_system) return 4;
  struct stat status{};
  if (stat("/work", &status) != 0) return 5;
  if (work->device_major != major(status.st_dev)) return 6;
  if (work->device_minor != minor(status.st_dev) || work->read_only) return 7;
  // Nothing of the host's is visible, so that there is no device to be named.
  return work->source == outside.file_system ? 0 : 8;
}

TEST(FindMountTest, ARealChrootIsLookedThrough) {
  TemporaryDirectory temp;
  for (const char* name : {"proc", "work"}) std::filesystem::create_directory(temp.path() / name);
  const Result<MountEntry> outside = MountOf(temp.path());
  ASSERT_TRUE(outside);
  const pid_t child = fork();
  if (child == 0) _exit(LookFromAChroot(temp.path(), *outside));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no chroot with /proc can be made (not root)";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MountInfoTest, ThisHostsOwnRootIsFound) {
  ASSERT_TRUE(MountOf("/proc/self").has_value());
  EXPECT_EQ(MountOf("/proc/self")->file_system, "proc");
  EXPECT_FALSE(MountAt("/no/such/mount")->has_value());
}

// The point of the grammar: words that would make mkfs write to something else.
TEST(OptionWordsTest, NothingThatNamesAnotherDeviceGetsThrough) {
  const ToolGrammar ext4{.program = "mkfs.ext4",
                         .flags = "jF",
                         .with_value = "bEiJ",
                         .long_options = {"--csum"},
                         .long_flags = {"--mixed"},
                         .refused_text = {"device="}};
  const auto code = [&](const std::vector<std::string>& words) {
    const Result<void> checked = CheckToolWords(ext4, words);
    return checked ? std::string("fine") : std::string(ErrcName(checked.error().code()));
  };
  EXPECT_EQ(code({}), "fine");
  EXPECT_EQ(code({"-i", "4096", "-b4096", "-jF", "-E", "stride=4", "--csum=crc32c", "--csum",
                  "xxhash", "--mixed"}),
            "fine");
  EXPECT_EQ(code({"/dev/sda"}), "refused by disk safety");
  EXPECT_EQ(code({"-i", "/dev/sda"}), "refused by disk safety");
  EXPECT_EQ(code({"-J", "device=UUID=1"}), "refused by disk safety");
  EXPECT_EQ(code({"sda"}), "invalid argument");
  EXPECT_EQ(code({"-j", "sda"}), "invalid argument");
  EXPECT_EQ(code({"-i", "4096", "sda"}), "invalid argument");
  EXPECT_EQ(code({"-n"}), "invalid argument");
  EXPECT_EQ(code({"-jn"}), "invalid argument");
  EXPECT_EQ(code({"-i"}), "invalid argument");
  EXPECT_EQ(code({"-i", "-j"}), "invalid argument");
  EXPECT_EQ(code({"--"}), "invalid argument");
  EXPECT_EQ(code({"-"}), "invalid argument");
  EXPECT_EQ(code({""}), "invalid argument");
  EXPECT_EQ(code({"--root-dir=x"}), "invalid argument");
  EXPECT_EQ(code({"--mixed=1"}), "invalid argument");
}

TEST(OptionWordsTest, MountOptionsStayOnTheTrialsOwnDevice) {
  EXPECT_TRUE(CheckMountOptions({"noatime", "data=journal", "compress=zstd:3"}).has_value());
  for (const char* option : {"bind", "loop", "device=/dev/sda", "logdev=/dev/sda", "journal_dev=1",
                             "subvol=/x", "ro", "foo=../x"}) {
    EXPECT_EQ(CheckMountOptions({option}).error().code(), Errc::kRefusedBySafety) << option;
  }
  EXPECT_EQ(CheckMountOptions({"noatime,ro"}).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(CheckMountOptions({""}).error().code(), Errc::kInvalidArgument);
}

TEST(OptionWordsTest, NoPlaybookMayMakeTheHostPanic) {
  const ToolGrammar ext4{.program = "mkfs.ext4",
                         .flags = "",
                         .with_value = "eE",
                         .long_options = {},
                         .long_flags = {},
                         .refused_text = {}};
  EXPECT_TRUE(CheckToolWords(ext4, {"-e", "continue"}));
  EXPECT_TRUE(CheckMountOptions({"errors=remount-ro"}));
  EXPECT_TRUE(CheckZfsProperties({"failmode=wait"}));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-e", "panic"}, {"-epanic"}, {"-E", "errors=panic"}}) {
    EXPECT_EQ(CheckToolWords(ext4, words).error().code(), Errc::kRefusedBySafety) << words[0];
  }
  for (const char* option : {"errors=panic", "fatal_errors=panic"}) {
    EXPECT_EQ(CheckMountOptions({option}).error().code(), Errc::kRefusedBySafety) << option;
  }
  EXPECT_EQ(CheckZfsProperties({"failmode=panic"}).error().code(), Errc::kRefusedBySafety);
}

TEST(OptionWordsTest, ZfsPropertiesReachNothingElse) {
  EXPECT_TRUE(CheckZfsProperties({"ashift=12", "recordsize=2K"}).has_value());
  for (const char* property : {"mountpoint=legacy", "cachefile=x", "sharenfs=on", "a=/etc"}) {
    EXPECT_EQ(CheckZfsProperties({property}).error().code(), Errc::kRefusedBySafety) << property;
  }
  EXPECT_EQ(CheckZfsProperties({"-f"}).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(CheckZfsProperties({"lz4"}).error().code(), Errc::kInvalidArgument);
}

HostAbility FullHost() {
  HostAbility host;
  host.is_root = host.may_mount = host.loop_devices = true;
  host.file_systems = {"ext4", "xfs", "btrfs", "tmpfs"};
  for (const char* name : {"mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "zpool", "zfs"}) {
    host.programs[name] = std::string("/usr/sbin/") + name;
  }
  return host;
}

std::string ReasonFor(const HostAbility& host, const std::string& kind) {
  for (const v1::StackSupport& support : SupportOf(host)) {
    EXPECT_EQ(support.supported(), support.reason().empty());
    if (support.kind() == kind) return support.reason();
  }
  return "no such kind";
}

TEST(SupportTest, EveryKindHasAReasonThatSaysWhatToDo) {
  HostAbility host = FullHost();
  for (const v1::StackSupport& support : SupportOf(host)) EXPECT_TRUE(support.supported());
  EXPECT_EQ(SupportOf(host).size(), 6u);

  host.programs.erase("mkfs.xfs");
  EXPECT_EQ(ReasonFor(host, "xfs"), "mkfs.xfs is not installed (package xfsprogs)");
  host.file_systems.erase("btrfs");
  EXPECT_EQ(ReasonFor(host, "btrfs"), "this kernel has no btrfs");
  host.zfs_problem = "neither the module zfs nor the daemon zfs-fuse runs";
  EXPECT_EQ(ReasonFor(host, "zfs"), host.zfs_problem);
  EXPECT_EQ(ReasonFor(host, "ext4"), "");

  host.loop_devices = false;
  EXPECT_THAT(ReasonFor(host, "ext4"), HasSubstr("/dev/loop-control"));
  host.may_mount = false;
  EXPECT_THAT(ReasonFor(host, "ext4"), HasSubstr("CAP_SYS_ADMIN"));
  host.is_root = false;
  EXPECT_THAT(ReasonFor(host, "ext4"), HasSubstr("root"));
  EXPECT_EQ(ReasonFor(host, "dir"), "");
}

TEST(BackendTest, DiskCountsAndProfilesAreChecked) {
  v1::HostStack spec;
  v1::Disks disks;
  disks.set_count(3);
  spec.mutable_btrfs()->set_data(v1::BTRFS_PROFILE_RAID5);
  EXPECT_EQ(FindBackend("btrfs")->Needs(spec, disks)->count_used, 3u);
  spec.mutable_btrfs()->set_metadata(v1::BTRFS_PROFILE_RAID10);
  EXPECT_THAT(FindBackend("btrfs")->Needs(spec, disks).error().ToString(),
              HasSubstr("profile raid10 needs 4 disks, and `disks: {count}` is 3"));
  spec.mutable_zfs()->set_layout(v1::ZFS_LAYOUT_MIRRORS);
  disks.set_count(5);
  EXPECT_THAT(FindBackend("zfs")->Needs(spec, disks).error().ToString(),
              HasSubstr("an even number"));
  spec.mutable_ext4();
  EXPECT_EQ(FindBackend("ext4")->Needs(spec, disks)->count_used, 1u);
  spec.mutable_ext4()->add_mkfs_options("/dev/sda");
  EXPECT_EQ(FindBackend("ext4")->Needs(spec, disks).error().code(), Errc::kRefusedBySafety);
  EXPECT_EQ(FindBackend("ufs"), nullptr);
}

BuildRequest DirRequest(const std::filesystem::path& base) {
  BuildRequest request;
  request.stack.mutable_host()->mutable_dir();
  request.disks_dir = base / "state/disks/trial";
  request.mount_dir = base / "state/mounts/trial";
  request.tag = "run.1";
  request.timeout = std::chrono::seconds(10);
  return request;
}

// A bind mount of the same file system has the same device: it is not told apart by that.
TEST(UndoStepTest, ATreeIsNotEmptiedThroughAMountInIt) {
  const TemporaryDirectory base;
  const std::filesystem::path kept = base.path() / "kept";
  const std::filesystem::path tree = base.path() / "tree";
  std::filesystem::create_directories(kept);
  std::filesystem::create_directories(tree / "inner");
  std::ofstream(kept / "file") << "somebody's";
  if (mount(kept.c_str(), (tree / "inner").c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "a bind mount cannot be made here (not root)";
  }
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  ASSERT_TRUE(log && log->Add({UndoKind::kRemoveTree, tree.string(), ""}));
  const Result<void> undone = log->RunAll({}, Nanoseconds(0));
  const bool is_there = std::filesystem::exists(kept / "file");
  umount2((tree / "inner").c_str(), MNT_DETACH);
  EXPECT_TRUE(is_there);
  ASSERT_FALSE(undone);
  EXPECT_NE(undone.error().ToString().find("inner"), std::string::npos);
  EXPECT_TRUE(log->RunAll({}, Nanoseconds(0)));
  EXPECT_FALSE(std::filesystem::exists(tree));
}

// No loop device is reached: the limit passes while the first disk is written.
TEST(DisksTest, ALimitThatPassesNamesItsFieldAndWhatWasDone) {
  const TemporaryDirectory base;
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  ASSERT_TRUE(log);
  const Nanoseconds length = std::chrono::milliseconds(20);
  const Result<std::vector<Disk>> disks =
      MakeDisks({.directory = base.path(),
                 .count = 1,
                 .size = 1_GiB,
                 .limit = {.until = MonotonicClock().Now() + length, .length = length}},
                *log);
  ASSERT_FALSE(disks);
  EXPECT_EQ(disks.error().code(), Errc::kTimedOut);
  EXPECT_THAT(disks.error().ToString(), HasSubstr("of 1.00 GiB written"));
  EXPECT_THAT(disks.error().ToString(), HasSubstr("`timeouts.build` of 20ms"));
  EXPECT_THAT(disks.error().ToString(), HasSubstr("`disks: {prepare: allocated}`"));
  EXPECT_TRUE(log->RunAll({}).has_value());
}

TEST(DirStackTest, IsAFreshDirectoryThatGoesAgain) {
  const TemporaryDirectory base;
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  ASSERT_TRUE(log.has_value());
  const Result<std::unique_ptr<BuiltStack>> built = BuildStack(DirRequest(base.path()), *log);
  ASSERT_TRUE(built.has_value()) << built.error().ToString();
  const std::filesystem::path directory = (*built)->directory();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_TRUE(directory.string().starts_with(base.path().string()));
  EXPECT_GT((*built)->capacity(), 1_MiB);
  std::filesystem::create_directories(directory / "a/b");
  std::ofstream(directory / "a/b/file") << "x";
  std::filesystem::create_symlink("/etc", directory / "a/link");
  EXPECT_TRUE((*built)->DropCaches().has_value());
  EXPECT_TRUE((*built)->Check().has_value());

  std::vector<std::string> order;
  EXPECT_TRUE(log->RunAll([&](const UndoStep& step, const Result<void>& done) {
                   EXPECT_TRUE(done.has_value());
                   order.push_back(step.path);
                 })
                  .has_value());
  EXPECT_THAT(order, ElementsAre(directory.string(), (base.path() / "state/disks/trial").string()));
  EXPECT_FALSE(std::filesystem::exists(base.path() / "state/disks/trial"));
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
  EXPECT_FALSE((*built)->Check().has_value());
  EXPECT_TRUE(log->RunAll({}).has_value());
}

TEST(DirStackTest, ColdIsColdOrSaysWhyNot) {
  for (const std::filesystem::path& where :
       {std::filesystem::path(testing::TempDir()), std::filesystem::path("/dev/shm")}) {
    std::string name = (where / "labrack-stack-cold.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) continue;
    const std::filesystem::path base = std::filesystem::canonical(name);
    Result<UndoLog> log = UndoLog::Open(base / "undo.log");
    ASSERT_TRUE(log.has_value());
    const Result<std::unique_ptr<BuiltStack>> built = BuildStack(DirRequest(base), *log);
    ASSERT_TRUE(built.has_value()) << built.error().ToString();
    constexpr std::size_t kSize = 4 << 20;
    const std::filesystem::path file = (*built)->directory() / "sub/file";
    std::filesystem::create_directory(file.parent_path());
    std::ofstream(file) << std::string(kSize, 'x');
    ASSERT_TRUE((*built)->DropCaches().has_value());
    EXPECT_FALSE((*built)->KeptInMemory().names.empty());
    if (where == "/dev/shm") EXPECT_THAT((*built)->KeptInMemory().data, HasSubstr("tmpfs"));
    if ((*built)->KeptInMemory().data.empty()) {
      const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC);
      void* const mapped = mmap(nullptr, kSize, PROT_READ, MAP_SHARED, opened, 0);
      ASSERT_NE(mapped, MAP_FAILED);
      std::vector<unsigned char> resident(kSize / 4096);
      EXPECT_EQ(mincore(mapped, kSize, resident.data()), 0);
      EXPECT_EQ(std::count(resident.begin(), resident.end(), 1), 0);
      munmap(mapped, kSize);
      close(opened);
    }
    EXPECT_TRUE(log->RunAll({}).has_value());
    std::filesystem::remove_all(base);
  }
}

TEST(DirStackTest, OnlyDirectoriesOfTheConfigurationMayBeNamed) {
  const TemporaryDirectory base;
  const std::filesystem::path allowed = base.path() / "allowed";
  std::filesystem::create_directories(allowed / "inner");
  std::filesystem::create_directories(base.path() / "allowed-not");
  std::filesystem::create_symlink(base.path() / "allowed-not", allowed / "escape");
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  BuildRequest request = DirRequest(base.path());
  request.allowed_directories = {"/no/such", allowed.string()};
  const auto build = [&](const std::string& path) {
    request.stack.mutable_host()->mutable_dir()->set_path(path);
    const Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
    EXPECT_TRUE(log->RunAll({}).has_value());
    return built ? std::string("built") : std::string(ErrcName(built.error().code()));
  };
  EXPECT_EQ(build(allowed.string()), "built");
  EXPECT_EQ(build((allowed / "inner").string()), "built");
  EXPECT_EQ(build((base.path() / "allowed-not").string()), "permission denied");
  EXPECT_EQ(build((allowed / "../allowed-not").string()), "permission denied");
  EXPECT_EQ(build((allowed / "escape").string()), "permission denied");
  EXPECT_EQ(build("/no/such"), "not found");
  EXPECT_EQ(build("relative"), "invalid argument");
  request.stand_in = "not root";
  EXPECT_EQ(build("/no/such"), "built");
}

TEST(DirStackTest, AStandInIsBuiltWhateverTheStackSays) {
  const TemporaryDirectory base;
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  BuildRequest request = DirRequest(base.path());
  request.stack.mutable_host()->mutable_xfs();
  request.disks.set_count(1);
  request.stand_in = "the agent does not run as root";
  const Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *log);
  ASSERT_TRUE(built.has_value()) << built.error().ToString();
  EXPECT_THAT((*built)->description(), HasSubstr("directory "));
  EXPECT_TRUE(log->RunAll({}).has_value());
}

TEST(DirStackTest, AForeignDirectoryInItsPlaceIsNotTouched) {
  const TemporaryDirectory base;
  const BuildRequest request = DirRequest(base.path());
  std::filesystem::create_directories(request.disks_dir);
  std::ofstream(request.disks_dir / "precious") << "x";
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  EXPECT_EQ(BuildStack(request, *log).error().code(), Errc::kAlreadyExists);
  EXPECT_FALSE(log->RunAll({}).has_value());
  EXPECT_TRUE(std::filesystem::exists(request.disks_dir / "precious"));
}

TEST(UndoLogTest, IsReadBackAfterACrashAndATornLineIsDropped) {
  const TemporaryDirectory base;
  const std::filesystem::path path = base.path() / "undo.log";
  const std::filesystem::path victim = base.path() / "victim";
  {
    Result<UndoLog> log = UndoLog::Open(path);
    ASSERT_TRUE(log->Add({UndoKind::kRemoveEmptyDirectory, (base.path() / "d").string(), ""}));
    ASSERT_TRUE(log->Add({UndoKind::kRemoveFile, victim.string(), ""}));
    ASSERT_TRUE(log->Add({UndoKind::kDetachLoop, "/no/such\nfile", "loop999"}));
  }
  std::ofstream(path, std::ios::app) << "0123456789abcdef {\"do\":\"remove-tr";
  std::ofstream(victim) << "x";
  Result<UndoLog> log = UndoLog::Open(path);
  ASSERT_TRUE(log.has_value()) << log.error().ToString();
  ASSERT_EQ(log->steps().size(), 3u);
  EXPECT_EQ(log->steps()[2].path, "/no/such\nfile");
  EXPECT_EQ(log->steps()[2].name, "loop999");
  ASSERT_TRUE(log->Add({UndoKind::kUnmount, "/no/such/mount", ""}));
  EXPECT_TRUE(log->RunAll({}).has_value());
  EXPECT_FALSE(std::filesystem::exists(victim));
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST(UndoLogTest, ADamagedLineInTheMiddleIsAnError) {
  const TemporaryDirectory base;
  const std::filesystem::path path = base.path() / "undo.log";
  {
    Result<UndoLog> log = UndoLog::Open(path);
    ASSERT_TRUE(log->Add({UndoKind::kRemoveFile, "/a", ""}));
    ASSERT_TRUE(log->Add({UndoKind::kRemoveFile, "/b", ""}));
  }
  std::fstream file(path);
  file.seekp(30);
  file << '#';
  file.close();
  EXPECT_EQ(UndoLog::Open(path).error().code(), Errc::kCorrupt);
}

TEST(UndoLogTest, NobodyUndoesUnderALivingWorker) {
  const TemporaryDirectory base;
  const Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  ASSERT_TRUE(log.has_value());
  EXPECT_EQ(UndoLog::Open(base.path() / "undo.log").error().code(), Errc::kBusy);
}

TEST(UndoLogTest, AStepThatFailsKeepsTheLogAndLetsTheOthersRun) {
  const TemporaryDirectory base;
  const std::filesystem::path stuck = base.path() / "stuck";
  const std::filesystem::path victim = base.path() / "victim";
  std::filesystem::create_directories(stuck / "inner");
  std::ofstream(victim) << "x";
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  ASSERT_TRUE(log->Add({UndoKind::kRemoveFile, victim.string(), ""}));
  ASSERT_TRUE(log->Add({UndoKind::kRemoveEmptyDirectory, stuck.string(), ""}));
  const Result<void> undone = log->RunAll({});
  ASSERT_FALSE(undone.has_value());
  EXPECT_THAT(undone.error().ToString(), HasSubstr(stuck.string()));
  EXPECT_FALSE(std::filesystem::exists(victim));
  EXPECT_EQ(log->steps().size(), 2u);
  std::filesystem::remove(stuck / "inner");
  EXPECT_TRUE(log->RunAll({}).has_value());
}

TEST(UndoLogTest, OnlyPoolsOfOursAreDestroyed) {
  const TemporaryDirectory base;
  Result<UndoLog> log = UndoLog::Open(base.path() / "undo.log");
  ASSERT_TRUE(log->Add({UndoKind::kDestroyPool, "", "rpool"}));
  EXPECT_EQ(log->RunAll({}).error().code(), Errc::kRefusedBySafety);
}

TEST(DeviceUseTest, DifferencesNeverGoBelowZero) {
  v1::DeviceUse before;
  before.set_device("loop0 (disk 0)");
  before.set_read_operations(10);
  before.set_write_bytes(1000);
  v1::DeviceUse after = before;
  after.set_read_operations(4);
  after.set_write_bytes(5096);
  after.set_flush_operations(3);
  const std::vector<v1::DeviceUse> use = Subtract({after}, {before});
  EXPECT_EQ(use[0].device(), "loop0 (disk 0)");
  EXPECT_EQ(use[0].read_operations(), 0u);
  EXPECT_EQ(use[0].write_bytes(), 4096u);
  EXPECT_EQ(use[0].flush_operations(), 3u);
  EXPECT_FALSE(ReadDeviceUse({{"nosuchdevice", ""}}).has_value());
}

TEST(BackingTest, SaysFileSystemDeviceAndIdentity) {
  const Backing backing{.file_system = "ext4",
                        .source = "/dev/vda1",
                        .device = "vda1",
                        .model = "QEMU HARDDISK",
                        .serial = "X1"};
  EXPECT_EQ(backing.Describe(), "ext4 on /dev/vda1 (QEMU HARDDISK, serial X1)");
  EXPECT_EQ((Backing{.file_system = "tmpfs", .source = "tmpfs"}).Describe(), "tmpfs");
  EXPECT_FALSE(FindBacking("/")->file_system.empty());
  EXPECT_FALSE(FindBacking("/no/such/place").has_value());
}

}  // namespace
}  // namespace labrack::stack
