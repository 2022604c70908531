// The thread for work that takes time: reading the catalog, planning, comparing. It has a read-only
// connection of its own, so that it never holds up the loop that writes.
#pragma once

#include <filesystem>
#include <memory>
#include <thread>

#include "controller/api/inbox.h"
#include "controller/api/reports.h"
#include "controller/catalog/reader.h"
#include "storage/base/result.h"

namespace labrack::api {

class Jobs {
 public:
  using Queue = Inbox<catalog::Reader&>;
  static constexpr std::size_t kQueueMax = 1024;

  static Result<std::unique_ptr<Jobs>> Start(const std::filesystem::path& state);
  ~Jobs();  // finishes the job in hand, drops the rest
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // False when the queue is full; the job is destroyed then.
  bool Post(Queue::Task job) { return queue_.Push(std::move(job)); }
  // Drops what waits and breaks off the reading in hand.
  void Close() {
    queue_.Close();
    reader_->Interrupt();
  }
  std::size_t size() const { return queue_.size(); }
  Reports& reports() { return reports_; }  // for jobs only, but for bytes()

 private:
  explicit Jobs(std::unique_ptr<catalog::Reader> reader);
  void Work();

  std::unique_ptr<catalog::Reader> reader_;
  Reports reports_;
  Queue queue_;
  std::thread thread_;
};

}  // namespace labrack::api
