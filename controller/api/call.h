// A unary call that is answered later, from any thread. Whoever holds it owes the answer; one that
// is dropped (a full queue, a controller that stops) answers UNAVAILABLE by itself.
#pragma once

#include <utility>

#include <grpcpp/grpcpp.h>

#include "proto/convert/convert.h"
#include "storage/base/result.h"

namespace labrack::api {

template <typename Reply>
class Call {
 public:
  Call(grpc::ServerUnaryReactor* reactor, Reply* reply) : reactor_(reactor), reply_(reply) {}
  ~Call() {
    if (reactor_ != nullptr) {
      reactor_->Finish({grpc::StatusCode::UNAVAILABLE, "the controller is stopping or too busy"});
    }
  }
  Call(Call&& other) noexcept
      : reactor_(std::exchange(other.reactor_, nullptr)), reply_(other.reply_) {}
  Call& operator=(Call&&) = delete;

  Reply& reply() { return *reply_; }
  void Done() { std::exchange(reactor_, nullptr)->Finish(grpc::Status::OK); }
  void Done(Reply reply) {
    *reply_ = std::move(reply);
    Done();
  }
  void Fail(const Error& error) {
    std::exchange(reactor_, nullptr)->Finish(convert::ToStatus(error));
  }

 private:
  grpc::ServerUnaryReactor* reactor_;
  Reply* reply_;
};

}  // namespace labrack::api
