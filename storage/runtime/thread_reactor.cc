#include "storage/runtime/thread_reactor.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

namespace labrack::runtime {
namespace {

std::int64_t Make(const FileOp& operation) {
  const iovec part{operation.memory, operation.length};
  const auto at = static_cast<off_t>(operation.at.value());
  for (;;) {
    ssize_t moved = 0;
    switch (operation.kind) {
      case FileOp::Kind::kRead:
        moved = preadv2(operation.fd, &part, 1, at, 0);
        break;
      case FileOp::Kind::kWrite:
        moved = pwritev2(operation.fd, &part, 1, at, operation.durable ? RWF_DSYNC : 0);
        break;
      case FileOp::Kind::kSync:
        moved = fdatasync(operation.fd);
        break;
    }
    if (moved >= 0) return moved;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

Result<std::unique_ptr<ThreadReactor>> ThreadReactor::Open(int threads) {
  std::unique_ptr<ThreadReactor> reactor(new ThreadReactor);
  if (Result<void> opened = reactor->mailbox_.Open(); !opened) {
    return std::unexpected(opened.error());
  }
  for (int i = 0; i < threads; ++i)
    reactor->threads_.emplace_back([r = reactor.get()] { r->Work(); });
  return reactor;
}

ThreadReactor::~ThreadReactor() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadReactor::Submit(FileOp& operation) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queued_.Push(operation);
  }
  work_.notify_one();
}

FileOp* ThreadReactor::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  work_.wait(lock, [&] { return stopping_ || !queued_.empty(); });
  return queued_.Pop();
}

void ThreadReactor::Work() {
  while (FileOp* operation = Next()) {
    operation->result = Make(*operation);
    Finish(*operation);
  }
}

// The first of a batch rings; the reactor takes all that are done by then.
void ThreadReactor::Finish(FileOp& operation) {
  bool first = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    first = done_.empty();
    done_.push_back(&operation);
  }
  if (first) mailbox_.Ring();
}

bool ThreadReactor::Poll(bool wait, std::optional<TimePoint> until) {
  if (wait) {
    timespec left{};
    if (until) {
      const Nanoseconds time = std::max(*until - Now(), Nanoseconds(0));
      left.tv_sec = time.count() / 1'000'000'000;
      left.tv_nsec = time.count() % 1'000'000'000;
    }
    pollfd bell{.fd = mailbox_.fd(), .events = POLLIN, .revents = 0};
    ppoll(&bell, 1, until ? &left : nullptr, nullptr);
  }
  mailbox_.TakeAll();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken_.swap(done_);
  }
  for (FileOp* operation : taken_) Wake(operation->waiter);
  taken_.clear();
  return true;  // mail may come at any time
}

}  // namespace labrack::runtime
