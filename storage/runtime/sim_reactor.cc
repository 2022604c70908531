#include "storage/runtime/sim_reactor.h"

#include <utility>

#include "storage/base/check.h"

namespace labrack::runtime {

// A simulation that reached a file of the host would not replay.
void SimReactor::Submit(FileOp&) { LABRACK_CHECK(false); }

void SimReactor::Record(std::uint64_t what, std::uint64_t value) {
  Mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  Mix(what);
  Mix(value);
}

Waiter* SimReactor::PopReady() {
  if (ready_.empty()) return nullptr;
  const std::size_t drawn = ready_.size() == 1 ? 0 : random_.Below(ready_.size());
  Waiter* waiter = ready_[drawn];
  ready_[drawn] = ready_.back();
  ready_.pop_back();
  ++resumption_count_;
  Record(waiter->where.line(), ready_.size());
  return waiter;
}

bool SimReactor::Poll(bool wait, std::optional<TimePoint> until) {
  if (!mail_.empty()) {
    for (std::function<void()>& task : std::exchange(mail_, {})) task();
    return true;
  }
  if (!wait || !until) return false;
  if (*until > now_) now_ = *until;
  return true;
}

}  // namespace labrack::runtime
