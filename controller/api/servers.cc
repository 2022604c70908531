#include "controller/api/servers.h"

#include <utility>

#include <grpcpp/resource_quota.h>

#include "storage/base/session_limits.h"

namespace labrack::api {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr milliseconds kKeepalive = std::chrono::seconds(60);  // the default is 2 h
constexpr milliseconds kKeepaliveAnswer = std::chrono::seconds(20);
// Agents ping every 30 s, sometimes a little early; the default would call that abuse.
constexpr milliseconds kPingMin = std::chrono::seconds(10);
constexpr int kPingStrikesMax = 5;
constexpr milliseconds kHandshake = std::chrono::seconds(10);  // the default is 120 s
// Certificates are looked at when a connection begins, so connections do not live for ever.
constexpr milliseconds kConnectionAge = std::chrono::hours(24);
constexpr milliseconds kConnectionGrace = std::chrono::seconds(60);
constexpr int kLookahead = 64 << 10;          // bounds what is buffered per stream
constexpr int kControlMessageMax = 64 << 20;  // a playbook with its attachments
constexpr std::size_t kMemoryMax = 512 << 20;

int Milliseconds(milliseconds time) { return static_cast<int>(time.count()); }

void Common(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kKeepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveAnswer));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(kPingMin));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kPingStrikesMax);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(kHandshake));
  builder.SetMaxSendMessageSize(-1);
}

Result<StartedServer> Start(grpc::ServerBuilder& builder, grpc::Service* service,
                            fleet::ListenAddress address,
                            std::shared_ptr<grpc::ServerCredentials> credentials,
                            const char* field) {
  int port = 0;
  builder.AddListeningPort(address.text(), std::move(credentials), &port);
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return Fail(Errc::kBusy, field,
                "cannot listen on " + address.text() +
                    "; is another controller running, are the certificates and the key right?");
  }
  address.port = static_cast<std::uint16_t>(port);
  return StartedServer{.server = std::move(server), .address = std::move(address)};
}

}  // namespace

Result<StartedServer> StartAgentsServer(grpc::Service* service, const fleet::ListenAddress& address,
                                        std::shared_ptr<grpc::ServerCredentials> credentials) {
  grpc::ServerBuilder builder;
  Common(builder);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(kConnectionAge));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(kConnectionGrace));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookahead);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kAgentMessageMax.count()));
  grpc::ResourceQuota quota("agents");
  quota.Resize(kMemoryMax);
  builder.SetResourceQuota(quota);
  return Start(builder, service, address, std::move(credentials), "agents_listen");
}

Result<StartedServer> StartControlServer(grpc::Service* service,
                                         const fleet::ListenAddress& address) {
  grpc::ServerBuilder builder;
  Common(builder);
  builder.SetMaxReceiveMessageSize(kControlMessageMax);
  return Start(builder, service, address, grpc::InsecureServerCredentials(), "control_listen");
}

}  // namespace labrack::api
