// Goal: HostFileSystem does what FileSystem promises on a directory of the host, and reaches
// nothing outside of it. Method: a temporary directory, every operation, and paths that try to get
// out.
#include "storage/fs/host_file_system.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/fs/file_device.h"

namespace labrack::fs {
namespace {

using runtime::RunToCompletion;
using ::testing::ElementsAre;

class HostFileSystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "labrack-fs-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    outside_ = name;
    root_ = outside_ / "root";
    std::filesystem::create_directory(root_);
    file_system_ = HostFileSystem::Open(root_).value();
  }
  void TearDown() override { std::filesystem::remove_all(outside_); }

  std::unique_ptr<File> Create(const std::string& path) {
    return RunToCompletion(file_system_->Open(path, {.access = Access::kReadWrite, .create = true}))
        .value();
  }
  Errc OpenError(const std::string& path, OpenOptions options = {}) {
    const Result<std::unique_ptr<File>> opened = RunToCompletion(file_system_->Open(path, options));
    return opened ? Errc::kInternal : opened.error().code();
  }

  std::filesystem::path outside_;
  std::filesystem::path root_;
  std::unique_ptr<HostFileSystem> file_system_;
};

std::vector<std::byte> Pattern(std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 251);
  return data;
}

TEST_F(HostFileSystemTest, ReadsBackWhatWasWritten) {
  const std::unique_ptr<File> file = Create("a");
  const std::vector<std::byte> data = Pattern(10'000);
  ASSERT_TRUE(RunToCompletion(file->Write({}, Offset(500), data)));
  ASSERT_TRUE(RunToCompletion(file->Sync({}, SyncKind::kFull)));
  std::vector<std::byte> back(20'000);
  EXPECT_EQ(RunToCompletion(file->Read({}, Offset(500), back)).value(), Bytes(10'000));
  back.resize(10'000);
  EXPECT_EQ(back, data);
  EXPECT_EQ(RunToCompletion(file->Read({}, Offset(10'500), back)).value(), Bytes(0));
  EXPECT_EQ(RunToCompletion(file->Status()).value().size, Bytes(10'500));
  EXPECT_EQ(RunToCompletion(file_system_->Status("a")).value().size, Bytes(10'500));
  EXPECT_TRUE(RunToCompletion(file->Close()));
}

TEST_F(HostFileSystemTest, ReadFullFailsAtTheEndOfTheFile) {
  const std::unique_ptr<File> file = Create("a");
  ASSERT_TRUE(RunToCompletion(file->Write({}, Offset(0), Pattern(100))));
  std::vector<std::byte> back(101);
  const Result<void> read = RunToCompletion(file->ReadFull({}, Offset(0), back));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Errc::kIo);
  EXPECT_THAT(read.error().ToString(), ::testing::HasSubstr("byte 100"));
}

TEST_F(HostFileSystemTest, NothingOutsideIsReached) {
  std::ofstream(outside_ / "secret") << "x";
  std::filesystem::create_symlink(outside_ / "secret", root_ / "absolute_link");
  std::filesystem::create_symlink("../secret", root_ / "relative_link");
  std::filesystem::create_directory_symlink("..", root_ / "up");

  EXPECT_EQ(OpenError("../secret"), Errc::kInvalidArgument);
  EXPECT_EQ(OpenError("b/../../secret"), Errc::kInvalidArgument);
  EXPECT_EQ(OpenError("b/.."), Errc::kInvalidArgument);
  EXPECT_EQ(OpenError("/etc/passwd"), Errc::kInvalidArgument);
  for (const char* path : {"absolute_link", "relative_link", "up/secret", "up/new"}) {
    const Result<std::unique_ptr<File>> opened =
        RunToCompletion(file_system_->Open(path, {.access = Access::kReadWrite, .create = true}));
    EXPECT_FALSE(opened) << path;
  }
  EXPECT_FALSE(RunToCompletion(file_system_->MakeDirectory("up/d")));
  EXPECT_FALSE(RunToCompletion(file_system_->Rename("up/secret", "mine")));
  EXPECT_FALSE(RunToCompletion(file_system_->List("up")));
  EXPECT_FALSE(RunToCompletion(file_system_->Remove("../secret")));
  EXPECT_TRUE(std::filesystem::exists(outside_ / "secret"));
  EXPECT_FALSE(std::filesystem::exists(outside_ / "new"));
}

TEST_F(HostFileSystemTest, NamesAreMadeListedMovedAndRemoved) {
  ASSERT_TRUE(RunToCompletion(file_system_->MakeDirectory("d")));
  const Result<void> again = RunToCompletion(file_system_->MakeDirectory("d"));
  EXPECT_EQ(again.error().code(), Errc::kAlreadyExists);
  Create("d/z");
  Create("d/a..b");
  EXPECT_THAT(RunToCompletion(file_system_->List("d")).value(), ElementsAre("a..b", "z"));
  ASSERT_TRUE(RunToCompletion(file_system_->Rename("d/z", "y")));
  EXPECT_THAT(RunToCompletion(file_system_->List("")).value(), ElementsAre("d", "y"));
  EXPECT_TRUE(RunToCompletion(file_system_->Status("d")).value().is_directory);
  EXPECT_FALSE(RunToCompletion(file_system_->Remove("d")));  // not empty
  ASSERT_TRUE(RunToCompletion(file_system_->Remove("d/a..b")));
  ASSERT_TRUE(RunToCompletion(file_system_->Remove("d")));
  EXPECT_EQ(RunToCompletion(file_system_->Status("d")).error().code(), Errc::kNotFound);
  EXPECT_GT(RunToCompletion(file_system_->Space()).value().total, Bytes(0));
  EXPECT_TRUE(RunToCompletion(file_system_->SyncAll()));
}

TEST_F(HostFileSystemTest, OpenKeepsItsPromises) {
  EXPECT_EQ(OpenError("missing"), Errc::kNotFound);
  Create("a");
  EXPECT_EQ(OpenError("a", {.access = Access::kWrite, .create = true, .exclusive = true}),
            Errc::kAlreadyExists);
  const std::unique_ptr<File> file = Create("a");
  ASSERT_TRUE(RunToCompletion(file->Write({}, Offset(0), Pattern(10))));
  ASSERT_TRUE(
      RunToCompletion(file_system_->Open("a", {.access = Access::kWrite, .truncate = true})));
  EXPECT_EQ(RunToCompletion(file->Status()).value().size, Bytes(0));
  ASSERT_TRUE(RunToCompletion(file->Truncate(Bytes(1 << 20))));
  EXPECT_EQ(RunToCompletion(file->Status()).value().size, Bytes(1 << 20));
  EXPECT_EQ(RunToCompletion(file->Status()).value().allocated, Bytes(0));
}

TEST_F(HostFileSystemTest, CopiesRangesAndMaps) {
  const std::unique_ptr<File> from = Create("from");
  const std::unique_ptr<File> to = Create("to");
  const std::vector<std::byte> data = Pattern(100'000);
  ASSERT_TRUE(RunToCompletion(from->Write({}, Offset(0), data)));
  const Result<Bytes> copied = RunToCompletion(
      file_system_->CopyRange(*from, Offset(1000), *to, Offset(0), Bytes(1'000'000)));
  ASSERT_TRUE(copied) << copied.error().ToString();
  EXPECT_EQ(*copied, Bytes(99'000));
  const std::unique_ptr<FileSystem::Mapping> mapping =
      RunToCompletion(file_system_->Map(*to)).value();
  ASSERT_EQ(mapping->view().size(), 99'000U);
  EXPECT_TRUE(std::equal(mapping->view().begin(), mapping->view().end(), data.begin() + 1000));
}

TEST_F(HostFileSystemTest, FileDeviceIsABlockDevice) {
  std::unique_ptr<File> file = Create("disk");
  ASSERT_TRUE(RunToCompletion(file->Truncate(Bytes(64 << 10))));
  FileDevice device(std::move(file), {.size = Bytes(64 << 10), .block_size = Bytes(512)});
  const std::vector<std::byte> data = Pattern(4096);
  ASSERT_TRUE(RunToCompletion(device.Write({}, Offset(60 << 10), data)));
  ASSERT_TRUE(RunToCompletion(device.Flush({})));
  std::vector<std::byte> back(4096);
  ASSERT_TRUE(RunToCompletion(device.Read({}, Offset(60 << 10), back)));
  EXPECT_EQ(back, data);
  EXPECT_DEATH(std::ignore = device.Read({}, Offset(61 << 10), back), "Covers");
}

TEST_F(HostFileSystemTest, ARootThatIsNoDirectoryIsRefused) {
  EXPECT_EQ(HostFileSystem::Open(outside_ / "none").error().code(), Errc::kNotFound);
}

}  // namespace
}  // namespace labrack::fs
