// Waiter: a suspended coroutine, and what it waits for. It lives in the coroutine's own frame. A
// reactor knows all its waiters, so that it can say who waits when nothing can run any more.
#pragma once

#include <coroutine>
#include <source_location>

namespace labrack::runtime {

struct Waiter {
  std::coroutine_handle<> handle;
  const char* what = "";  // "a mutex", "a read"
  std::source_location where = std::source_location::current();

  // Of the list that it stands in: a primitive's, or the reactor's of what is ready.
  Waiter* next = nullptr;
  // Of the reactor's list of all that wait.
  Waiter* all_before = nullptr;
  Waiter* all_after = nullptr;
};

// First in, first out.
class WaiterQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  void Push(Waiter& waiter) {
    waiter.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &waiter;
    last_ = &waiter;
  }
  // nullptr when there is none.
  Waiter* Pop() {
    Waiter* waiter = first_;
    if (waiter != nullptr) first_ = waiter->next;
    return waiter;
  }

 private:
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace labrack::runtime
