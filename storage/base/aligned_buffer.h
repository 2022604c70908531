// Memory for direct I/O: aligned to a page, of fixed size, owned.
#pragma once

#include <cstdlib>
#include <memory>

#include "storage/base/bytes.h"
#include "storage/base/check.h"

namespace labrack {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 4096;  // what O_DIRECT asks for on any device of today

  explicit AlignedBuffer(Bytes size)
      : size_(size.size()),
        memory_(static_cast<std::byte*>(std::aligned_alloc(
            kAlignment, (size.size() + kAlignment - 1) / kAlignment * kAlignment))) {
    LABRACK_CHECK(size_ > 0 && memory_ != nullptr);
  }

  MutableView view() { return {memory_.get(), size_}; }
  MutableView first(Bytes length) { return view().first(length.size()); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace labrack
