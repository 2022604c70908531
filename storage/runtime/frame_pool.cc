#include "storage/runtime/frame_pool.h"

#include <array>
#include <new>

namespace labrack::runtime {
namespace {

constexpr std::size_t kClassSize = 64;    // sizes are rounded up to multiples of it
constexpr std::size_t kPooledMax = 4096;  // larger blocks come from the heap each time
constexpr std::size_t kClassCount = kPooledMax / kClassSize;

struct FreeBlock {
  FreeBlock* next;
};

class FreeLists {
 public:
  ~FreeLists() {
    for (FreeBlock*& head : heads_) {
      while (head != nullptr) ::operator delete(Pop(head));
    }
    ended_ = true;
  }

  void* Allocate(std::size_t size_class) {
    FreeBlock*& head = heads_[size_class];
    if (head != nullptr) return Pop(head);
    return ::operator new((size_class + 1) * kClassSize);
  }
  void Free(void* memory, std::size_t size_class) noexcept {
    if (ended_) return ::operator delete(memory);  // a frame that outlived its thread's lists
    heads_[size_class] = new (memory) FreeBlock{heads_[size_class]};
  }

 private:
  static void* Pop(FreeBlock*& head) {
    FreeBlock* block = head;
    head = block->next;
    return block;
  }

  std::array<FreeBlock*, kClassCount> heads_{};
  bool ended_ = false;
};

thread_local FreeLists free_lists;

std::size_t SizeClass(std::size_t size) { return (size + kClassSize - 1) / kClassSize - 1; }

}  // namespace

void* FramePool::Allocate(std::size_t size) {
  if (size == 0 || size > kPooledMax) return ::operator new(size);
  return free_lists.Allocate(SizeClass(size));
}

void FramePool::Free(void* memory, std::size_t size) noexcept {
  if (size == 0 || size > kPooledMax) return ::operator delete(memory);
  free_lists.Free(memory, SizeClass(size));
}

}  // namespace labrack::runtime
