// Line locks of a RAID-5: a line's data and parity change together, so one writer at a time, and no
// reader between the acknowledgement of a prewrite and the end of its writes in place. Locks are
// shared by lines that fall into the same of kLockCount; whoever needs more than one takes them in
// order. First come, first served; readers that stand next to each other go together.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "storage/base/check.h"
#include "storage/runtime/reactor.h"

namespace labrack::volume {

enum class LockKind : std::uint8_t { kShared, kExclusive };

class LineLocks {
 public:
  static constexpr std::size_t kLockCount = 256;

  explicit LineLocks(runtime::Reactor& reactor) : reactor_(reactor) {}
  ~LineLocks() {
    for (const Lock& lock : locks_) LABRACK_CHECK(!lock.exclusive && lock.shared == 0);
  }
  LineLocks(const LineLocks&) = delete;
  LineLocks& operator=(const LineLocks&) = delete;

 private:
  struct Waiting {
    runtime::Waiter waiter = {};
    LockKind kind = LockKind::kShared;
    Waiting* next = nullptr;
  };
  struct Lock {
    std::size_t shared = 0;
    bool exclusive = false;
    Waiting* first = nullptr;
    Waiting* last = nullptr;

    bool Take(LockKind kind) {
      if (exclusive || (kind == LockKind::kExclusive && shared > 0)) return false;
      if (kind == LockKind::kExclusive) {
        exclusive = true;
      } else {
        ++shared;
      }
      return true;
    }
  };

 public:
  class Acquire {
   public:
    Acquire(runtime::Reactor& reactor, Lock& lock, LockKind kind, std::source_location where)
        : reactor_(reactor), lock_(lock) {
      waiting_.kind = kind;
      waiting_.waiter.what = "a line lock";
      waiting_.waiter.where = where;
    }
    bool await_ready() { return lock_.first == nullptr && lock_.Take(waiting_.kind); }
    void await_suspend(std::coroutine_handle<> handle) {
      waiting_.waiter.handle = handle;
      reactor_.Wait(waiting_.waiter);
      (lock_.first == nullptr ? lock_.first : lock_.last->next) = &waiting_;
      lock_.last = &waiting_;
    }
    void await_resume() const {}

   private:
    runtime::Reactor& reactor_;
    Lock& lock_;
    Waiting waiting_;
  };

  // `co_await locks.Of(line, kind)`, then Release(line, kind) once.
  Acquire Of(std::uint64_t line, LockKind kind,
             std::source_location where = std::source_location::current()) {
    return {reactor_, locks_[line % kLockCount], kind, where};
  }
  void Release(std::uint64_t line, LockKind kind) {
    Lock& lock = locks_[line % kLockCount];
    if (kind == LockKind::kExclusive) {
      LABRACK_CHECK(lock.exclusive);
      lock.exclusive = false;
    } else {
      LABRACK_CHECK(lock.shared > 0);
      --lock.shared;
    }
    while (lock.first != nullptr && lock.Take(lock.first->kind)) {
      Waiting& next = *lock.first;
      lock.first = next.next;
      reactor_.Wake(next.waiter);
    }
  }

 private:
  runtime::Reactor& reactor_;
  std::array<Lock, kLockCount> locks_ = {};
};

}  // namespace labrack::volume
