// Goal: commands cannot hang us, flood us, leak into each other or outlive their limits, and every
// end is told as it was. Method: small shell commands that misbehave in one way each.
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/exec/capped_buffer.h"
#include "agent/exec/cgroup.h"
#include "agent/exec/child.h"
#include "agent/exec/family.h"
#include "agent/exec/program.h"
#include "agent/exec/run.h"

namespace labrack::exec {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Command Shell(const std::string& script, Nanoseconds timeout = seconds(20)) {
  Command command;
  command.words = {"/bin/sh", "-c", script};
  command.timeout = timeout;
  return command;
}

Outcome RunOk(const Command& command) {
  Result<Outcome> outcome = exec::Run(command);
  EXPECT_TRUE(outcome.has_value()) << outcome.error().ToString();
  return outcome.value_or(Outcome{});
}

bool Exists(pid_t pid) { return kill(pid, 0) == 0; }

// A killed process is gone only once its new parent has reaped it.
bool GoneSoon(pid_t pid) {
  for (int i = 0; i < 200; ++i) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    if (!std::getline(status, line) || line.find(") Z") != std::string::npos) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

// The number that a process has written; waits for it.
pid_t PidIn(const std::filesystem::path& file) {
  for (int i = 0; i < 500; ++i) {
    pid_t pid = 0;
    if (std::ifstream(file) >> pid) return pid;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return -1;
}

TEST(ExecTest, OutputErrorsAndExitCodeComeBack) {
  const Outcome outcome = RunOk(Shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(outcome.output, "out\n");
  EXPECT_EQ(outcome.errors, "err\n");
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.Describe(), "sh: exit code 7: err");
}

TEST(ExecTest, ASignalIsToldApartFromAnExitCode) {
  const Outcome outcome = RunOk(Shell("kill -SEGV $$"));
  EXPECT_EQ(outcome.exit_code, -1);
  EXPECT_EQ(outcome.signal, SIGSEGV);
  EXPECT_THAT(outcome.Describe(), HasSubstr("signal 11 (Segmentation fault)"));
}

TEST(ExecTest, AMissingProgramAndAMissingDirectoryAreNamed) {
  Command command;
  command.words = {"mkfs.nothing"};
  command.timeout = seconds(1);
  const Result<Outcome> missing = exec::Run(command);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code(), Errc::kNotFound);
  EXPECT_THAT(missing.error().ToString(), HasSubstr("mkfs.nothing: not installed (looked in /usr"));

  command = Shell("true");
  command.directory = "/nowhere";
  EXPECT_THAT(exec::Run(command).error().ToString(), HasSubstr("/nowhere: the working directory"));
  command = Shell("true");
  command.words = {"bin/sh"};
  EXPECT_EQ(exec::Run(command).error().code(), Errc::kInvalidArgument);
}

TEST(ExecTest, AProgramThatCannotBeExecutedIsAnErrorAndLeavesNoZombie) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("noexec." + std::to_string(getpid()));
  std::ofstream(path) << "\x7f"
                         "ELF nonsense";
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  Command command;
  command.words = {path.string()};
  command.timeout = seconds(1);
  const Result<Outcome> outcome = exec::Run(command);
  std::filesystem::remove(path);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_THAT(outcome.error().ToString(), HasSubstr("Exec format error"));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ExecTest, TheProcessGetsACleanEnvironmentAndNothingElseOfOurs) {
  constexpr int kLeaky = 200;  // open for good, and not close-on-exec
  ASSERT_EQ(dup2(STDOUT_FILENO, kLeaky), kLeaky);
  Command command;
  command.words = {"/usr/bin/env"};
  command.timeout = seconds(5);
  command.environment = {{"GIVEN", "a=b c"}};
  const std::string home = getenv("HOME") != nullptr ? getenv("HOME") : "/";
  const std::string output = RunOk(command).output;
  const std::size_t mark = output.find("LABRACK_COMMAND=");
  ASSERT_NE(mark, std::string::npos);
  EXPECT_EQ(output.substr(0, mark), "GIVEN=a=b c\nHOME=" + home + "\n");
  EXPECT_EQ(output.substr(output.find('\n', mark)), "\nLANG=C\nPATH=" + std::string(kPath) + "\n");

  const Outcome fds = RunOk(Shell(
      "readlink /proc/$$/fd/0; for f in 0 1 2 200; do [ -e /proc/$$/fd/$f ] && echo $f; done"));
  EXPECT_EQ(fds.output, "/dev/null\n0\n1\n2\n");
}

TEST(ExecTest, SignalsAreAtTheirDefaultsAndTheGroupIsItsOwn) {
  signal(SIGPIPE, SIG_IGN);
  const Outcome outcome =
      RunOk(Shell("grep -E 'Sig(Blk|Ign)' /proc/self/status; "
                  "cut -d' ' -f5 /proc/$$/stat; echo $$"));
  signal(SIGPIPE, SIG_DFL);
  EXPECT_THAT(outcome.output, HasSubstr("SigBlk:\t0000000000000000\n"));
  EXPECT_THAT(outcome.output, HasSubstr("SigIgn:\t0000000000000000\n"));
  const std::string rest = outcome.output.substr(outcome.output.find("SigIgn"));
  std::istringstream lines(rest.substr(rest.find('\n')));
  pid_t group = 0;
  pid_t pid = 0;
  lines >> group >> pid;
  EXPECT_EQ(group, pid);
  EXPECT_NE(group, getpgrp());
}

TEST(ExecTest, ConcurrentSpawnsKeepNoWriteEndOfEachOther) {
  // Every sleeper that inherited a write end would hold the other thread's Run for
  // kOutputAfterExit.
  std::atomic<bool> done = false;
  std::vector<Child> sleepers;
  std::thread spawner([&] {
    while (!done && sleepers.size() < 200) {
      Command command;
      command.words = {"/bin/sleep", "30"};
      Result<Child> child = Child::Spawn(command, {});
      ASSERT_TRUE(child.has_value()) << child.error().ToString();
      sleepers.push_back(std::move(*child));
    }
  });
  Nanoseconds slowest{0};
  for (int i = 0; i < 60; ++i) {
    const TimePoint start = MonotonicClock().Now();
    EXPECT_TRUE(RunOk(Shell("echo x")).ok());
    slowest = std::max(slowest, MonotonicClock().Now() - start);
  }
  done = true;
  spawner.join();
  EXPECT_GT(sleepers.size(), 5u);
  for (Child& child : sleepers) ASSERT_TRUE(child.KillGroup().has_value());
  for (Child& child : sleepers) {
    EXPECT_TRUE(child.WaitUntil(MonotonicClock().Now() + seconds(5)).has_value());
  }
  EXPECT_LT(slowest, kOutputAfterExit);
}

TEST(ExecTest, AGrandchildThatKeepsThePipeOpenIsKilledAndHoldsNobody) {
  const TimePoint start = MonotonicClock().Now();
  const Outcome outcome = RunOk(Shell("sleep 60 & echo $!"));
  EXPECT_TRUE(outcome.ok());
  EXPECT_LT(MonotonicClock().Now() - start, kOutputAfterExit + seconds(2));
  EXPECT_TRUE(GoneSoon(std::stoi(outcome.output)));
}

TEST(ExecTest, AFloodIsDrainedAndItsMiddleDropped) {
  Command command = Shell("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last");
  command.output_head_max = 1_MiB;
  command.output_tail_max = 64_KiB;
  const Outcome outcome = RunOk(command);
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.output.substr(0, 7), "first\nx");
  EXPECT_EQ(outcome.output.substr(outcome.output.size() - 7), "x\nlast\n");
  EXPECT_EQ(outcome.dropped_bytes, 6 + 20'000'000 + 6 - (1_MiB + 64_KiB).count());
  EXPECT_LT(outcome.output.size(), (1_MiB + 65_KiB).size());
}

