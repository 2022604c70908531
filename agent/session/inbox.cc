#include "agent/session/inbox.h"

#include <iterator>
#include <memory>
#include <sys/eventfd.h>
#include <unistd.h>

namespace labrack::session {

Result<std::unique_ptr<Inbox>> Inbox::Make() {
  std::unique_ptr<Inbox> inbox(new Inbox());
  inbox->bell_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!inbox->bell_.valid()) return FailErrno("eventfd", "inbox");
  return inbox;
}

bool Inbox::Push(InboxItem item) {
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    waiting = items_.size();
  }
  const std::uint64_t one = 1;
  (void)!write(bell_.get(), &one, sizeof(one));
  return waiting < kWaitingMax;
}

std::vector<InboxItem> Inbox::Take() {
  std::uint64_t rings = 0;
  (void)!read(bell_.get(), &rings, sizeof(rings));
  const std::lock_guard lock(mutex_);
  std::vector<InboxItem> taken(std::make_move_iterator(items_.begin()),
                               std::make_move_iterator(items_.end()));
  items_.clear();
  return taken;
}

}  // namespace labrack::session
