// Which trials run programs that nobody here has written, and that may start others which outlive
// them. The tools that build stacks do not count: they end with the call that ran them
// (agent/exec).
#pragma once

#include "labrack/v1/workload.pb.h"

namespace labrack::worker {

inline bool RunsPrograms(const v1::Workload& workload) {
  return workload.has_exec() || workload.has_fio();
}

}  // namespace labrack::worker
