// The agents' port: one bidirectional stream per agent on gRPC's callback API. Nothing blocks in a
// callback: what arrives is handed to a SessionSink, which queues it. Only heartbeats are answered
// right here, since they are clock probes and must not wait for anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "labrack/v1/fleet.grpc.pb.h"
#include "storage/base/clock.h"

namespace labrack::fleet {

class Session;

// Called on gRPC's threads; must not block.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Before its first message. The receiver calls session->CheckTime() now and then until OnClosed.
  // False: too busy; the session is dropped.
  virtual bool OnOpened(const std::shared_ptr<Session>& session) = 0;
  // The first message is Hello, and there is no other. The receiver calls session->Consumed() once
  // it is done with the message. False: too busy; the session is dropped.
  virtual bool OnMessage(const std::shared_ptr<Session>& session, v1::AgentMessage message) = 0;
  virtual void OnClosed(std::uint64_t session_id) = 0;
};

class Session final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ControllerMessage> {
 public:
  static constexpr std::size_t kWritesMax = 256;          // messages that wait to be written
  static constexpr std::size_t kWriteBytesMax = 4 << 20;  // and their bytes
  static constexpr std::size_t kUnreadMax = 16;           // messages handed on, not consumed yet
  static constexpr std::size_t kUnreadBytesMax = 4 << 20;
  static constexpr Nanoseconds kWriteStuck = std::chrono::seconds(20);
  static constexpr Nanoseconds kHelloWithin = std::chrono::seconds(10);

  // `certified_agent`: who the certificate says this is; nothing without TLS.
  static std::shared_ptr<Session> Start(std::uint64_t id, grpc::CallbackServerContext* context,
                                        std::optional<std::string> certified_agent,
                                        SessionSink* sink);

  std::uint64_t id() const { return id_; }
  std::string peer() const { return peer_; }

  // Any thread. Messages are written in order; Welcome comes first. False when the session is
  // closing or the agent reads too slowly, in which case it is dropped.
  bool Send(v1::ControllerMessage message);
  // Writes what is queued, then ends the stream.
  void Close(grpc::Status status);
  void Consumed(std::size_t bytes);
  // Drops a session that has not said Hello in time, or whose write or end has been stuck for too
  // long: without that it would stay until gRPC's keepalive ends it.
  void CheckTime(TimePoint now);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  Session(std::uint64_t id, grpc::CallbackServerContext* context,
          std::optional<std::string> certified_agent, SessionSink* sink);

  grpc::Status CheckFirst(const v1::AgentMessage& message) const;
  void Hand(v1::AgentMessage message);
  void AnswerHeartbeat(const v1::Heartbeat& heartbeat, TimePoint received);
  bool SendLocked(v1::ControllerMessage message);
  void WriteNextLocked();
  void CloseLocked(grpc::Status status, bool flush);
  void ReadNextLocked();
  bool OverdueLocked(TimePoint now) const;

  const std::uint64_t id_;
  grpc::CallbackServerContext* const context_;
  const std::optional<std::string> certified_agent_;
  SessionSink* const sink_;
  const std::string peer_;
  std::shared_ptr<Session> self_;  // shared: gRPC holds the reactor until OnDone, the sink as well

  std::mutex mutex_;
  v1::AgentMessage incoming_;
  std::deque<v1::ControllerMessage> writes_;  // the front one is being written while writing_
  std::size_t write_bytes_ = 0;
  std::size_t unread_ = 0;
  std::size_t unread_bytes_ = 0;
  const TimePoint opened_at_;
  TimePoint write_began_{};  // or the end of the stream, once finished_
  bool writing_ = false;
  bool reading_ = false;
  bool hello_seen_ = false;
  bool welcomed_ = false;
  bool closing_ = false;
  bool finished_ = false;
  grpc::Status final_status_;

  std::mutex cancel_mutex_;  // orders TryCancel before OnDone; never taken under mutex_
  bool done_ = false;
};

class FleetService final : public v1::Fleet::CallbackService {
 public:
  FleetService(SessionSink* sink, bool certificates_required)
      : sink_(sink), certificates_required_(certificates_required) {}
  grpc::ServerBidiReactor<v1::AgentMessage, v1::ControllerMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  SessionSink* const sink_;
  const bool certificates_required_;
  std::atomic<std::uint64_t> next_id_{1};
};

}  // namespace labrack::fleet
