// A controller of a few lines that speaks the protocol: it answers heartbeats, keeps every event,
// and says what a test tells it to. One agent at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "labrack/v1/fleet.grpc.pb.h"
#include "storage/base/clock.h"

namespace labrack::e2e {

class TestController final : public v1::Fleet::Service {
 public:
  // Listens on a free port of 127.0.0.1.
  explicit TestController(
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials());
  ~TestController() override;

  const std::string& address() const { return address_; }
  // Ends all sessions at once, as a crash would; the port stays reserved for Start.
  void Stop();
  void Start();

  void Send(const v1::ControllerMessage& message);
  void SendAssign(const v1::AssignmentSpec& spec, const std::string& command_id);
  void SendWant(const v1::AssignmentSpec& spec, v1::WantKind want, const std::string& reason);
  // From the next session on: refuses with this, or answers in that protocol.
  void set_refusal(grpc::Status status);
  void set_protocol(std::uint32_t protocol);
  // Acknowledges what comes, or not.
  void set_acknowledge(bool acknowledge);
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  // Of a controller on another machine; while it is stopped.
  void set_clock_offset(Nanoseconds offset) { clock_offset_ = offset; }
  std::int64_t ClockNow() const;  // ahead of the host's by the offset
  static constexpr Nanoseconds kClockOffset = std::chrono::seconds(12'345);

  // What was heard; with the lock held inside `holds`.
  struct Heard {
    std::vector<v1::Hello> hellos;
    std::vector<v1::CommandAck> acks;
    std::vector<v1::GateReady> gates;
    std::map<std::uint64_t, v1::EventRecord> events;  // by seq, of the newest epoch heard
    std::vector<std::string> conflicts;               // a record that came again, and differs
    std::uint64_t repeated = 0;
    std::uint64_t heartbeats = 0;
    v1::Heartbeat heartbeat;
    std::uint64_t goodbyes = 0;
    std::vector<std::string> peer_uris;  // of the certificates of those who came

    const v1::AssignmentResult* result() const;
    const v1::CommandAck* AckOf(const std::string& command_id) const;
    bool HasBegun(v1::PhaseKind phase) const;
  };
  bool WaitFor(const std::function<bool(const Heard&)>& holds,
               Nanoseconds longest = std::chrono::seconds(30));
  Heard heard();
  void ForgetEvents();

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ControllerMessage, v1::AgentMessage>* stream) override;

 private:
  void Take(const v1::AgentMessage& message);
  void TakeEvents(const v1::Events& events);
  void SendLocked(const v1::ControllerMessage& message);

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  Heard heard_;
  bool acknowledge_ = true;
  grpc::Status refusal_;
  std::uint32_t protocol_ = v1::PROTOCOL_VERSION_NEWEST;
  std::uint64_t epoch_ = 1;
  Nanoseconds clock_offset_ = kClockOffset;
  std::map<std::string, std::uint64_t> durable_;  // by assignment
  grpc::ServerReaderWriter<v1::ControllerMessage, v1::AgentMessage>* stream_ = nullptr;
  grpc::ServerContext* context_ = nullptr;

  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace labrack::e2e
