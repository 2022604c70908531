#include "storage/runtime/mailbox.h"

#include <cstdint>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace labrack::runtime {

Result<void> Mailbox::Open() {
  event_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_.valid()) return FailErrno("eventfd", "a reactor's mailbox");
  return {};
}

void Mailbox::Post(std::function<void()> task) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    room_.wait(lock, [&] { return posted_.size() < capacity_; });
    posted_.push_back(std::move(task));
  }
  Ring();
}

void Mailbox::Ring() {
  const std::uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof one);  // fails only when it is readable already
}

std::size_t Mailbox::TakeAll() {
  std::uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof count);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken_.swap(posted_);
  }
  room_.notify_all();
  const std::size_t taken = taken_.size();
  for (std::function<void()>& task : taken_) task();
  taken_.clear();
  return taken;
}

}  // namespace labrack::runtime
