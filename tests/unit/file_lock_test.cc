// Goal: a lock keeps others out, goes with its holder however that ends, and is looked at without
// being taken. Method: two descriptors of one file, and a process that is killed.
#include "storage/base/file_lock.h"

#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace labrack {
namespace {

class FileLockTest : public testing::Test {
 protected:
  FileLockTest() {
    std::string name = (std::filesystem::temp_directory_path() / "labrack-lock-XXXXXX").string();
    path_ = std::filesystem::path(mkdtemp(name.data())) / "lock";
  }
  ~FileLockTest() override { std::filesystem::remove_all(path_.parent_path()); }
  Descriptor Open(int flags) const {
    return Descriptor(open(path_.c_str(), flags | O_CREAT | O_CLOEXEC, 0644));
  }

  std::filesystem::path path_;
};

TEST_F(FileLockTest, OneHasItAndWhoeverLooksSeesIt) {
  Descriptor first = Open(O_RDWR);
  const Descriptor second = Open(O_RDWR);
  const Descriptor looker = Open(O_RDONLY);
  EXPECT_FALSE(IsFileLocked(looker, "lock").value());
  EXPECT_TRUE(TryLockFile(first, "lock").value());
  EXPECT_FALSE(IsFileLocked(first, "lock").value()) << "it is nobody else's";
  EXPECT_TRUE(IsFileLocked(looker, "lock").value());
  EXPECT_FALSE(TryLockFile(second, "lock").value());
  first.Close();
  EXPECT_FALSE(IsFileLocked(looker, "lock").value());
  EXPECT_TRUE(TryLockFile(second, "lock").value()) << "looking has not taken it";
}

TEST_F(FileLockTest, AKilledHolderHasItNoMore) {
  const Descriptor looker = Open(O_RDONLY);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Descriptor own = Open(O_RDWR);
    const bool locked = TryLockFile(own, "lock").value_or(false);
    if (write(ready[1], locked ? "y" : "n", 1) == 1) pause();
    _exit(1);
  }
  char answer = '?';
  EXPECT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_TRUE(IsFileLocked(looker, "lock").value());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(IsFileLocked(looker, "lock").value());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(FileLockTest, WhatIsNoOpenFileIsAnErrorWithItsName) {
  EXPECT_EQ(TryLockFile(Descriptor(), "lab.lock").error().subject(), "lab.lock");
  EXPECT_FALSE(IsFileLocked(Descriptor(), "lab.lock"));
}

}  // namespace
}  // namespace labrack
