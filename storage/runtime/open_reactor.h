// The reactor for real files that this host can have: io_uring, or threads where it is forbidden.
#pragma once

#include <memory>
#include <string>

#include "storage/base/result.h"
#include "storage/runtime/reactor.h"

namespace labrack::runtime {

enum class ReactorKind { kBest, kUring, kThreads };

struct OpenedReactor {
  std::unique_ptr<Reactor> reactor;
  std::string name;  // "io_uring", "threads": for logs and results
  std::string note;  // why it is not io_uring; empty when it is, or when threads were asked for
};

Result<OpenedReactor> OpenReactor(ReactorKind kind);

}  // namespace labrack::runtime
