#include "controller/fleet/session.h"

#include <utility>

#include "controller/fleet/identity.h"
#include "proto/convert/convert.h"

namespace labrack::fleet {
namespace {

// A stream that is refused before it began.
class Refusal final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ControllerMessage> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }  // gRPC owns reactors until here
};

}  // namespace

grpc::ServerBidiReactor<v1::AgentMessage, v1::ControllerMessage>* FleetService::Session(
    grpc::CallbackServerContext* context) {
  std::optional<std::string> certified;
  if (certificates_required_) {
    Result<std::string> agent = AgentOfPeer(*context->auth_context());
    if (!agent) return new Refusal(convert::ToStatus(agent.error()));
    certified = *std::move(agent);
  }
  return fleet::Session::Start(next_id_.fetch_add(1), context, std::move(certified), sink_).get();
}

std::shared_ptr<Session> Session::Start(std::uint64_t id, grpc::CallbackServerContext* context,
                                        std::optional<std::string> certified_agent,
                                        SessionSink* sink) {
  std::shared_ptr<Session> session(new Session(id, context, std::move(certified_agent), sink));
  session->self_ = session;
  if (!sink->OnOpened(session)) {
    session->Close({grpc::StatusCode::RESOURCE_EXHAUSTED, "the controller is too busy"});
    return session;
  }
  std::lock_guard lock(session->mutex_);
  session->ReadNextLocked();
  return session;
}

Session::Session(std::uint64_t id, grpc::CallbackServerContext* context,
                 std::optional<std::string> certified_agent, SessionSink* sink)
    : id_(id),
      context_(context),
      certified_agent_(std::move(certified_agent)),
      sink_(sink),
      peer_(context->peer()),
      opened_at_(MonotonicClock().Now()) {}

void Session::ReadNextLocked() {
  if (reading_ || closing_ || unread_ >= kUnreadMax || unread_bytes_ >= kUnreadBytesMax) return;
  reading_ = true;
  StartRead(&incoming_);
}

void Session::OnReadDone(bool ok) {
  const TimePoint received = MonotonicClock().Now();
  v1::AgentMessage message;
  {
    std::lock_guard lock(mutex_);
    reading_ = false;
    if (!ok) {
      CloseLocked(grpc::Status::OK, /*flush=*/false);
      return;
    }
    message.Swap(&incoming_);
    if (closing_) return;
    if (!hello_seen_ || message.has_hello()) {
      if (grpc::Status wrong = CheckFirst(message); !wrong.ok()) {
        CloseLocked(wrong, /*flush=*/false);
        return;
      }
      hello_seen_ = true;
    }
    if (message.has_heartbeat() && welcomed_) AnswerHeartbeat(message.heartbeat(), received);
    ++unread_;
    unread_bytes_ += message.ByteSizeLong();
  }
  Hand(std::move(message));
}

void Session::Hand(v1::AgentMessage message) {
  if (!sink_->OnMessage(self_, std::move(message))) {
    Close({grpc::StatusCode::RESOURCE_EXHAUSTED, "the controller is too busy; come back later"});
    return;
  }
  std::lock_guard lock(mutex_);
  ReadNextLocked();
}

grpc::Status Session::CheckFirst(const v1::AgentMessage& message) const {
  if (!message.has_hello() || hello_seen_) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "a session begins with one Hello"};
  }
  if (certified_agent_ && *certified_agent_ != message.hello().agent_id()) {
    return {grpc::StatusCode::PERMISSION_DENIED, "the certificate is of agent `" +
                                                     *certified_agent_ + "`, Hello says `" +
                                                     message.hello().agent_id() + "`"};
  }
  return grpc::Status::OK;
}

void Session::AnswerHeartbeat(const v1::Heartbeat& heartbeat, TimePoint received) {
  v1::ControllerMessage answer;
  v1::HeartbeatAck* ack = answer.mutable_heartbeat_ack();
  ack->set_agent_send_mono_ns(heartbeat.agent_send_mono_ns());
  ack->set_controller_receive_mono_ns(received.time_since_epoch().count());
  ack->set_controller_send_mono_ns(MonotonicClock().Now().time_since_epoch().count());
  SendLocked(std::move(answer));
}

void Session::Consumed(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  --unread_;
  unread_bytes_ -= bytes;
  ReadNextLocked();
}

bool Session::Send(v1::ControllerMessage message) {
  std::lock_guard lock(mutex_);
  return SendLocked(std::move(message));
}

bool Session::SendLocked(v1::ControllerMessage message) {
  if (closing_) return false;
  if (message.has_welcome()) welcomed_ = true;
  const std::size_t bytes = message.ByteSizeLong();
  if (writes_.size() >= kWritesMax || (!writes_.empty() && write_bytes_ + bytes > kWriteBytesMax)) {
    // State is sent again when the agent comes back, so dropping loses nothing.
    CloseLocked({grpc::StatusCode::RESOURCE_EXHAUSTED, "the agent reads too slowly"},
                /*flush=*/false);
    return false;
  }
  write_bytes_ += bytes;
  writes_.push_back(std::move(message));
  WriteNextLocked();
  return true;
}

void Session::WriteNextLocked() {
  if (writing_ || finished_) return;
  if (!writes_.empty()) {
    writing_ = true;
    write_began_ = MonotonicClock().Now();
    StartWrite(&writes_.front());
  } else if (closing_) {
    finished_ = true;
    write_began_ = MonotonicClock().Now();
    Finish(final_status_);
  }
}

void Session::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  writing_ = false;
  write_bytes_ -= writes_.front().ByteSizeLong();
  writes_.pop_front();
  if (!ok) CloseLocked(grpc::Status::CANCELLED, /*flush=*/false);
  WriteNextLocked();
}

void Session::Close(grpc::Status status) {
  std::lock_guard lock(mutex_);
  CloseLocked(std::move(status), /*flush=*/true);
}

void Session::CloseLocked(grpc::Status status, bool flush) {
  if (!closing_) {
    closing_ = true;
    final_status_ = std::move(status);
  }
  if (!flush) {
    // The message that is being written must stay until OnWriteDone.
    while (writes_.size() > (writing_ ? 1U : 0U)) {
      write_bytes_ -= writes_.back().ByteSizeLong();
      writes_.pop_back();
    }
  }
  WriteNextLocked();
}

void Session::OnCancel() {
  std::lock_guard lock(mutex_);
  CloseLocked(grpc::Status::CANCELLED, /*flush=*/false);
}

bool Session::OverdueLocked(TimePoint now) const {
  if (!hello_seen_ && !closing_) return now - opened_at_ >= kHelloWithin;
  return (writing_ || finished_) && now - write_began_ >= kWriteStuck;
}

void Session::CheckTime(TimePoint now) {
  {
    std::lock_guard lock(mutex_);
    if (!OverdueLocked(now)) return;
  }
  std::lock_guard lock(cancel_mutex_);
  if (!done_) context_->TryCancel();
}

void Session::OnDone() {
  {
    std::lock_guard lock(cancel_mutex_);
    done_ = true;
  }
  sink_->OnClosed(id_);
  const std::shared_ptr<Session> last = std::move(self_);  // may delete this on the way out
}

}  // namespace labrack::fleet
