// FramePool: memory for coroutine frames and for what lives as long as one operation. Blocks of a
// size class go back to a list of the thread that frees them, so that after warm-up an I/O
// allocates nothing. Never gives memory back to the system before the thread ends.
#pragma once

#include <cstddef>

namespace labrack::runtime {

class FramePool {
 public:
  static void* Allocate(std::size_t size);
  static void Free(void* memory, std::size_t size) noexcept;  // `size` as it was asked for
};

}  // namespace labrack::runtime
