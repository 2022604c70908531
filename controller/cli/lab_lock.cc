#include "controller/cli/lab_lock.h"

#include <fcntl.h>
#include <sstream>
#include <unistd.h>

#include <fmt/format.h>

#include "storage/base/file_lock.h"

namespace labrack::cli {
namespace {

constexpr const char* kFileName = "lab.lock";
constexpr const char* kNoAddress = "-";

}  // namespace

Result<LabHolder> LookAtLab(const std::filesystem::path& state) {
  const std::string path = (state / kFileName).string();
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return LabHolder{};
  if (!file.valid()) return FailErrno("open", path);
  const Result<bool> locked = IsFileLocked(file, path);
  if (!locked) return std::unexpected(locked.error());
  if (!*locked) return LabHolder{};
  char buffer[256];
  const ssize_t got = pread(file.get(), buffer, sizeof buffer, 0);
  if (got < 0) return FailErrno("read", path);
  std::istringstream text(std::string(buffer, static_cast<std::size_t>(got)));
  LabHolder holder{.state = LabState::kStarting, .pid = 0, .control_address = {}};
  if (!(text >> holder.pid >> holder.control_address)) return holder;
  holder.state = holder.control_address == kNoAddress ? LabState::kPrivate : LabState::kOpen;
  return holder;
}

LabLock::LabLock(std::string path, Descriptor descriptor)
    : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

Result<std::optional<LabLock>> LabLock::Take(const std::filesystem::path& state) {
  std::error_code error;
  std::filesystem::create_directories(state, error);
  if (error) {
    return Fail(
        Errc::kPermissionDenied, state.string(),
        fmt::format("cannot be made: {}; --state names another directory", error.message()));
  }
  const std::string path = (state / kFileName).string();
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return FailErrno("open", path);
  const Result<bool> ours = TryLockFile(file, path);
  if (!ours) return std::unexpected(ours.error());
  if (!*ours) return std::nullopt;
  // What a lab that was killed left behind.
  if (ftruncate(file.get(), 0) != 0) return FailErrno("truncate", path);
  return LabLock(path, std::move(file));
}

LabLock::~LabLock() {
  // The address goes before the lock does. Where it cannot, it is of no lab: nobody has the lock.
  if (descriptor_.valid() && ftruncate(descriptor_.get(), 0) != 0) return;
}

Result<void> LabLock::PublishPrivate() { return Publish(kNoAddress); }

Result<void> LabLock::Publish(const std::string& control_address) {
  const std::string text = fmt::format("{} {}\n", getpid(), control_address);
  if (ftruncate(descriptor_.get(), 0) != 0) return FailErrno("truncate", path_);
  if (pwrite(descriptor_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return FailErrno("write", path_);
  }
  return {};
}

}  // namespace labrack::cli
