#include "controller/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

#include <fmt/format.h>

#include "storage/base/descriptor.h"

namespace labrack::cli {
namespace {

// Errno of the first failed write to standard output; the command line is one thread where it
// matters.
int output_errno = 0;

// 0, or the errno of what failed.
int WriteWhole(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Removes the temporary file unless it has been renamed.
struct TemporaryFile {
  std::string path;
  Descriptor descriptor;
  bool keep = false;
  ~TemporaryFile() {
    if (!keep) unlink(path.c_str());
  }
};

}  // namespace

void WriteAll(int descriptor, std::string_view text) {
  const int failed = WriteWhole(descriptor, text);
  if (failed != 0 && failed != EPIPE && descriptor == STDOUT_FILENO && output_errno == 0) {
    output_errno = failed;
  }
}

void WriteOut(std::string_view text) { WriteAll(STDOUT_FILENO, text); }
void WriteErr(std::string_view text) { WriteAll(STDERR_FILENO, text); }

Result<void> OutputError() {
  if (output_errno == 0) return {};
  return std::unexpected(Error::FromErrno(output_errno, "write", "standard output"));
}

Result<void> CheckWritable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return Fail(Errc::kInvalidArgument, path, "is a directory; name a file in it");
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  if (access(directory.c_str(), W_OK | X_OK) == 0) return {};
  // A device or pipe is written straight, whatever may be made beside it.
  if (errno == EACCES && access(path.c_str(), W_OK) == 0) return {};
  return FailErrno(fmt::format("write {} in", std::filesystem::path(path).filename().string()),
                   directory);
}

Result<void> WriteFileAtomically(const std::string& path, std::string_view text) {
  // Devices and pipes cannot be renamed into place: --json /dev/stdout writes straight.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  TemporaryFile file;
  file.path = special ? path : fmt::format("{}.{}.tmp", path, getpid());
  file.keep = true;
  file.descriptor = Descriptor(open(
      file.path.c_str(), (special ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC) | O_CLOEXEC, 0666));
  if (!file.descriptor.valid()) return FailErrno("open", path);
  file.keep = special;
  if (const int failed = WriteWhole(file.descriptor.get(), text); failed != 0) {
    return std::unexpected(Error::FromErrno(failed, "write", file.path));
  }
  if (special) return {};
  if (fsync(file.descriptor.get()) != 0) return FailErrno("fsync", file.path);
  if (rename(file.path.c_str(), path.c_str()) != 0) return FailErrno("rename", path);
  file.keep = true;
  return {};
}

Result<std::string> ReadWholeFile(const std::string& path, std::size_t bytes_max) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return FailErrno("open", path);
  std::string text;
  char buffer[64 << 10];
  while (true) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", path);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > bytes_max) {
      return Fail(Errc::kExhausted, path, fmt::format("larger than {} bytes", bytes_max));
    }
  }
}

}  // namespace labrack::cli
