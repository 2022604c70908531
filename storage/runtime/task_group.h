// TaskGroup and WhenAll: several tasks side by side on one reactor. What they own has ended before
// they are destroyed; a task that fails does not stop the others.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <utility>

#include "storage/base/check.h"
#include "storage/runtime/reactor.h"

namespace labrack::runtime {

// Owns what it spawned. `co_await group.Join()` returns once all have ended; more may be spawned
// until then, and after it.
class TaskGroup {
 public:
  explicit TaskGroup(Reactor& reactor) : reactor_(reactor) {}
  ~TaskGroup() { LABRACK_CHECK(running_ == 0); }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Begins the task at once, up to where it first waits.
  void Spawn(Task<void> task) {
    ++running_;
    RunChild(*this, std::move(task));
  }
  std::size_t running_count() const { return running_; }

  class Joined {
   public:
    Joined(TaskGroup& group, std::source_location where) : group_(group) {
      waiter_.what = "a group of tasks";
      waiter_.where = where;
    }
    bool await_ready() const { return group_.running_ == 0; }
    void await_suspend(std::coroutine_handle<> handle) {
      LABRACK_CHECK(group_.joining_ == nullptr);
      waiter_.handle = handle;
      group_.reactor_.Wait(waiter_);
      group_.joining_ = &waiter_;
    }
    void await_resume() const {}

   private:
    TaskGroup& group_;
    Waiter waiter_;
  };
  Joined Join(std::source_location where = std::source_location::current()) {
    return {*this, where};
  }

 private:
  // A coroutine that owns itself: its frame goes away at its end. Only here, where it is counted.
  struct Child {
    struct promise_type {
      static void* operator new(std::size_t size) { return FramePool::Allocate(size); }
      static void operator delete(void* memory, std::size_t size) noexcept {
        FramePool::Free(memory, size);
      }
      Child get_return_object() noexcept { return {}; }
      std::suspend_never initial_suspend() const noexcept { return {}; }
      std::suspend_never final_suspend() const noexcept { return {}; }
      void return_void() const noexcept {}
      void unhandled_exception() const noexcept { std::terminate(); }
    };
  };
  static Child RunChild(TaskGroup& group, Task<void> task) {
    co_await std::move(task);
    group.Ended();
  }
  void Ended() {
    --running_;
    if (running_ != 0 || joining_ == nullptr) return;
    Waiter& waiter = *std::exchange(joining_, nullptr);
    reactor_.Wake(waiter);
  }

  Reactor& reactor_;
  std::size_t running_ = 0;
  Waiter* joining_ = nullptr;
};

// Up to `count` tasks and their results, in the order in which they were added:
//
//   WhenAll<Result<void>> writes(reactor, legs.size());
//   for (Leg& leg : legs) writes.Add(leg.slot, leg.device->Write(io, at, from));
//   co_await writes.Join();
//   for (std::size_t i = 0; i < writes.count(); ++i) ... writes.slot(i), writes.result(i)
template <typename T>
class WhenAll {
 public:
  WhenAll(Reactor& reactor, std::size_t count)
      : group_(reactor),
        capacity_(count),
        cells_(static_cast<Cell*>(FramePool::Allocate(count * sizeof(Cell)))) {}
  ~WhenAll() {
    LABRACK_CHECK(group_.running_count() == 0);
    std::destroy_n(cells_, count_);
    FramePool::Free(cells_, capacity_ * sizeof(Cell));
  }
  WhenAll(const WhenAll&) = delete;
  WhenAll& operator=(const WhenAll&) = delete;

  void Add(std::size_t slot, Task<T> task) {
    LABRACK_CHECK(count_ < capacity_);
    Cell* cell = new (cells_ + count_++) Cell{slot, {}};
    group_.Spawn(Store(*cell, std::move(task)));
  }
  TaskGroup::Joined Join(std::source_location where = std::source_location::current()) {
    return group_.Join(where);
  }

  std::size_t count() const { return count_; }
  // The caller's own number.
  std::size_t slot(std::size_t index) const { return cells_[index].slot; }
  // After Join.
  T& result(std::size_t index) {
    LABRACK_CHECK(index < count_ && cells_[index].result.has_value());
    return *cells_[index].result;
  }

 private:
  struct Cell {
    std::size_t slot;
    std::optional<T> result;
  };
  static Task<void> Store(Cell& cell, Task<T> task) {
    T result = co_await std::move(task);
    cell.result.emplace(std::move(result));
  }

  TaskGroup group_;
  std::size_t capacity_;
  std::size_t count_ = 0;
  Cell* cells_;
};

}  // namespace labrack::runtime
