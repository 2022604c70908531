// What coroutines of one reactor wait for each other with. None of it knows threads: everything
// here is used on the reactor's own thread, and wakes go through its ready list, first come, first
// served. Each must outlive those who wait for it, and is empty when it is destroyed.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <source_location>
#include <utility>

#include "storage/base/check.h"
#include "storage/runtime/reactor.h"

namespace labrack::runtime {

// Waits in one queue; whoever owns the queue decides when.
class QueueWait {
 public:
  QueueWait(Reactor& reactor, WaiterQueue& queue, bool ready, const char* what,
            std::source_location where)
      : reactor_(reactor), queue_(queue), ready_(ready) {
    waiter_.what = what;
    waiter_.where = where;
  }
  bool await_ready() const { return ready_; }
  void await_suspend(std::coroutine_handle<> handle) {
    waiter_.handle = handle;
    reactor_.Wait(waiter_);
    queue_.Push(waiter_);
  }
  void await_resume() const {}

 private:
  Reactor& reactor_;
  WaiterQueue& queue_;
  bool ready_;
  Waiter waiter_;
};

// Set once, or again after a Reset. `co_await event.Wait()` goes on once it is set.
class Event {
 public:
  explicit Event(Reactor& reactor) : reactor_(reactor) {}
  ~Event() { LABRACK_CHECK(waiters_.empty()); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool is_set() const { return set_; }
  void Set() {
    set_ = true;
    while (Waiter* waiter = waiters_.Pop()) reactor_.Wake(*waiter);
  }
  void Reset() { set_ = false; }
  QueueWait Wait(std::source_location where = std::source_location::current()) {
    return {reactor_, waiters_, set_, "an event", where};
  }

 private:
  Reactor& reactor_;
  WaiterQueue waiters_;
  bool set_ = false;
};

// A count of units; Acquire takes one, in turn. `co_await semaphore.Acquire()`.
class Semaphore {
 public:
  Semaphore(Reactor& reactor, std::size_t units) : reactor_(reactor), free_(units) {}
  ~Semaphore() { LABRACK_CHECK(waiters_.empty()); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  QueueWait Acquire(std::source_location where = std::source_location::current()) {
    const bool free = TryAcquire();
    return {reactor_, waiters_, free, "a semaphore", where};
  }
  bool TryAcquire() {
    if (free_ == 0) return false;
    --free_;
    return true;
  }
  // A unit that somebody waits for is handed over, so nobody can overtake.
  void Release() {
    if (Waiter* waiter = waiters_.Pop()) {
      reactor_.Wake(*waiter);
    } else {
      ++free_;
    }
  }
  std::size_t free_units() const { return free_; }

 private:
  Reactor& reactor_;
  WaiterQueue waiters_;
  std::size_t free_;
};

// `co_await mutex.Lock()`, then a Held that unlocks; held over co_await, that is its purpose.
class Mutex {
 public:
  explicit Mutex(Reactor& reactor) : unit_(reactor, 1) {}

  class [[nodiscard]] Held {
   public:
    explicit Held(Mutex& mutex) : mutex_(&mutex) {}
    Held(Held&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (mutex_ != nullptr) mutex_->unit_.Release();
    }

   private:
    Mutex* mutex_;
  };
  // The lock is held once this has been awaited: `co_await m.Lock(); Mutex::Held held(m);`
  QueueWait Lock(std::source_location where = std::source_location::current()) {
    return unit_.Acquire(where);
  }
  bool locked() const { return unit_.free_units() == 0; }

 private:
  Semaphore unit_;
};

// Values on their way from those who push to those who pop, `capacity` at most.
template <typename T>
class Queue {
 public:
  Queue(Reactor& reactor, std::size_t capacity) : room_(reactor, capacity), filled_(reactor, 0) {
    LABRACK_CHECK(capacity > 0);
  }

  Task<void> Push(T value) {
    co_await room_.Acquire();
    values_.push_back(std::move(value));
    filled_.Release();
  }
  bool TryPush(T value) {
    if (!room_.TryAcquire()) return false;
    values_.push_back(std::move(value));
    filled_.Release();
    return true;
  }
  Task<T> Pop() {
    co_await filled_.Acquire();
    T value = std::move(values_.front());
    values_.pop_front();
    room_.Release();
    co_return value;
  }
  std::size_t size() const { return values_.size(); }

 private:
  Semaphore room_;
  Semaphore filled_;
  std::deque<T> values_;
};

}  // namespace labrack::runtime
