#include "agent/worker/trial_files.h"

#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/exec/family.h"

namespace labrack::worker {
namespace {

constexpr const char* kSocketName = "control.sock";
constexpr const char* kWorkerRole = "worker";
constexpr const char* kUndoRole = "undo";

// "/proc/self/fd/N/control.sock" for the descriptor of the directory.
sockaddr_un SocketAddress(const Descriptor& directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + kSocketName;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

Result<Descriptor> OpenDirectory(const std::filesystem::path& directory) {
  Descriptor file(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!file.valid()) return FailErrno("open", directory.string());
  return file;
}

}  // namespace

std::string TrialName(std::string_view assignment_id, std::uint64_t epoch) {
  std::string name(assignment_id.substr(0, kAssignmentIdMax));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name + "." + std::to_string(epoch);
}

Result<Descriptor> TrialFiles::Lock() const {
  Descriptor file(open(lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return FailErrno("open", lock().string());
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FailErrno("lock", lock().string());
    return Fail(Errc::kBusy, lock().string(), "a worker is at work in this directory");
  }
  return file;
}

std::optional<LockHolder> TrialFiles::ReadHolder() const {
  const Result<std::string> text = ReadFile(pid(), 256);
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  LockHolder holder;
  std::string role;
  if (!(words >> holder.pid >> holder.start_ticks >> role) || holder.pid <= 1) return std::nullopt;
  holder.undoes = role == kUndoRole;
  const std::optional<exec::ProcessFacts> facts = exec::ReadProcess(holder.pid);
  if (!facts || facts->start_ticks != holder.start_ticks) return std::nullopt;
  return holder;
}

Result<void> TrialFiles::WriteHolder(bool undoes) const {
  const std::optional<exec::ProcessFacts> self = exec::ReadProcess(getpid());
  if (!self) return Fail(Errc::kNotFound, "/proc/self/stat", "a worker needs /proc");
  const std::string text = std::to_string(self->pid) + " " + std::to_string(self->start_ticks) +
                           " " + (undoes ? kUndoRole : kWorkerRole) + "\n";
  return WriteFile(pid(), text, /*durable=*/false);
}

std::string TrialFiles::mark() const {
  return std::filesystem::absolute(directory_).lexically_normal().string();
}

Result<Descriptor> TrialFiles::Listen() const {
  Result<Descriptor> directory = OpenDirectory(directory_);
  if (!directory) return directory;
  // One is there when an earlier worker died; we hold the lock, so it is nobody's.
  unlinkat(directory->get(), kSocketName, 0);
  Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return FailErrno("socket", directory_.string());
  const sockaddr_un address = SocketAddress(*directory);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailErrno("bind", (directory_ / kSocketName).string());
  }
  constexpr int kBacklog = 8;
  if (listen(listener.get(), kBacklog) != 0) {
    return FailErrno("listen", (directory_ / kSocketName).string());
  }
  return listener;
}

Result<Descriptor> TrialFiles::Connect() const {
  Result<Descriptor> directory = OpenDirectory(directory_);
  if (!directory) return directory;
  Descriptor peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!peer.valid()) return FailErrno("socket", directory_.string());
  const sockaddr_un address = SocketAddress(*directory);
  if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailErrno("connect", (directory_ / kSocketName).string());
  }
  return peer;
}

Result<std::string> ReadFile(const std::filesystem::path& path, std::size_t size_max) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return FailErrno("open", path.string());
  std::string text;
  char chunk[16 << 10];
  for (;;) {
    const ssize_t got = read(file.get(), chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", path.string());
    if (got == 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > size_max) {
      return Fail(Errc::kExhausted, path.string(),
                  "longer than " + std::to_string(size_max) + " bytes");
    }
  }
}

Result<void> WriteFile(const std::filesystem::path& path, std::string_view text, bool durable) {
  const std::filesystem::path temporary = path.string() + ".new";
  Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return FailErrno("create", temporary.string());
  while (!text.empty()) {
    const ssize_t wrote = write(file.get(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return FailErrno("write", temporary.string());
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (durable && fsync(file.get()) != 0) return FailErrno("fsync", temporary.string());
  if (rename(temporary.c_str(), path.c_str()) != 0) return FailErrno("rename", path.string());
  if (!durable) return {};
  Descriptor directory(open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || fsync(directory.get()) != 0) {
    return FailErrno("fsync", path.parent_path().string());
  }
  return {};
}

}  // namespace labrack::worker
