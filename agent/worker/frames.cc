#include "agent/worker/frames.h"

#include <sys/socket.h>

namespace labrack::worker {
namespace {

constexpr std::size_t kHead = 4;

}  // namespace

Result<void> FrameSocket::Receive() {
  char chunk[16 << 10];
  while (incoming_.size() <= kFrameMax.size() + kHead) {
    const ssize_t got = recv(socket_.get(), chunk, sizeof(chunk), MSG_DONTWAIT);
    if (got > 0) {
      incoming_.append(chunk, static_cast<std::size_t>(got));
    } else if (got == 0) {
      return Fail(Errc::kUnavailable, "the other end has closed the connection");
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return FailErrno("recv", "control socket");
    }
  }
  return {};
}

Result<bool> FrameSocket::Next(google::protobuf::MessageLite& message) {
  if (incoming_.size() < kHead) return false;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kHead; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(incoming_[i])) << (8 * i);
  }
  if (length > kFrameMax.size()) {
    return Fail(Errc::kCorrupt, "control socket",
                "a frame of " + std::to_string(length) + " bytes; at most " +
                    std::to_string(kFrameMax.count()));
  }
  if (incoming_.size() < kHead + length) return false;
  const bool parsed = message.ParseFromArray(incoming_.data() + kHead, static_cast<int>(length));
  incoming_.erase(0, kHead + length);
  if (!parsed) return Fail(Errc::kCorrupt, "control socket", "a frame that is no message of ours");
  return true;
}

Result<void> FrameSocket::Send(const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  if (body.size() > kFrameMax.size() ||
      outgoing_.size() + body.size() + kHead > kWaitingMax.size()) {
    return Fail(Errc::kExhausted, "control socket", "the other end does not read");
  }
  for (std::size_t i = 0; i < kHead; ++i) {
    outgoing_.push_back(static_cast<char>((body.size() >> (8 * i)) & 0xff));
  }
  outgoing_ += body;
  return Flush();
}

Result<void> FrameSocket::Flush() {
  while (!outgoing_.empty()) {
    const ssize_t sent =
        send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      outgoing_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return FailErrno("send", "control socket");
    }
  }
  return {};
}

}  // namespace labrack::worker
