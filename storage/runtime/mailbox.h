// Mailbox: the only door between threads of the storage core. Tasks that other threads post wait
// here until the reactor's thread takes them; a descriptor becomes readable meanwhile.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::runtime {

class Mailbox {
 public:
  // `capacity`: who posts more waits until some have been taken.
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {}
  Result<void> Open();

  // Readable (poll) while something may wait.
  int fd() const { return event_.get(); }
  void Post(std::function<void()> task);  // any thread
  void Ring();                            // makes fd() readable; any thread
  // Calls everything that has been posted; the number. The reactor's thread.
  std::size_t TakeAll();

 private:
  std::size_t capacity_;
  Descriptor event_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  std::vector<std::function<void()>> taken_;   // the reactor's; keeps its memory
};

}  // namespace labrack::runtime
