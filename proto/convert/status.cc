// Apart from convert.cc, so that a program that only converts results (labrack-worker) needs no
// gRPC.
#include <cstdlib>
#include <string>

#include "proto/convert/convert.h"

namespace labrack::convert {

namespace {

grpc::StatusCode StatusCodeOf(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case Errc::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case Errc::kAlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case Errc::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case Errc::kNoSpace:
    case Errc::kExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Errc::kIo:
    case Errc::kDataMismatch:
    case Errc::kCorrupt:
      return grpc::StatusCode::DATA_LOSS;
    case Errc::kBusy:
    case Errc::kRefusedBySafety:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case Errc::kUnsupported:
      return grpc::StatusCode::UNIMPLEMENTED;
    case Errc::kTimedOut:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case Errc::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case Errc::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case Errc::kInternal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::UNKNOWN;
}

Errc ErrcOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return Errc::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return Errc::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return Errc::kAlreadyExists;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return Errc::kPermissionDenied;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Errc::kExhausted;
    case grpc::StatusCode::DATA_LOSS:
      return Errc::kCorrupt;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return Errc::kBusy;
    case grpc::StatusCode::UNIMPLEMENTED:
      return Errc::kUnsupported;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Errc::kTimedOut;
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
      return Errc::kCancelled;
    case grpc::StatusCode::UNAVAILABLE:
      return Errc::kUnavailable;
    case grpc::StatusCode::OK:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::DO_NOT_USE:
      return Errc::kInternal;
  }
  return Errc::kInternal;
}

}  // namespace

// The number of the Errc travels in the details field, since several share a status code.
grpc::Status ToStatus(const Error& error) {
  return grpc::Status(StatusCodeOf(error.code()), error.ToString(),
                      "errc=" + std::to_string(static_cast<int>(error.code())));
}

Error FromStatus(const grpc::Status& status) {
  Errc code = ErrcOf(status.error_code());
  const std::string details = status.error_details();
  if (details.starts_with("errc=")) {
    const int number = std::atoi(details.c_str() + 5);
    if (number >= 0 && number <= static_cast<int>(Errc::kInternal))
      code = static_cast<Errc>(number);
  }
  // Error::ToString says the code again.
  std::string note = status.error_message();
  const std::string code_words = " (" + std::string(ErrcName(code)) + ")";
  if (note.ends_with(code_words)) note.resize(note.size() - code_words.size());
  return Error(code, std::move(note));
}

}  // namespace labrack::convert
