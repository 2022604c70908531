#include "storage/base/result.h"

#include <string.h>

namespace labrack {

std::string_view ErrcName(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return "invalid argument";
    case Errc::kNotFound:
      return "not found";
    case Errc::kAlreadyExists:
      return "already exists";
    case Errc::kPermissionDenied:
      return "permission denied";
    case Errc::kNoSpace:
      return "no space";
    case Errc::kIo:
      return "I/O error";
    case Errc::kDataMismatch:
      return "data mismatch";
    case Errc::kBusy:
      return "busy";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kTimedOut:
      return "timed out";
    case Errc::kCancelled:
      return "cancelled";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kRefusedBySafety:
      return "refused by disk safety";
    case Errc::kCorrupt:
      return "corrupt";
    case Errc::kExhausted:
      return "limit reached";
    case Errc::kInternal:
      return "internal error";
  }
  return "unknown";
}

Errc ErrcFromErrno(int error_number) {
  switch (error_number) {
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
      return Errc::kInvalidArgument;
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return Errc::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return Errc::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::kNoSpace;
    case EBUSY:
    case ETXTBSY:
    case EAGAIN:
      return Errc::kBusy;
    case ENOSYS:
    case ENOTTY:
    case EOPNOTSUPP:
      return Errc::kUnsupported;
    case ETIMEDOUT:
      return Errc::kTimedOut;
    case ECANCELED:
    case EINTR:
      return Errc::kCancelled;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case EHOSTUNREACH:
      return Errc::kUnavailable;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Errc::kExhausted;
    default:
      return Errc::kIo;
  }
}

Error Error::FromErrno(int error_number, std::string_view call, std::string_view subject) {
  std::string note(call);
  note += ": ";
  char buffer[128];
  note += strerror_r(error_number, buffer, sizeof buffer);  // the GNU form returns the text
  Error error(ErrcFromErrno(error_number), std::string(subject), std::move(note));
  error.errno_ = error_number;
  return error;
}

std::string Error::ToString() const {
  std::string text;
  if (!subject_.empty()) text += subject_ + ": ";
  text += note_.empty() ? std::string(ErrcName(code_)) : note_;
  if (!note_.empty() && errno_ == 0) text += " (" + std::string(ErrcName(code_)) + ")";
  return text;
}

}  // namespace labrack
