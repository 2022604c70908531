#include "storage/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace labrack {

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "labrack: broken invariant at %s:%d: %s\n", file, line, expression);
  std::abort();
}

}  // namespace labrack
