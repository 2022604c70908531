#include "controller/cli/lab_lock.h"

#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

namespace labrack::cli {

Result<LabLock> LabLock::Take(const std::filesystem::path& state) {
  std::error_code error;
  std::filesystem::create_directories(state, error);
  if (error) {
    return Fail(
        Errc::kPermissionDenied, state.string(),
        fmt::format("cannot be made: {}; --state names another directory", error.message()));
  }
  LabLock lock;
  lock.path_ = (state / "lab.lock").string();
  lock.descriptor_ = Descriptor(open(lock.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.descriptor_.valid()) return FailErrno("open", lock.path_);
  lock.TryAgain();
  return lock;
}

LabLock::~LabLock() {
  // The address must not outlive the lab that it led to. If it does, the lock says so.
  if (held_ && descriptor_.valid() && ftruncate(descriptor_.get(), 0) != 0) held_ = false;
}

bool LabLock::TryAgain() {
  if (!held_ && flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0) {
    held_ = true;
    // What a lab that was killed left behind.
    if (ftruncate(descriptor_.get(), 0) != 0) return held_;
  }
  return held_;
}

Result<std::optional<LabHolder>> LabLock::Holder() const {
  char buffer[256];
  const ssize_t got = pread(descriptor_.get(), buffer, sizeof buffer, 0);
  if (got < 0) return FailErrno("read", path_);
  std::istringstream text(std::string(buffer, static_cast<std::size_t>(got)));
  LabHolder holder;
  if (!(text >> holder.pid >> holder.control_address)) return std::nullopt;
  return holder;
}

Result<void> LabLock::Publish(const std::string& control_address) {
  const std::string text = fmt::format("{} {}\n", getpid(), control_address);
  if (ftruncate(descriptor_.get(), 0) != 0) return FailErrno("truncate", path_);
  if (pwrite(descriptor_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return FailErrno("write", path_);
  }
  return {};
}

}  // namespace labrack::cli