TEST(ExecTest, ATimeLimitEndsTheWholeGroup) {
  const Outcome outcome = RunOk(Shell("sleep 60 & echo $!; wait", milliseconds(200)));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_LT(outcome.wall, seconds(2));
  EXPECT_TRUE(GoneSoon(std::stoi(outcome.output)));
  EXPECT_THAT(outcome.Describe(), HasSubstr("time limit"));
}

TEST(ExecTest, AnEndlessFloodDoesNotGetPastTheTimeLimit) {
  const Outcome outcome = RunOk(Shell("exec cat /dev/zero", milliseconds(300)));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_LT(outcome.wall, seconds(3));
}

TEST(ExecTest, WhatAToolSaidIsDescribedInUtf8WhateverItIs) {
  EXPECT_THAT(RunOk(Shell("printf 'caf\\351 \\303\\251' >&2; exit 1")).Describe(),
              testing::EndsWith(": caf? \xc3\xa9"));
  // Cut in the middle of a character.
  const Outcome outcome =
      RunOk(Shell("for i in $(seq 100); do printf '\\342\\202\\254'; done; printf x; exit 1"));
  EXPECT_THAT(outcome.Describe(), HasSubstr(": ...??\xe2\x82\xac"));
}

TEST(ExecTest, CancelEndsACommand) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / ("labrack-cancel-" + std::to_string(getpid()));
  runtime::CancelToken cancel;
  Command command = Shell("echo $$ > " + file.string() + "; exec sleep 60");
  command.cancel = &cancel;
  std::thread canceller([&] {
    EXPECT_GT(PidIn(file), 0);
    cancel.Cancel();
  });
  const Outcome outcome = RunOk(command);
  canceller.join();
  std::filesystem::remove(file);
  EXPECT_TRUE(outcome.cancelled);
  EXPECT_LT(outcome.wall, seconds(2));
  EXPECT_EQ(RunChecked(command).error().code(), Errc::kCancelled);
}

