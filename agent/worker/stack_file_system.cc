#include "agent/worker/stack_file_system.h"

namespace labrack::worker {

Result<void> StackFileSystem::Take() {
  Result<std::unique_ptr<fs::HostFileSystem>> host = fs::HostFileSystem::Open(directory_);
  if (!host) return std::unexpected(host.error());
  host_ = *std::move(host);
  return {};
}

}  // namespace labrack::worker
