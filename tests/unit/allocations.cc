#include "tests/unit/allocations.h"

#include <cstdlib>
#include <new>

namespace {

std::size_t allocation_count = 0;

}  // namespace

// ThreadSanitizer brings its own, and two are one too many.
#if !__has_feature(thread_sanitizer)
void* operator new(std::size_t size) {
  ++allocation_count;
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace labrack {

std::size_t AllocationCount() { return allocation_count; }

}  // namespace labrack
