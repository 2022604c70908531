// Errors are values. Result<T> is std::expected<T, Error>; an Error is a closed code that callers
// branch on, the object it happened to (a device, a path, a host) and a short note for people.
// Exceptions of libraries are caught in the one file that calls the library and turned into an
// Error there.
#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace labrack {

// What went wrong, as far as code branches on it. A switch over Errc has no default, so that a new
// code is seen by every place that must decide about it.
enum class Errc {
  kInvalidArgument,   // the caller's words are wrong; nothing was done
  kNotFound,          // no such file, run, host, device
  kAlreadyExists,     // what should be made is there already
  kPermissionDenied,  // the system or the configuration forbids it
  kNoSpace,           // ENOSPC, EDQUOT, or a limit of ours on bytes
  kIo,                // the device or the file system failed the operation
  kDataMismatch,      // data read back is not the data written
  kBusy,              // in use by somebody else
  kUnsupported,       // this host, kernel or build cannot do it
  kTimedOut,          // a limit in time passed
  kCancelled,         // asked to stop
  kUnavailable,       // a peer cannot be reached, or went away; a retry is sensible
  kRefusedBySafety,   // disk safety: this disk will not be touched
  kCorrupt,           // a record of ours does not read back as written
  kExhausted,         // a named bound (queue, size, count) is reached
  kInternal,          // a fault of ours that could be contained
};

// "invalid argument", "no space", ...: for messages and logs.
std::string_view ErrcName(Errc code);

// The code that an errno of the host's kernel stands for.
Errc ErrcFromErrno(int error_number);

class [[nodiscard]] Error {
 public:
  explicit Error(Errc code) : code_(code) {}
  Error(Errc code, std::string note) : code_(code), note_(std::move(note)) {}
  Error(Errc code, std::string subject, std::string note)
      : code_(code), subject_(std::move(subject)), note_(std::move(note)) {}

  // The failure of a system call: "open /x: no such file or directory".
  static Error FromErrno(int error_number, std::string_view call, std::string_view subject);

  Errc code() const { return code_; }
  const std::string& subject() const { return subject_; }  // device, path or host; may be empty
  const std::string& note() const { return note_; }
  int system_errno() const { return errno_; }  // 0 where no system call was involved

  // "SUBJECT: NOTE (CODE NAME)", with the parts that are there.
  std::string ToString() const;

 private:
  Errc code_;
  int errno_ = 0;
  std::string subject_;
  std::string note_;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> Fail(Errc code, std::string note) {
  return std::unexpected(Error(code, std::move(note)));
}
inline std::unexpected<Error> Fail(Errc code, std::string subject, std::string note) {
  return std::unexpected(Error(code, std::move(subject), std::move(note)));
}
// For use straight after a failed system call: reads errno.
inline std::unexpected<Error> FailErrno(std::string_view call, std::string_view subject) {
  return std::unexpected(Error::FromErrno(errno, call, subject));
}

}  // namespace labrack
