// Goal: a file and a piece of memory keep the contract of a disk: every byte where it was written,
// a clear error otherwise, and no success after a flush has failed.
// Method: seeded writes and reads of any memory alignment against a byte model, on both reactors;
// files that cannot be disks; a reactor between that makes transfers short or fails them.
#include "storage/block/disk/file_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "storage/base/aligned_buffer.h"
#include "storage/base/random.h"
#include "storage/block/disk/ram_disk.h"
#include "storage/runtime/open_reactor.h"
#include "tests/unit/allocations.h"

namespace labrack::block {
namespace {

using runtime::FileOp;
using runtime::OpenReactor;
using runtime::Reactor;
using runtime::ReactorKind;

class TemporaryFile {
 public:
  explicit TemporaryFile(std::uint64_t size) {
    std::string name = (std::filesystem::temp_directory_path() / "labrack-disk-XXXXXX").string();
    const int file = mkstemp(name.data());
    EXPECT_GE(file, 0);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(size)), 0);
    close(file);
    path_ = name;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Task<void> CompareWithModel(BlockDevice* disk, Seed seed, int steps) {
  Random random(seed);
  const Geometry geometry = disk->geometry();
  const std::uint64_t blocks = geometry.size / geometry.block_size;
  const std::size_t block = geometry.block_size.size();
  std::vector<std::byte> model(geometry.size.size());
  AlignedBuffer memory(16 * geometry.block_size + Bytes(block));
  for (int i = 0; i < steps; ++i) {
    const std::uint64_t first = random.Below(blocks);
    const std::size_t length =
        (1 + random.Below(std::min<std::uint64_t>(16, blocks - first))) * block;
    const std::size_t begin = random.Chance(0.5) ? 0 : random.Below(block);  // any alignment
    const MutableView view = memory.view().subspan(begin, length);
    const std::size_t at = first * block;
    IoContext io;
    if (random.Chance(0.5)) {
      for (std::byte& byte : view) byte = static_cast<std::byte>(random.Next());
      std::ranges::copy(view, model.begin() + static_cast<std::ptrdiff_t>(at));
      io.durable = random.Chance(0.1);
      Result<void> written = co_await disk->Write(io, Offset(at), view);
      EXPECT_TRUE(written) << written.error().ToString();
    } else {
      Result<void> read = co_await disk->Read(io, Offset(at), view);
      EXPECT_TRUE(read) << read.error().ToString();
      EXPECT_TRUE(std::ranges::equal(view, MutableView(model).subspan(at, length))) << i;
    }
  }
  Result<void> flushed = co_await disk->Flush({});
  EXPECT_TRUE(flushed) << flushed.error().ToString();
}

class FileDiskOn : public testing::TestWithParam<ReactorKind> {
 protected:
  void SetUp() override {
    Result<runtime::OpenedReactor> opened = OpenReactor(GetParam());
    if (!opened && opened.error().code() == Errc::kUnsupported)
      GTEST_SKIP() << opened.error().ToString();
    ASSERT_TRUE(opened) << opened.error().ToString();
    reactor_ = std::move(opened->reactor);
  }
  std::unique_ptr<Reactor> reactor_;
};

TEST_P(FileDiskOn, HoldsWhatWasWritten) {
  for (const bool direct : {true, false}) {
    const TemporaryFile file(1 << 20);
    auto disk = FileDisk::Open(*reactor_, file.path(), {.direct = direct});
    ASSERT_TRUE(disk) << disk.error().ToString();
    EXPECT_EQ((*disk)->geometry().size, 1_MiB);
    if (!direct) EXPECT_FALSE((*disk)->direct());
    EXPECT_EQ((*disk)->note().empty(), !direct || (*disk)->direct());
    reactor_->Run(CompareWithModel(disk->get(), Seed{direct}, 300));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FileDiskOn,
                         testing::Values(ReactorKind::kUring, ReactorKind::kThreads),
                         [](const auto& info) {
                           return info.param == ReactorKind::kUring ? "Uring" : "Threads";
                         });

TEST(RamDisk, HoldsWhatWasWritten) {
  auto disk = RamDisk::Create({.size = 1_MiB, .block_size = Bytes(512)});
  ASSERT_TRUE(disk);
  runtime::RunToCompletion(CompareWithModel(disk->get(), Seed{7}, 1000));
  EXPECT_EQ(RamDisk::Create({.size = 1000_B, .block_size = 512_B}).error().code(),
            Errc::kInvalidArgument);
  EXPECT_EQ(RamDisk::Create({.size = 0_B, .block_size = 512_B}).error().code(),
            Errc::kInvalidArgument);
}

// A reactor that does at once what a script says, instead of the kernel.
class ScriptedReactor final : public Reactor {
 public:
  TimePoint Now() const override { return {}; }
  void Post(std::function<void()>) override {}
  void Submit(FileOp& operation) override {
    operations.push_back(operation);
    operation.result = static_cast<std::int64_t>(operation.length);
    if (next < results.size()) operation.result = results[next++];
    Wake(operation.waiter);
  }

  std::vector<std::int64_t> results;  // then all that is asked for
  std::size_t next = 0;
  std::vector<FileOp> operations;

 protected:
  bool Poll(bool, std::optional<TimePoint>) override { return false; }
};

Errc CodeOf(const Result<void>& result) {
  EXPECT_FALSE(result);
  return result ? Errc::kInternal : result.error().code();
}

class ScriptedFileDisk : public testing::Test {
 protected:
  void SetUp() override {
    auto disk = FileDisk::Open(reactor_, file_.path(), {.direct = false});
    ASSERT_TRUE(disk) << disk.error().ToString();
    disk_ = std::move(*disk);
  }
  Result<void> Read(Bytes length) {
    return reactor_.Run(disk_->Read({}, Offset(4096), memory_.first(length)));
  }
  Result<void> Write(Bytes length, bool durable) {
    return reactor_.Run(disk_->Write({.durable = durable}, Offset(4096), memory_.first(length)));
  }
  Result<void> Flush() { return reactor_.Run(disk_->Flush({})); }

  ScriptedReactor reactor_;
  TemporaryFile file_{1 << 20};
  std::unique_ptr<FileDisk> disk_;
  AlignedBuffer memory_{64_KiB};
};

TEST_F(ScriptedFileDisk, GoesOnWithTheRestOfAShortTransfer) {
  reactor_.results = {512, -EINTR, 1024};
  EXPECT_TRUE(Read(4_KiB));
  ASSERT_EQ(reactor_.operations.size(), 4U);
  EXPECT_EQ(reactor_.operations[3].at, Offset(4096 + 1536));
  EXPECT_EQ(reactor_.operations[3].length, 2560U);
  EXPECT_EQ(reactor_.operations[3].memory, memory_.view().data() + 1536);
}

TEST_F(ScriptedFileDisk, AllocatesNothing) {
  reactor_.operations.reserve(1000);
  EXPECT_TRUE(Read(4_KiB));  // frames are kept from here on
  EXPECT_TRUE(Write(4_KiB, true));
  EXPECT_TRUE(Flush());
  const std::size_t before = AllocationCount();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(Read(4_KiB));
    EXPECT_TRUE(Write(4_KiB, true));
    EXPECT_TRUE(Flush());
  }
  EXPECT_EQ(AllocationCount(), before);
}

TEST_F(ScriptedFileDisk, SaysWhatFailedAndWhere) {
  reactor_.results = {512, 0};
  EXPECT_EQ(CodeOf(Read(4_KiB)), Errc::kIo) << "the end of the file is no success";
  reactor_.results = {512, 0, 2048, -ENOSPC, -EIO};
  const Result<void> full = Write(4_KiB, false);
  EXPECT_EQ(CodeOf(full), Errc::kNoSpace);
  EXPECT_NE(full.error().ToString().find("byte 6144"), std::string::npos);
  EXPECT_EQ(CodeOf(Read(4_KiB)), Errc::kIo);
}

TEST_F(ScriptedFileDisk, NeverFlushesWithSuccessAfterAFlushHasFailed) {
  reactor_.results = {-EIO};
  EXPECT_EQ(CodeOf(Flush()), Errc::kIo);
  EXPECT_EQ(CodeOf(Flush()), Errc::kIo);
  EXPECT_EQ(CodeOf(Write(4_KiB, true)), Errc::kIo);
  EXPECT_EQ(reactor_.operations.size(), 1U) << "nothing is tried again";
  EXPECT_TRUE(Write(4_KiB, false));
  EXPECT_TRUE(Read(4_KiB));
}

TEST_F(ScriptedFileDisk, ADurableWriteThatFailsEndsAllLaterFlushes) {
  reactor_.results = {-EIO};
  EXPECT_EQ(CodeOf(Write(4_KiB, true)), Errc::kIo);
  EXPECT_TRUE(reactor_.operations[0].durable);
  EXPECT_EQ(CodeOf(Flush()), Errc::kIo);
}

TEST_F(ScriptedFileDisk, CancelledOperationsAreNotBegun) {
  runtime::CancelToken cancel;
  cancel.Cancel();
  const IoContext io{.cancel = &cancel};
  EXPECT_EQ(CodeOf(reactor_.Run(disk_->Read(io, Offset(0), memory_.first(4_KiB)))),
            Errc::kCancelled);
  EXPECT_EQ(CodeOf(reactor_.Run(disk_->Write(io, Offset(0), memory_.first(4_KiB)))),
            Errc::kCancelled);
  EXPECT_EQ(CodeOf(reactor_.Run(disk_->Flush(io))), Errc::kCancelled);
  EXPECT_TRUE(reactor_.operations.empty());
}

Errc OpenError(const std::filesystem::path& path, FileDiskOptions options = {}) {
  ScriptedReactor reactor;
  auto disk = FileDisk::Open(reactor, path, options);
  EXPECT_FALSE(disk);
  if (disk) return Errc::kInternal;
  EXPECT_NE(disk.error().ToString().find(path.string()), std::string::npos);
  return disk.error().code();
}

TEST(FileDisk, SaysWhyAFileCannotBeADisk) {
  const TemporaryFile empty(0);
  const TemporaryFile odd(10'000);
  const TemporaryFile good(8192);
  EXPECT_EQ(OpenError("/nowhere/at/all"), Errc::kNotFound);
  EXPECT_EQ(OpenError("/dev/null"), Errc::kInvalidArgument);
  EXPECT_EQ(OpenError(std::filesystem::temp_directory_path()), Errc::kInvalidArgument);
  EXPECT_EQ(OpenError(empty.path()), Errc::kInvalidArgument);
  EXPECT_EQ(OpenError(odd.path()), Errc::kInvalidArgument);
  EXPECT_EQ(OpenError(good.path(), {.block_size = 1000_B}), Errc::kInvalidArgument);
  ScriptedReactor reactor;
  auto disk = FileDisk::Open(reactor, good.path());
  ASSERT_TRUE(disk) << disk.error().ToString();
  EXPECT_EQ(OpenError(good.path()), Errc::kBusy);
}

TEST(FileDisk, RefusesBlockDevices) {
  const TemporaryFile node(0);
  std::filesystem::remove(node.path());
  if (mknod(node.path().c_str(), S_IFBLK | 0600, makedev(7, 250)) != 0) {
    GTEST_SKIP() << "this user may not make a device node";
  }
  EXPECT_EQ(OpenError(node.path()), Errc::kRefusedBySafety);
}

}  // namespace
}  // namespace labrack::block
