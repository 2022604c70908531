// Counts what a test program allocates, where its SOURCES name allocations.cc: it replaces the
// global operator new.
#pragma once

#include <cstddef>

namespace labrack {

// Calls of operator new since the program began; under ThreadSanitizer always 0.
std::size_t AllocationCount();

}  // namespace labrack
