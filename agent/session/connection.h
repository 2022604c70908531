// Connection: one session stream to the controller, on gRPC's callback API. Its callbacks answer
// clock probes and push everything else to the inbox; nothing in them waits.
//
// Bounds: kOutgoingMax messages wait to be sent (more: the connection is dropped, state is sent
// anew on the next one); a write that takes longer than kWriteMax is taken for a dead peer (a proxy
// in between may hold it for minutes).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "agent/session/clock_sync.h"
#include "agent/session/inbox.h"
#include "labrack/v1/config.pb.h"
#include "labrack/v1/fleet.grpc.pb.h"
#include "storage/base/result.h"

namespace labrack::session {

class Connection final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ControllerMessage> {
 public:
  static constexpr std::size_t kOutgoingMax = 256;
  static constexpr Nanoseconds kWriteMax = std::chrono::seconds(20);

  // `inbox` and `clock` outlive the connection. gRPC refers to it until IsDone(): it must be kept
  // until then (shared with the heart alone). Errors: certificates that cannot be read.
  static Result<std::shared_ptr<Connection>> Start(const v1::AgentConfig& config,
                                                   std::uint64_t number, const v1::Hello& hello,
                                                   Inbox& inbox, ClockSync& clock);

  std::uint64_t number() const { return number_; }
  // False: the connection is over, or its peer does not read.
  bool Send(v1::AgentMessage message);
  // A heartbeat goes before everything that waits; its time of sending is filled in.
  bool SendHeartbeat(v1::Heartbeat heartbeat);
  // The inbox has room again.
  void ResumeReading();
  void Cancel();
  // Cancels when a write hangs.
  void CheckWrite(TimePoint now);
  // gRPC refers to it no longer.
  bool IsDone() const { return done_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  Connection(std::uint64_t number, Inbox& inbox, ClockSync& clock)
      : number_(number), inbox_(inbox), clock_(clock) {}
  bool Enqueue(v1::AgentMessage message, bool first);
  // Starting operations from outside of callbacks needs the hold that is given back when the stream
  // has ended: it is kept while somebody is inside.
  bool Enter();
  void Leave();

  const std::uint64_t number_;
  Inbox& inbox_;
  ClockSync& clock_;
  grpc::ClientContext context_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
  std::atomic<bool> done_ = false;

  v1::ControllerMessage incoming_;
  v1::AgentMessage current_;  // being written

  std::mutex mutex_;  // guards all below; never held while gRPC is called
  std::deque<v1::AgentMessage> outgoing_;
  std::optional<TimePoint> writing_since_;
  bool reading_paused_ = false;
  bool ended_ = false;  // no operation is started any more
  bool hold_given_back_ = false;
  int inside_ = 0;
};

// Whether the address is one of this machine's own, where no certificates are needed.
bool IsLoopback(const std::string& address);

}  // namespace labrack::session
