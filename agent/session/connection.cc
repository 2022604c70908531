#include "agent/session/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <utility>

#include <grpcpp/security/credentials.h>

#include "agent/worker/trial_files.h"

namespace labrack::session {
namespace {

constexpr int kMessageMax = 1 << 20;

grpc::ChannelArguments Settings() {
  grpc::ChannelArguments settings;
  // Only while a call is open, at less than the half of what the server allows (ENHANCE_YOUR_CALM
  // otherwise).
  settings.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  settings.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  settings.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  settings.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  settings.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  settings.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  settings.SetMaxReceiveMessageSize(kMessageMax);
  // Each attempt is a channel of its own: attempts are timed by ReconnectWindows, and new
  // certificates are read.
  settings.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  settings.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return settings;
}

Result<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const v1::AgentConfig& config) {
  if (!config.has_tls()) return grpc::InsecureChannelCredentials();
  constexpr std::size_t kPemMax = 1 << 20;
  grpc::SslCredentialsOptions options;
  const std::pair<const std::string&, std::string&> files[] = {
      {config.tls().ca(), options.pem_root_certs},
      {config.tls().key(), options.pem_private_key},
      {config.tls().certificate(), options.pem_cert_chain}};
  for (const auto& [path, text] : files) {
    Result<std::string> pem = worker::ReadFile(path, kPemMax);
    if (!pem) return std::unexpected(pem.error());
    text = *std::move(pem);
  }
  return grpc::SslCredentials(options);
}

TimePoint Now() { return MonotonicClock().Now(); }

}  // namespace

bool IsLoopback(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (address.starts_with("unix:")) return true;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  // By its value: 127.example.org is a name like any other.
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return host == "localhost";
}

Result<std::shared_ptr<Connection>> Connection::Start(const v1::AgentConfig& config,
                                                      std::uint64_t number, const v1::Hello& hello,
                                                      Inbox& inbox, ClockSync& clock) {
  Result<std::shared_ptr<grpc::ChannelCredentials>> credentials = MakeCredentials(config);
  if (!credentials) return std::unexpected(credentials.error());
  std::shared_ptr<Connection> connection(new Connection(number, inbox, clock));
  connection->channel_ = grpc::CreateCustomChannel(config.controller(), *credentials, Settings());
  connection->stub_ = v1::Fleet::NewStub(connection->channel_);
  v1::AgentMessage first;
  *first.mutable_hello() = hello;
  connection->current_ = std::move(first);
  connection->writing_since_ = Now();
  connection->stub_->async()->Session(&connection->context_, connection.get());
  connection->AddHold();
  connection->StartWrite(&connection->current_);
  connection->StartRead(&connection->incoming_);
  connection->StartCall();
  return connection;
}

bool Connection::Enter() {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  ++inside_;
  return true;
}

void Connection::Leave() {
  {
    const std::lock_guard lock(mutex_);
    --inside_;
    if (!ended_ || inside_ > 0 || hold_given_back_) return;
    hold_given_back_ = true;
  }
  RemoveHold();
}

bool Connection::Enqueue(v1::AgentMessage message, bool first) {
  if (!Enter()) return false;
  bool start = false;
  bool overflow = false;
  {
    const std::lock_guard lock(mutex_);
    overflow = outgoing_.size() >= kOutgoingMax;
    if (!overflow && !writing_since_) {
      current_ = std::move(message);
      writing_since_ = Now();
      start = true;
    } else if (!overflow) {
      first ? outgoing_.push_front(std::move(message)) : outgoing_.push_back(std::move(message));
    }
  }
  if (start) StartWrite(&current_);
  if (overflow) context_.TryCancel();
  Leave();
  return !overflow;
}

bool Connection::Send(v1::AgentMessage message) {
  return Enqueue(std::move(message), /*first=*/false);
}

bool Connection::SendHeartbeat(v1::Heartbeat heartbeat) {
  heartbeat.set_agent_send_mono_ns(Now().time_since_epoch().count());
  v1::AgentMessage message;
  *message.mutable_heartbeat() = std::move(heartbeat);
  return Enqueue(std::move(message), /*first=*/true);
}

void Connection::ResumeReading() {
  if (!Enter()) return;
  bool start = false;
  {
    const std::lock_guard lock(mutex_);
    start = std::exchange(reading_paused_, false);
  }
  if (start) StartRead(&incoming_);
  Leave();
}

void Connection::Cancel() {
  if (!Enter()) return;
  context_.TryCancel();
  Leave();
}

void Connection::CheckWrite(TimePoint now) {
  bool hangs = false;
  {
    const std::lock_guard lock(mutex_);
    hangs = writing_since_ && now - *writing_since_ > kWriteMax;
  }
  if (hangs) Cancel();
}

void Connection::OnReadDone(bool ok) {
  const TimePoint received = Now();
  if (!ok) {
    bool give_back = false;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      outgoing_.clear();
      give_back = inside_ == 0 && !std::exchange(hold_given_back_, inside_ == 0);
    }
    if (give_back) RemoveHold();
    return;
  }
  if (incoming_.has_heartbeat_ack()) {
    const v1::HeartbeatAck& ack = incoming_.heartbeat_ack();
    clock_.Add({.sent = TimePoint(Nanoseconds(ack.agent_send_mono_ns())),
                .controller_received = Nanoseconds(ack.controller_receive_mono_ns()),
                .controller_sent = Nanoseconds(ack.controller_send_mono_ns()),
                .received = received});
    StartRead(&incoming_);
    return;
  }
  InboxItem item;
  item.connection = number_;
  item.message.Swap(&incoming_);
  {
    // Before the push: the loop may resume at once.
    const std::lock_guard lock(mutex_);
    reading_paused_ = true;
  }
  if (!inbox_.Push(std::move(item))) return;
  bool start = false;
  {
    const std::lock_guard lock(mutex_);
    start = std::exchange(reading_paused_, false);
  }
  if (start) StartRead(&incoming_);
}

void Connection::OnWriteDone(bool ok) {
  bool start = false;
  {
    const std::lock_guard lock(mutex_);
    writing_since_.reset();
    if (ok && !ended_ && !outgoing_.empty()) {
      current_ = std::move(outgoing_.front());
      outgoing_.pop_front();
      writing_since_ = Now();
      start = true;
    }
  }
  if (start) StartWrite(&current_);
}

void Connection::OnDone(const grpc::Status& status) {
  InboxItem item;
  item.connection = number_;
  item.closed = true;
  item.reason = status.ok() ? "the controller ended the session" : status.error_message();
  item.not_served = status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
  if (item.reason.empty()) item.reason = "status " + std::to_string(status.error_code());
  inbox_.Push(std::move(item));
  // The last thing: the owner may destroy it from now on.
  done_ = true;
}

}  // namespace labrack::session