TEST(ExecTest, CpuFiguresAreThoseOfTheCommandAndItsChildren) {
  const Outcome busy =
      RunOk(Shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; head -c 50000000 /dev/zero "
                  "> /dev/null"));
  EXPECT_GT(busy.cpu.user_ns(), 20'000'000);
  EXPECT_GT(busy.cpu.memory_max_bytes(), 500'000u);
  EXPECT_LE(busy.cpu.user_ns() + busy.cpu.system_ns(), busy.wall.count() * 2);
  const Outcome idle = RunOk(Shell("sleep 0.2"));
  EXPECT_LT(idle.cpu.user_ns() + idle.cpu.system_ns(), 100'000'000);
  EXPECT_GE(idle.wall, milliseconds(200));
}

TEST(ExecTest, RunCheckedSaysWhatTheToolSaid) {
  const Result<Outcome> failed = RunChecked(Shell("echo one >&2; echo 'two' >&2; exit 3"));
  EXPECT_EQ(failed.error().code(), Errc::kIo);
  EXPECT_THAT(failed.error().note(), HasSubstr("sh: exit code 3: one | two"));
  const Result<Outcome> full = RunChecked(Shell("echo 'x: No space left on device' >&2; exit 1"));
  EXPECT_EQ(full.error().code(), Errc::kNoSpace);
  EXPECT_EQ(RunChecked(Shell("sleep 9", milliseconds(100))).error().code(), Errc::kTimedOut);
}

TEST(ExecTest, ACommandWithoutATimeLimitOrWithAZeroByteIsRefused) {
  EXPECT_EQ(exec::Run(Shell("true", Nanoseconds(0))).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(exec::Run(Shell(std::string("a\0b", 3))).error().code(), Errc::kInvalidArgument);
}

TEST(ChildTest, GivenDescriptorsAndInheritedOnesReachTheProcess) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  Command command = Shell("echo hello >&" + std::to_string(writer.get()));
  Result<Child> child = Child::Spawn(command, {.inherited_fds = {writer.get()}});
  ASSERT_TRUE(child.has_value());
  writer.Close();
  char buffer[16] = {};
  EXPECT_EQ(read(reader.get(), buffer, sizeof buffer), 6);
  const Result<ExitStatus> status = child->WaitUntil(MonotonicClock().Now() + seconds(5));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->ok());
  EXPECT_TRUE(child->Signal(SIGTERM).has_value());  // after the end: nothing, and no error
}

