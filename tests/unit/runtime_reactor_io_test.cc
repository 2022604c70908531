// Goal: both reactors for real files do what they are told, at once for many operations, and say
// the kernel's errors; mail from other threads arrives.
// Method: the same tests on io_uring and on threads, over a file in a directory of the test's own.
#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "storage/base/aligned_buffer.h"
#include "storage/base/descriptor.h"
#include "storage/base/random.h"
#include "storage/runtime/open_reactor.h"
#include "storage/runtime/sync.h"
#include "storage/runtime/task_group.h"

namespace labrack::runtime {
namespace {

constexpr std::size_t kBlock = 4096;

class ReactorIo : public testing::TestWithParam<ReactorKind> {
 protected:
  void SetUp() override {
    Result<OpenedReactor> opened = OpenReactor(GetParam());
    if (!opened && opened.error().code() == Errc::kUnsupported) {
      GTEST_SKIP() << opened.error().ToString();
    }
    ASSERT_TRUE(opened) << opened.error().ToString();
    reactor_ = std::move(opened->reactor);
    std::string name = (std::filesystem::temp_directory_path() / "labrack-reactor-XXXXXX").string();
    file_ = Descriptor(mkstemp(name.data()));
    ASSERT_TRUE(file_.valid());
    unlink(name.c_str());
  }

  std::unique_ptr<Reactor> reactor_;
  Descriptor file_;
};

FileOp MakeOp(FileOp::Kind kind, int fd, std::uint64_t at, MutableView memory) {
  FileOp operation;
  operation.kind = kind;
  operation.fd = fd;
  operation.at = Offset(at);
  operation.memory = memory.data();
  operation.length = memory.size();
  return operation;
}

void FillBlock(MutableView block, std::uint64_t number) {
  Random random(Seed{number});
  for (std::byte& byte : block) byte = static_cast<std::byte>(random.Next());
}

Task<void> WriteBlock(Reactor& reactor, int fd, std::uint64_t number) {
  AlignedBuffer block(Bytes{kBlock});
  FillBlock(block.view(), number);
  FileOp write = MakeOp(FileOp::Kind::kWrite, fd, number * kBlock, block.view());
  write.durable = number % 16 == 0;
  std::int64_t moved = co_await reactor.Transfer(write);
  EXPECT_EQ(moved, static_cast<std::int64_t>(kBlock));
}

Task<void> CheckBlock(Reactor& reactor, int fd, std::uint64_t number) {
  AlignedBuffer block(Bytes{kBlock});
  AlignedBuffer expected(Bytes{kBlock});
  FillBlock(expected.view(), number);
  FileOp read = MakeOp(FileOp::Kind::kRead, fd, number * kBlock, block.view());
  std::int64_t moved = co_await reactor.Transfer(read);
  EXPECT_EQ(moved, static_cast<std::int64_t>(kBlock));
  EXPECT_TRUE(std::ranges::equal(block.view(), expected.view())) << number;
}

// More at once than an io_uring has entries.
Task<void> WriteAndCheck(Reactor& reactor, int fd) {
  constexpr std::uint64_t kBlocks = 1500;
  TaskGroup group(reactor);
  for (std::uint64_t i = 0; i < kBlocks; ++i) group.Spawn(WriteBlock(reactor, fd, i));
  co_await group.Join();
  FileOp sync = MakeOp(FileOp::Kind::kSync, fd, 0, {});
  std::int64_t synced = co_await reactor.Transfer(sync);
  EXPECT_EQ(synced, 0);
  for (std::uint64_t i = 0; i < kBlocks; ++i) group.Spawn(CheckBlock(reactor, fd, i));
  co_await group.Join();
}

TEST_P(ReactorIo, ManyOperationsAtOnceMoveTheirBytes) {
  reactor_->Run(WriteAndCheck(*reactor_, file_.get()));
}

Task<std::int64_t> ReadFrom(Reactor& reactor, int fd, std::uint64_t at) {
  AlignedBuffer block(Bytes{kBlock});
  FileOp read = MakeOp(FileOp::Kind::kRead, fd, at, block.view());
  std::int64_t moved = co_await reactor.Transfer(read);
  co_return moved;
}

TEST_P(ReactorIo, ErrorsAndTheEndOfTheFileAreSaid) {
  EXPECT_EQ(reactor_->Run(ReadFrom(*reactor_, -1, 0)), -EBADF);
  EXPECT_EQ(reactor_->Run(ReadFrom(*reactor_, file_.get(), 0)), 0);
  const Descriptor directory(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(reactor_->Run(ReadFrom(*reactor_, directory.get(), 0)), -EISDIR);
}

Task<void> Sleep(Reactor& reactor, Nanoseconds time) {
  const TimePoint until = reactor.Now() + time;
  Result<void> slept = co_await reactor.SleepUntil(until, nullptr);
  EXPECT_TRUE(slept);
}

TEST_P(ReactorIo, TimersWaitAsLongAsAsked) {
  const TimePoint begin = reactor_->Now();
  reactor_->Run(Sleep(*reactor_, std::chrono::milliseconds(20)));
  EXPECT_GE(reactor_->Now() - begin, std::chrono::milliseconds(20));
}

Task<void> WaitFor(Event& event) { co_await event.Wait(); }

TEST_P(ReactorIo, MailFromOtherThreadsArrivesInOrder) {
  Event all_here(*reactor_);
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 10'000; ++i) {
      reactor_->Post([&seen, &all_here, i] {
        seen.push_back(i);
        if (i == 9'999) all_here.Set();
      });
    }
  });
  reactor_->Run(WaitFor(all_here));
  poster.join();
  ASSERT_EQ(seen.size(), 10'000U);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

Task<Errc> SleepLong(Reactor& reactor, const CancelToken& cancel) {
  const TimePoint until = reactor.Now() + std::chrono::hours(1);
  Result<void> slept = co_await reactor.SleepUntil(until, &cancel);
  co_return slept ? Errc::kInternal : slept.error().code();
}

TEST_P(ReactorIo, ACancelFromAnotherThreadEndsASleep) {
  CancelToken cancel;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    cancel.Cancel();
    reactor_->Post([] {});  // a reactor that waits looks up when there is mail
  });
  EXPECT_EQ(reactor_->Run(SleepLong(*reactor_, cancel)), Errc::kCancelled);
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReactorIo,
                         testing::Values(ReactorKind::kUring, ReactorKind::kThreads),
                         [](const auto& info) {
                           return info.param == ReactorKind::kUring ? "Uring" : "Threads";
                         });

}  // namespace
}  // namespace labrack::runtime
