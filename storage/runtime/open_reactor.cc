#include "storage/runtime/open_reactor.h"

#include <utility>

#include "storage/runtime/thread_reactor.h"
#include "storage/runtime/uring_reactor.h"

namespace labrack::runtime {

Result<OpenedReactor> OpenReactor(ReactorKind kind) {
  OpenedReactor opened;
  if (kind != ReactorKind::kThreads) {
    Result<std::unique_ptr<UringReactor>> uring = UringReactor::Open();
    if (uring) {
      opened.reactor = *std::move(uring);
      opened.name = "io_uring";
      return opened;
    }
    if (kind == ReactorKind::kUring) return std::unexpected(uring.error());
    opened.note = uring.error().ToString();
  }
  Result<std::unique_ptr<ThreadReactor>> threads = ThreadReactor::Open();
  if (!threads) return std::unexpected(threads.error());
  opened.reactor = *std::move(threads);
  opened.name = "threads";
  return opened;
}

}  // namespace labrack::runtime
