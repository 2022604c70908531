#include "agent/stack/undo_log.h"

#include <array>
#include <charconv>
#include <errno.h>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent/stack/undo_steps.h"

namespace labrack::stack {
namespace {

constexpr std::size_t kLogBytesMax = 4 * 1024 * 1024;
constexpr Nanoseconds kLockRetryInterval = std::chrono::milliseconds(20);

struct KindName {
  UndoKind kind;
  std::string_view name;  // in the file
};
constexpr std::array<KindName, 6> kKindNames = {{
    {UndoKind::kUnmount, "unmount"},
    {UndoKind::kDetachLoop, "detach-loop"},
    {UndoKind::kDestroyPool, "destroy-pool"},
    {UndoKind::kRemoveFile, "remove-file"},
    {UndoKind::kRemoveEmptyDirectory, "remove-empty-directory"},
    {UndoKind::kRemoveTree, "remove-tree"},
}};

std::string_view NameOf(UndoKind kind) {
  for (const KindName& entry : kKindNames) {
    if (entry.kind == kind) return entry.name;
  }
  return "";
}

Result<std::string> ToLine(const UndoStep& step) {
  try {
    const std::string json =
        nlohmann::json{{"do", NameOf(step.kind)}, {"path", step.path}, {"name", step.name}}.dump();
    return fmt::format("{:016x} {}\n", XXH3_64bits(json.data(), json.size()), json);
  } catch (const nlohmann::json::exception&) {
    return Fail(Errc::kInvalidArgument, step.path, "a path must be UTF-8");
  }
}

std::optional<UndoStep> FromLine(std::string_view line) {
  constexpr std::size_t kDigits = 16;
  if (line.size() <= kDigits || line[kDigits] != ' ') return std::nullopt;
  XXH64_hash_t hash = 0;
  if (std::from_chars(line.data(), line.data() + kDigits, hash, 16).ptr != line.data() + kDigits) {
    return std::nullopt;
  }
  line.remove_prefix(kDigits + 1);
  if (hash != XXH3_64bits(line.data(), line.size())) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const std::string name = json.value("do", "");
  for (const KindName& entry : kKindNames) {
    if (entry.name == name) {
      return UndoStep{entry.kind, json.value("path", ""), json.value("name", "")};
    }
  }
  return std::nullopt;
}

Result<std::string> ReadWhole(int file, const std::string& path) {
  struct stat status{};
  if (fstat(file, &status) != 0) return FailErrno("stat", path);
  if (static_cast<std::size_t>(status.st_size) > kLogBytesMax) {
    return Fail(Errc::kCorrupt, path, "is far too long for an undo log");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = pread(file, text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailErrno("read", path);
    if (count == 0) break;
    at += static_cast<std::size_t>(count);
  }
  return text;
}

Result<void> Lock(int file, const std::string& path) {
  const TimePoint until = MonotonicClock().Now() + kUndoLockWait;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FailErrno("lock", path);
    if (MonotonicClock().Now() >= until) {
      return Fail(Errc::kBusy, path, "the worker that writes this undo log is still alive");
    }
    std::this_thread::sleep_for(kLockRetryInterval);
  }
  return {};
}

Result<void> SyncDirectoryOf(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor directory(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return FailErrno("open", parent.string());
  if (fsync(directory.get()) != 0) return FailErrno("fsync", parent.string());
  return {};
}

}  // namespace

std::string UndoStep::Describe() const {
  switch (kind) {
    case UndoKind::kUnmount:
      return "unmount " + path;
    case UndoKind::kDetachLoop:
      return "detach /dev/" + name + " from " + path;
    case UndoKind::kDestroyPool:
      return "destroy the pool " + name;
    case UndoKind::kRemoveFile:
      return "remove the file " + path;
    case UndoKind::kRemoveEmptyDirectory:
      return "remove the empty directory " + path;
    case UndoKind::kRemoveTree:
      return "remove " + path + " and what is in it";
  }
  return "";
}

Result<UndoLog> UndoLog::Open(const std::filesystem::path& path) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600));
  if (!file.valid()) return FailErrno("open", path.string());
  if (Result<void> locked = Lock(file.get(), path.string()); !locked) {
    return std::unexpected(locked.error());
  }
  if (Result<void> synced = SyncDirectoryOf(path); !synced) return std::unexpected(synced.error());
  UndoLog log(path, std::move(file));
  if (Result<void> loaded = log.Load(); !loaded) return std::unexpected(loaded.error());
  return log;
}

Result<void> UndoLog::Load() {
  const Result<std::string> text = ReadWhole(file_.get(), path_.string());
  if (!text) return std::unexpected(text.error());
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::optional<UndoStep> step =
        end == std::string_view::npos ? std::nullopt : FromLine(rest.substr(0, end));
    if (!step && end != std::string_view::npos && end + 1 < rest.size()) {
      return Fail(Errc::kCorrupt, path_.string(),
                  "step " + std::to_string(steps_.size() + 1) +
                      " does not read back; undo the trial by hand (mounts, loop devices, files)");
    }
    if (!step) {
      // Torn by a crash while it was written: nobody acted on it.
      const off_t good = static_cast<off_t>(text->size() - rest.size());
      if (ftruncate(file_.get(), good) != 0) return FailErrno("truncate", path_.string());
      return {};
    }
    steps_.push_back(*step);
    rest.remove_prefix(end + 1);
  }
  return {};
}

Result<void> UndoLog::Add(UndoStep step) {
  if (steps_.size() >= kUndoStepsMax) {
    return Fail(Errc::kExhausted, path_.string(), "the undo log is full");
  }
  const Result<std::string> line = ToLine(step);
  if (!line) return std::unexpected(line.error());
  if (observer_) observer_(steps_.size(), false);
  for (std::size_t at = 0; at < line->size();) {
    const ssize_t count = write(file_.get(), line->data() + at, line->size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailErrno("write", path_.string());
    at += static_cast<std::size_t>(count);
  }
  if (fdatasync(file_.get()) != 0) return FailErrno("sync", path_.string());
  steps_.push_back(std::move(step));
  if (observer_) observer_(steps_.size() - 1, true);
  return {};
}

Result<void> UndoLog::RunAll(const Report& report, Nanoseconds busy_wait) {
  std::string failures;
  Errc code = Errc::kInternal;
  bool blocked = false;
  for (auto step = steps_.rbegin(); step != steps_.rend() && !blocked; ++step) {
    const Result<void> done = Undo(*step, busy_wait);
    if (report) report(*step, done);
    if (done) continue;
    if (failures.empty()) code = done.error().code();
    failures += (failures.empty() ? "" : "; ") + done.error().ToString();
    blocked = HoldsWhatIsBelow(step->kind);
  }
  if (!failures.empty()) return Fail(code, path_.string(), "not all could be undone: " + failures);
  if (ftruncate(file_.get(), 0) != 0 || fdatasync(file_.get()) != 0) {
    return FailErrno("truncate", path_.string());
  }
  steps_.clear();
  return {};
}

}  // namespace labrack::stack
