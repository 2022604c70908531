// How each kind of step is undone. Every one first looks at what is there: a step that was never
// taken, or is undone already, is a success.
#pragma once

#include "agent/stack/undo_log.h"

namespace labrack::stack {

Result<void> Undo(const UndoStep& step, Nanoseconds busy_wait);

// Whether what stays when this step fails needs the things that earlier steps made.
bool HoldsWhatIsBelow(UndoKind kind);

// Names of pools that we make start so; no other pool is ever destroyed.
inline constexpr std::string_view kPoolPrefix = "labrack-";

}  // namespace labrack::stack
