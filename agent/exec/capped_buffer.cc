#include "agent/exec/capped_buffer.h"

#include <algorithm>

namespace labrack::exec {

void CappedBuffer::Append(std::string_view bytes) {
  const std::size_t to_head = std::min(bytes.size(), head_max_.size() - head_.size());
  head_.append(bytes.substr(0, to_head));
  bytes.remove_prefix(to_head);
  if (bytes.empty()) return;

  const std::size_t capacity = tail_max_.size();
  if (bytes.size() >= capacity) {
    dropped_ += tail_.size() + bytes.size() - capacity;
    tail_.assign(bytes.substr(bytes.size() - capacity));
    tail_start_ = 0;
    return;
  }
  const std::size_t to_free_part = std::min(bytes.size(), capacity - tail_.size());
  tail_.append(bytes.substr(0, to_free_part));
  bytes.remove_prefix(to_free_part);
  dropped_ += bytes.size();
  for (char byte : bytes) {
    tail_[tail_start_] = byte;
    tail_start_ = (tail_start_ + 1) % capacity;
  }
}

std::string CappedBuffer::Text() const {
  std::string text = head_;
  if (dropped_ > 0) {
    text += "\n[" + std::to_string(dropped_) + " bytes left out]\n";
  }
  text.append(tail_, tail_start_);
  text.append(tail_, 0, tail_start_);
  return text;
}

}  // namespace labrack::exec
