// Reactor: one thread, the coroutines that run on it, their time and their I/O. Three of them:
//
//   UringReactor   real time, io_uring              (uring_reactor.h)
//   ThreadReactor  real time, blocking system calls (thread_reactor.h), where io_uring is forbidden
//   SimReactor     virtual time, no I/O             (sim_reactor.h)
//
//   ready list --resume--> a coroutine --co_await--> Wait(waiter)
//        ^                                               |
//        +---- Wake: a timer, an I/O, a primitive -------+
//
// All but Post() is for the reactor's own thread. Nothing is ever resumed from within a Wake: what
// is woken goes to the end of the ready list, so stack depth is call depth and order replays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/runtime/env.h"
#include "storage/runtime/task.h"
#include "storage/runtime/waiter.h"

namespace labrack::runtime {

// One transfer between memory and a file, or a sync of it. Lives in the frame that awaits it.
struct FileOp {
  enum class Kind : std::uint8_t { kRead, kWrite, kSync };

  Kind kind = Kind::kSync;
  bool durable = false;  // kWrite: on the medium before it completes (FUA; RWF_DSYNC)
  int fd = -1;
  Offset at;
  std::byte* memory = nullptr;
  std::size_t length = 0;

  std::int64_t result = 0;  // bytes moved, or -errno
  Waiter waiter = {};
  FileOp* next = nullptr;  // of the reactor, while it waits for its turn
};

// First in, first out.
class FileOpQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  void Push(FileOp& operation) {
    operation.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &operation;
    last_ = &operation;
  }
  FileOp* Pop() {  // nullptr when there is none
    FileOp* operation = first_;
    if (operation != nullptr) first_ = operation->next;
    return operation;
  }

 private:
  FileOp* first_ = nullptr;
  FileOp* last_ = nullptr;
};

// Whoever waits in a list of its own, and must leave it when a token is set. Lives in the frame
// that waits; a timer that sleeps with a token needs none.
struct CancelWatch {
  const CancelToken* token = nullptr;
  // On the reactor's thread, between two resumptions; the watch has ended before.
  void (*cancelled)(CancelWatch& watch) = nullptr;

  // Of the reactor's list.
  CancelWatch* before = nullptr;
  CancelWatch* after = nullptr;
};

class Reactor : public Env {
 public:
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor() override;

  // Runs `root`, and what it starts, until it has ended. When nothing can run and nothing can
  // happen any more, that is a fault of the program: it is told with all waiters, and ends.
  template <typename T>
  T Run(Task<T> root) {
    Drive(root.handle());
    return root.handle().promise().Take();
  }

  // Wait: the waiter's coroutine is suspended, and somebody will Wake it, once. Wake: it runs
  // again, after all that is ready now.
  void Wait(Waiter& waiter);
  void Wake(Waiter& waiter);

  Task<Result<void>> SleepUntil(TimePoint until, const CancelToken* cancel) override;
  // Rung by a task of this reactor.
  Task<void> WaitFor(Bell* bell) override;

  // From now on until Unwatch, or until the token is set. One that has been set before is for the
  // caller to see.
  void Watch(CancelWatch& watch);
  void Unwatch(CancelWatch& watch);

  // From any thread: `task` is called on the reactor's thread, between two resumptions. It keeps
  // the reactor alive as long as Run lasts only. Blocks while kMailMax tasks wait.
  virtual void Post(std::function<void()> task) = 0;

  // Starts the operation; its waiter is woken when it is done (FileTransfer awaits it). The
  // reactor of simulations has no files.
  virtual void Submit(FileOp& operation) = 0;

  // `co_await reactor.Transfer(operation)`: submits it, and goes on with its result.
  class FileTransfer {
   public:
    FileTransfer(Reactor& reactor, FileOp& operation, std::source_location where)
        : reactor_(reactor), operation_(operation) {
      operation_.waiter.what = WaitsFor(operation.kind);
      operation_.waiter.where = where;
    }
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      operation_.waiter.handle = handle;
      reactor_.Wait(operation_.waiter);
      reactor_.Submit(operation_);
    }
    std::int64_t await_resume() const { return operation_.result; }

   private:
    Reactor& reactor_;
    FileOp& operation_;
  };
  FileTransfer Transfer(FileOp& operation,
                        std::source_location where = std::source_location::current()) {
    return {*this, operation, where};
  }

  // Part of a trace that replays show to be the same. Does nothing in real time.
  virtual void Record(std::uint64_t what, std::uint64_t value) {
    (void)what;
    (void)value;
  }

  // "a mutex at storage/volume/raid5.cc:120", for each that waits; bounded.
  std::string DescribeWaiters() const;
  std::size_t waiter_count() const { return waiter_count_; }

  static constexpr std::size_t kMailMax = 4096;

 protected:
  Reactor() = default;

  static constexpr const char* WaitsFor(FileOp::Kind kind) {
    return kind == FileOp::Kind::kRead    ? "a read"
           : kind == FileOp::Kind::kWrite ? "a write"
                                          : "a sync";
  }

  // What is ready, in the order in which it will run.
  virtual void PushReady(Waiter& waiter) { ready_.Push(waiter); }
  virtual Waiter* PopReady() { return ready_.Pop(); }
  // Takes in completions and mail. With `wait`, blocks until there is one, or until `until`; false
  // when nothing could ever come.
  virtual bool Poll(bool wait, std::optional<TimePoint> until) = 0;

 private:
  struct Timer {
    TimePoint at{};
    std::uint64_t order = 0;  // of equal instants, the first to be set is the first to go off
    const CancelToken* cancel = nullptr;
    std::size_t place = 0;  // in the heap
    Waiter waiter = {};
  };
  class Sleep;
  struct BellWait;

  void Drive(std::coroutine_handle<> root);
  void AddTimer(Timer& timer);
  void RemoveTimer(Timer& timer);
  void PlaceTimer(std::size_t place, Timer& timer);
  void SiftUp(std::size_t place);
  void SiftDown(std::size_t place);
  void FireTimers();
  bool FireCancelled();
  bool FireWatches();
  bool FireBells();
  [[noreturn]] void Deadlock() const;

  WaiterQueue ready_;
  Waiter* waiting_ = nullptr;
  CancelWatch* watch_first_ = nullptr;
  CancelWatch* watch_last_ = nullptr;
  BellWait* bell_waits_ = nullptr;
  std::size_t waiter_count_ = 0;
  std::vector<Timer*> timers_;  // a binary heap by (at, order)
  std::uint64_t next_order_ = 0;
  std::uint64_t cancels_seen_ = 0;
};

}  // namespace labrack::runtime
