// CappedBuffer: the first and the last bytes of a stream of any length, in bounded memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/base/bytes.h"

namespace labrack::exec {

class CappedBuffer {
 public:
  CappedBuffer(Bytes head_max, Bytes tail_max) : head_max_(head_max), tail_max_(tail_max) {}

  void Append(std::string_view bytes);
  std::uint64_t dropped_bytes() const { return dropped_; }
  // The kept bytes in their order; a line between head and tail says how many were left out.
  std::string Text() const;

 private:
  Bytes head_max_;
  Bytes tail_max_;
  std::string head_;
  std::string tail_;            // a ring once it is full
  std::size_t tail_start_ = 0;  // index of the oldest byte in the full ring
  std::uint64_t dropped_ = 0;
};

}  // namespace labrack::exec
