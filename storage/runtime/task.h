// Task<T>: a lazy coroutine that gives a T. It starts when it is awaited (or given to
// RunToCompletion), runs on the thread that awaits it, and resumes its parent when it is done. A
// Task owns its frame; destroying one that is suspended half-way is a fault, since an I/O may still
// point into the frame.
//
// Rules (style guide, "Coroutines"): one co_await per statement, its result named; coroutines are
// named functions; parameters by value or as views of what the caller keeps alive until it has
// joined.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "storage/base/check.h"
#include "storage/runtime/frame_pool.h"

namespace labrack::runtime {

template <typename T>
class [[nodiscard]] Task;

namespace internal {

// What a task does when it ends: go on with whoever awaits it.
struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) const noexcept {
    std::coroutine_handle<> parent = handle.promise().parent;
    return parent ? parent : std::noop_coroutine();
  }
  void await_resume() const noexcept {}
};

struct PromiseBase {
  std::coroutine_handle<> parent;

  static void* operator new(std::size_t size) { return FramePool::Allocate(size); }
  static void operator delete(void* memory, std::size_t size) noexcept {
    FramePool::Free(memory, size);
  }

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  // Exceptions do not cross an I/O path: whoever calls a throwing library catches there.
  void unhandled_exception() noexcept { std::terminate(); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object() noexcept;
  void return_value(T result) { value.emplace(std::move(result)); }
  T Take() {
    LABRACK_CHECK(value.has_value());
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void Take() {}
};

}  // namespace internal

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      Destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { Destroy(); }

  struct Awaiter {
    Handle handle;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
      handle.promise().parent = parent;
      return handle;
    }
    T await_resume() { return handle.promise().Take(); }
  };
  Awaiter operator co_await() && noexcept { return Awaiter{handle_}; }

  // For RunToCompletion and the reactors.
  Handle handle() const { return handle_; }

 private:
  void Destroy() {
    if (handle_) handle_.destroy();
    handle_ = {};
  }
  Handle handle_;
};

namespace internal {
template <typename T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace internal

// Runs a task whose whole tree completes on this thread without waiting for a reactor: host file
// systems, whose operations are plain system calls of the client's own thread. A task that suspends
// for good is a fault of the caller.
template <typename T>
T RunToCompletion(Task<T> task) {
  task.handle().resume();
  LABRACK_CHECK(task.handle().done());
  return task.handle().promise().Take();
}

}  // namespace labrack::runtime
