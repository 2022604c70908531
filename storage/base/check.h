// Invariants. LABRACK_CHECK is always on: a broken invariant ends the process with file, line and
// expression, since going on would write wrong data. It is never used on what a disk, a peer or a
// user can cause; those return an Error (result.h).
#pragma once

namespace labrack {

[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace labrack

#define LABRACK_CHECK(expression)                       \
  (static_cast<bool>(expression) ? static_cast<void>(0) \
                                 : ::labrack::CheckFailed(__FILE__, __LINE__, #expression))
