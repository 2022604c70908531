// A bounded queue of work for one thread. gRPC's callbacks and other threads push; nothing here
// blocks but Take().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "storage/base/clock.h"

namespace labrack::api {

template <typename... Arguments>
class Inbox {
 public:
  using Task = std::move_only_function<void(Arguments...)>;

  explicit Inbox(std::size_t items_max) : items_max_(items_max) {}

  // False when the queue is full or closed; the task is destroyed then, not run.
  bool Push(Task task) { return Put(std::move(task), items_max_); }
  // For what must not be lost for want of room (a session's end). Bounded by its sender.
  bool PushAlways(Task task) { return Put(std::move(task), SIZE_MAX); }

  // What is queued, at most `count`; waits up to `limit` for the first. Empty once closed.
  std::vector<Task> Take(Nanoseconds limit, std::size_t count) {
    std::unique_lock lock(mutex_);
    if (limit > Nanoseconds(0)) {
      changed_.wait_for(lock, limit, [&] { return closed_ || !tasks_.empty(); });
    }
    if (closed_) return {};
    if (tasks_.size() <= count) return std::exchange(tasks_, {});
    std::vector<Task> taken(std::make_move_iterator(tasks_.begin()),
                            std::make_move_iterator(tasks_.begin() + Index(count)));
    tasks_.erase(tasks_.begin(), tasks_.begin() + Index(count));
    return taken;
  }

  // Destroys what is queued and takes no more.
  void Close() {
    std::vector<Task> dropped;
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      dropped.swap(tasks_);
    }
    changed_.notify_all();
  }

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return tasks_.size();
  }

 private:
  static std::ptrdiff_t Index(std::size_t count) { return static_cast<std::ptrdiff_t>(count); }

  bool Put(Task task, std::size_t items_max) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || tasks_.size() >= items_max) return false;
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
    return true;
  }

  const std::size_t items_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;
  bool closed_ = false;
};

}  // namespace labrack::api
