// ThreadReactor: real time; a few threads make the blocking system calls. For hosts that forbid
// io_uring (containers, kernel.io_uring_disabled). Each operation costs two switches of threads.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/base/result.h"
#include "storage/runtime/mailbox.h"
#include "storage/runtime/reactor.h"

namespace labrack::runtime {

class ThreadReactor final : public Reactor {
 public:
  static constexpr int kThreadsDefault = 16;  // as many operations are on their way at once

  static Result<std::unique_ptr<ThreadReactor>> Open(int threads = kThreadsDefault);
  ~ThreadReactor() override;

  TimePoint Now() const override { return MonotonicClock().Now(); }
  void Post(std::function<void()> task) override { mailbox_.Post(std::move(task)); }
  void Submit(FileOp& operation) override;

 protected:
  bool Poll(bool wait, std::optional<TimePoint> until) override;

 private:
  ThreadReactor() : mailbox_(kMailMax) {}
  void Work();
  FileOp* Next();
  void Finish(FileOp& operation);

  Mailbox mailbox_;
  std::mutex mutex_;
  std::condition_variable work_;
  FileOpQueue queued_;          // guarded by mutex_
  std::vector<FileOp*> done_;   // guarded by mutex_
  bool stopping_ = false;       // guarded by mutex_
  std::vector<FileOp*> taken_;  // the reactor's
  std::vector<std::thread> threads_;
};

}  // namespace labrack::runtime
