// Frames on the control socket: u32 length (little-endian), then one serialised message.
// FrameSocket is one end of a connection; it never blocks and keeps at most kWaitingMax bytes that
// the peer has not taken yet.
#pragma once

#include <cstdint>
#include <string>

#include <google/protobuf/message_lite.h>

#include "storage/base/bytes.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::worker {

constexpr Bytes kFrameMax = 1_MiB;
constexpr Bytes kWaitingMax = 4_MiB;

class FrameSocket {
 public:
  explicit FrameSocket(Descriptor socket) : socket_(std::move(socket)) {}  // not blocking

  int fd() const { return socket_.get(); }
  bool wants_to_write() const { return !outgoing_.empty(); }

  // Takes what has arrived. kUnavailable: the peer has gone; frames received before are still
  // there.
  Result<void> Receive();
  // The next whole frame into `message`; false: there is none. kCorrupt: not a peer of ours.
  Result<bool> Next(google::protobuf::MessageLite& message);
  // Queues a frame and sends what can be sent. kExhausted: the peer does not read.
  Result<void> Send(const google::protobuf::MessageLite& message);
  Result<void> Flush();

 private:
  Descriptor socket_;
  std::string incoming_;
  std::string outgoing_;
};

}  // namespace labrack::worker
