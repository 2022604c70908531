#include "tests/e2e/test_controller.h"

#include <cstdlib>
#include <utility>

namespace labrack::e2e {

const v1::AssignmentResult* TestController::Heard::result() const {
  for (const auto& [seq, record] : events) {
    if (record.has_result()) return &record.result();
  }
  return nullptr;
}

const v1::CommandAck* TestController::Heard::AckOf(const std::string& command_id) const {
  for (const v1::CommandAck& ack : acks) {
    if (ack.command_id() == command_id) return &ack;
  }
  return nullptr;
}

bool TestController::Heard::HasBegun(v1::PhaseKind phase) const {
  for (const auto& [seq, record] : events) {
    if (record.body_case() == v1::EventRecord::kPhaseBegun && record.phase_begun() == phase)
      return true;
  }
  return false;
}

TestController::TestController(std::shared_ptr<grpc::ServerCredentials> credentials)
    : credentials_(std::move(credentials)), address_("127.0.0.1:0") {
  Start();
}

TestController::~TestController() { Stop(); }

void TestController::Start() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address_, credentials_, &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) std::abort();
  address_ = "127.0.0.1:" + std::to_string(port);
}

void TestController::Stop() {
  if (server_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

std::int64_t TestController::ClockNow() const {
  return (MonotonicClock().Now().time_since_epoch() + clock_offset_).count();
}

void TestController::SendLocked(const v1::ControllerMessage& message) {
  if (stream_ != nullptr) stream_->Write(message);
}

void TestController::Send(const v1::ControllerMessage& message) {
  const std::lock_guard lock(mutex_);
  SendLocked(message);
}

void TestController::SendAssign(const v1::AssignmentSpec& spec, const std::string& command_id) {
  v1::ControllerMessage message;
  message.mutable_assign()->set_command_id(command_id);
  *message.mutable_assign()->mutable_spec() = spec;
  Send(message);
}

void TestController::SendWant(const v1::AssignmentSpec& spec, v1::WantKind want,
                              const std::string& reason) {
  v1::ControllerMessage message;
  message.mutable_want()->set_command_id("want-" + reason);
  message.mutable_want()->set_assignment_id(spec.assignment_id());
  message.mutable_want()->set_epoch(spec.epoch());
  message.mutable_want()->set_want(want);
  message.mutable_want()->set_reason(reason);
  Send(message);
}

void TestController::set_refusal(grpc::Status status) {
  const std::lock_guard lock(mutex_);
  refusal_ = std::move(status);
}

void TestController::set_protocol(std::uint32_t protocol) {
  const std::lock_guard lock(mutex_);
  protocol_ = protocol;
}

void TestController::set_acknowledge(bool acknowledge) {
  const std::lock_guard lock(mutex_);
  acknowledge_ = acknowledge;
}

bool TestController::WaitFor(const std::function<bool(const Heard&)>& holds, Nanoseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [&] { return holds(heard_); });
}

TestController::Heard TestController::heard() {
  const std::lock_guard lock(mutex_);
  return heard_;
}

void TestController::ForgetEvents() {
  const std::lock_guard lock(mutex_);
  heard_.events.clear();
}

grpc::Status TestController::Session(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ControllerMessage, v1::AgentMessage>* stream) {
  {
    const std::lock_guard lock(mutex_);
    stream_ = stream;
    context_ = context;
    for (const grpc::string_ref& uri : context->auth_context()->FindPropertyValues("peer_uri")) {
      heard_.peer_uris.emplace_back(uri.data(), uri.size());
    }
  }
  v1::AgentMessage message;
  while (stream->Read(&message)) {
    const std::lock_guard lock(mutex_);
    if (!refusal_.ok()) {
      heard_.hellos.push_back(message.hello());
      changed_.notify_all();
      stream_ = nullptr;
      context_ = nullptr;
      return refusal_;
    }
    Take(message);
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  if (stream_ == stream) {
    stream_ = nullptr;
    context_ = nullptr;
  }
  return grpc::Status::OK;
}

void TestController::Take(const v1::AgentMessage& message) {
  v1::ControllerMessage answer;
  switch (message.body_case()) {
    case v1::AgentMessage::kHello: {
      heard_.hellos.push_back(message.hello());
      v1::Welcome& welcome = *answer.mutable_welcome();
      welcome.set_session_id("s");
      welcome.set_protocol(protocol_);
      welcome.set_version("9.9");
      welcome.set_controller_epoch(epoch_);
      welcome.set_heartbeat_ns(Nanoseconds(std::chrono::milliseconds(200)).count());
      welcome.set_reconnect_window_ns(Nanoseconds(std::chrono::milliseconds(100)).count());
      for (const v1::HeldAssignment& held : message.hello().held()) {
        v1::EventAck& ack = *welcome.add_acks();
        ack.set_assignment_id(held.assignment_id());
        ack.set_epoch(held.epoch());
        ack.set_through_seq(durable_[held.assignment_id()]);
      }
      SendLocked(answer);
      return;
    }
    case v1::AgentMessage::kHeartbeat:
      ++heard_.heartbeats;
      heard_.heartbeat = message.heartbeat();
      answer.mutable_heartbeat_ack()->set_agent_send_mono_ns(
          message.heartbeat().agent_send_mono_ns());
      answer.mutable_heartbeat_ack()->set_controller_receive_mono_ns(ClockNow());
      answer.mutable_heartbeat_ack()->set_controller_send_mono_ns(ClockNow());
      SendLocked(answer);
      return;
    case v1::AgentMessage::kCommandAck:
      heard_.acks.push_back(message.command_ack());
      return;
    case v1::AgentMessage::kGateReady:
      heard_.gates.push_back(message.gate_ready());
      return;
    case v1::AgentMessage::kGoodbye:
      ++heard_.goodbyes;
      return;
    case v1::AgentMessage::kEvents:
      TakeEvents(message.events());
      return;
    case v1::AgentMessage::kInventory:
    case v1::AgentMessage::BODY_NOT_SET:
      return;
  }
}

void TestController::TakeEvents(const v1::Events& events) {
  std::uint64_t last = 0;
  for (const v1::EventRecord& record : events.records()) {
    const auto [place, is_new] = heard_.events.emplace(record.seq(), record);
    if (!is_new) {
      ++heard_.repeated;
      if (place->second.SerializeAsString() != record.SerializeAsString()) {
        heard_.conflicts.push_back(std::to_string(record.seq()));
      }
    }
    last = record.seq();
  }
  if (!acknowledge_) return;
  durable_[events.assignment_id()] = last;
  v1::ControllerMessage answer;
  answer.mutable_event_ack()->set_assignment_id(events.assignment_id());
  answer.mutable_event_ack()->set_epoch(events.epoch());
  answer.mutable_event_ack()->set_through_seq(last);
  SendLocked(answer);
}

}  // namespace labrack::e2e
