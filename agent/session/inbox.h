// Inbox: from gRPC's callbacks and other threads to the agent's one loop. Callbacks only push here;
// what is slow is done by the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "labrack/v1/fleet.pb.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::session {

struct InboxItem {
  std::uint64_t connection = 0;  // its number; items of older ones are stale
  v1::ControllerMessage message;
  bool closed = false;  // the connection is over, and why
  std::string reason;
  bool not_served = false;  // the other side does not speak our protocol
};

// Thread-safe.
class Inbox {
 public:
  // A connection stops reading while more than this is waiting.
  static constexpr std::size_t kWaitingMax = 256;

  static Result<std::unique_ptr<Inbox>> Make();

  // False: full, stop reading until Take was called. The item is taken all the same.
  bool Push(InboxItem item);
  std::vector<InboxItem> Take();
  // Readable (poll) while something is waiting.
  int fd() const { return bell_.get(); }

 private:
  Inbox() = default;
  Descriptor bell_;
  std::mutex mutex_;  // guards items_
  std::deque<InboxItem> items_;
};

}  // namespace labrack::session
