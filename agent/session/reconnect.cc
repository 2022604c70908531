#include "agent/session/reconnect.h"

#include <algorithm>

namespace labrack::session {

void ReconnectWindows::Reset(Nanoseconds first) {
  window_ = first > Nanoseconds(0) ? std::min(first, kLongest) : kFirst;
  rest_ = Nanoseconds(0);
}

Nanoseconds ReconnectWindows::Next() {
  const auto within = Nanoseconds(
      static_cast<Nanoseconds::rep>(random_.Below(static_cast<std::uint64_t>(window_.count()))));
  const Nanoseconds wait = rest_ + within;
  rest_ = window_ - within;
  window_ = std::min(window_ * 2, kLongest);
  return wait;
}

}  // namespace labrack::session