TEST(ChildTest, WaitIsBoundedAndADestroyedChildLivesOnAndIsReapedLater) {
  Command command;
  command.words = {"/bin/sleep", "0.2"};
  pid_t pid = 0;
  {
    Result<Child> child = Child::Spawn(command, {.new_session = true});
    ASSERT_TRUE(child.has_value());
    pid = child->pid();
    EXPECT_EQ(getsid(pid), pid);
    const TimePoint start = MonotonicClock().Now();
    EXPECT_EQ(child->WaitUntil(start + milliseconds(30)).error().code(), Errc::kTimedOut);
    EXPECT_LT(MonotonicClock().Now() - start, milliseconds(150));
    EXPECT_FALSE(child->Poll()->has_value());
  }
  EXPECT_TRUE(Exists(pid));
  EXPECT_TRUE(GoneSoon(pid));
  EXPECT_TRUE(RunOk(Shell("true")).ok());
  EXPECT_FALSE(Exists(pid));
}

TEST(ChildTest, TheExitCodeIsSeenBeforeTheProcessIsReaped) {
  const Result<Child> exits = Child::Spawn(Shell("exit 3"), {});
  const Result<Child> dies = Child::Spawn(Shell("kill -9 $$"), {});
  Result<Child> lives = Child::Spawn(Shell("exec sleep 60"), {});
  ASSERT_TRUE(exits && dies && lives);
  EXPECT_EQ(lives->PeekExitCode(), std::nullopt);
  for (const Child* child : {&*exits, &*dies}) {
    pollfd ended{.fd = child->pidfd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&ended, 1, 10'000), 1);
  }
  EXPECT_EQ(exits->PeekExitCode(), 3);
  EXPECT_EQ(exits->PeekExitCode(), 3);
  EXPECT_EQ(dies->PeekExitCode(), std::nullopt);
  EXPECT_TRUE(lives->KillGroup());
}

// A thread stands for a caller that ends without a word.
TEST(ChildTest, EndsWithTheThreadThatStartedItWhenAsked) {
  for (const bool ends : {true, false}) {
    Command command;
    command.words = {"/bin/sleep", "5"};
    std::optional<Result<Child>> child;
    std::thread([&] { child = Child::Spawn(command, {.ends_with_caller = ends}); }).join();
    ASSERT_TRUE(child.has_value() && child->has_value());
    const Result<ExitStatus> status =
        (*child)->WaitUntil(MonotonicClock().Now() + milliseconds(ends ? 3000 : 50));
    EXPECT_EQ(status.has_value(), ends);
    if (ends) EXPECT_EQ(status->signal, SIGTERM);
    std::ignore = (*child)->KillGroup();
  }
}

// --- families ---

class FamilyTest : public testing::Test {
 protected:
  FamilyTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "family-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    file_ = directory_ / "pid";
  }
  ~FamilyTest() override { std::filesystem::remove_all(directory_); }
  // A daemon: another session, another parent; the shell ends once it is there.
  std::string Daemon(const std::string& before = "") const {
    return before + " setsid -f sh -c 'echo $$ > " + file_.string() +
           "; exec sleep 60'; while [ ! -s " + file_.string() + " ]; do sleep 0.01; done";
  }

  std::filesystem::path directory_;
  std::filesystem::path file_;
};

TEST_F(FamilyTest, ADaemonThatACommandLeftIsGoneAfterRun) {
  EXPECT_TRUE(RunOk(Shell(Daemon())).ok());
  const pid_t daemon = PidIn(file_);
  ASSERT_GT(daemon, 0);
  const std::optional<ProcessFacts> facts = ReadProcess(daemon);
  EXPECT_TRUE(!facts || facts->state == 'Z') << facts->name;
}

TEST_F(FamilyTest, WhatClearsItsEnvironmentIsFoundAmongOurOrphans) {
  ASSERT_TRUE(AdoptOrphans());
  EXPECT_TRUE(RunOk(Shell(Daemon("env -i"))).ok());
  const pid_t daemon = PidIn(file_);
  ASSERT_GT(daemon, 0);
  const Family below{.mark = "", .session = std::nullopt, .above = getpid()};
  const std::vector<ProcessFacts> members = MembersOf(below);
  EXPECT_TRUE(std::any_of(members.begin(), members.end(),
                          [&](const ProcessFacts& one) { return one.pid == daemon; }));
  EXPECT_TRUE(EndFamily(below, std::chrono::seconds(5)).empty());
  EXPECT_EQ(waitpid(daemon, nullptr, 0), daemon) << "dead, and ours";
}

// As long names are that the kernel has cut in the middle of a character.
TEST_F(FamilyTest, TheNameOfAProcessIsUtf8) {
  char before[16];
  ASSERT_EQ(prctl(PR_GET_NAME, before), 0);
  ASSERT_EQ(prctl(PR_SET_NAME, "caf\xc3\xa9 caf\xc3"), 0);
  EXPECT_EQ(ReadProcess(getpid())->name, "caf\xc3\xa9 caf?");
  prctl(PR_SET_NAME, before);
}

TEST_F(FamilyTest, TheMarkIsComparedWhole) {
  Command command = Shell(Daemon());
  command.environment["LABRACK_TEST"] = "/a/b";
  Result<Child> child = Child::Spawn(command, {});
  ASSERT_TRUE(child);
  const pid_t daemon = PidIn(file_);
  const auto family = [](const std::string& mark) {
    return Family{.mark = mark, .session = std::nullopt, .above = std::nullopt};
  };
  for (const char* other : {"LABRACK_TEST=/a", "ABRACK_TEST=/a/b", "LABRACK_TEST=/a/b/c"}) {
    EXPECT_TRUE(MembersOf(family(other)).empty()) << other;
  }
  EXPECT_FALSE(MembersOf(family("LABRACK_TEST=/a/b")).empty());
  EXPECT_TRUE(EndFamily(family("LABRACK_TEST=/a/b"), std::chrono::seconds(5)).empty());
  EXPECT_FALSE(Exists(daemon) && ReadProcess(daemon) && ReadProcess(daemon)->state != 'Z');
  std::ignore = child->WaitUntil(MonotonicClock().Now() + std::chrono::seconds(5));
}

TEST_F(FamilyTest, ACgroupHoldsWhatEscapesEverythingElse) {
  const std::string name = "labrack-test-" + std::to_string(getpid());
  Result<Cgroup> group = Cgroup::Make(name);
  if (!group) GTEST_SKIP() << group.error().ToString();
  const Result<Descriptor> processes = group->OpenProcesses();
  ASSERT_TRUE(processes);
  SpawnOptions options;
  options.cgroup_fd = processes->get();
  Result<Child> child = Child::Spawn(Shell(Daemon("env -i")), options);
  ASSERT_TRUE(child);
  const pid_t daemon = PidIn(file_);
  ASSERT_TRUE(child->WaitUntil(MonotonicClock().Now() + std::chrono::seconds(5)));
  EXPECT_TRUE(group->populated());
  EXPECT_FALSE(group->Remove());
  EXPECT_FALSE(Cgroup::Find(group->path(), "other"));
  const std::optional<Cgroup> found = Cgroup::Find(group->path(), name);
  ASSERT_TRUE(found);
  found->Kill();
  for (int i = 0; i < 500 && found->populated(); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_FALSE(found->populated());
  const std::optional<ProcessFacts> facts = ReadProcess(daemon);
  EXPECT_TRUE(!facts || facts->state == 'Z');
  EXPECT_TRUE(found->Remove());
}

TEST(CappedBufferTest, KeepsHeadAndTailInOrder) {
  for (std::size_t portion : {1u, 3u, 7u, 100u}) {
    CappedBuffer buffer(10_B, 5_B);
    std::string text;
    for (int i = 0; i < 50; ++i) text += static_cast<char>('0' + i);
    for (std::size_t at = 0; at < text.size(); at += portion) {
      buffer.Append(std::string_view(text).substr(at, portion));
    }
    EXPECT_EQ(buffer.dropped_bytes(), 35u);
    EXPECT_EQ(buffer.Text(), text.substr(0, 10) + "\n[35 bytes left out]\n" + text.substr(45));
  }
  CappedBuffer none(4_B, 0_B);
  none.Append("abcdef");
  EXPECT_EQ(none.dropped_bytes(), 2u);
}

TEST(FindProgramTest, LooksInTheUsualPlaces) {
  EXPECT_TRUE(FindProgram("sh")->is_absolute());
  EXPECT_EQ(FindProgram("/bin/sh")->string(), "/bin/sh");
  EXPECT_EQ(FindProgram("/etc/passwd").error().code(), Errc::kNotFound);
  EXPECT_EQ(FindProgram("").error().code(), Errc::kInvalidArgument);
}

}  // namespace
}  // namespace labrack::exec
