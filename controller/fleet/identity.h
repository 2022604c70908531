// Who may attach. On loopback the agents' port may be plain; on any other address it runs only with
// certificates on both sides, and an agent is who its certificate says:
//   URI in the subject's alternative names: labrack://LAB/agent/AGENT-ID   (exactly one such)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>

#include "labrack/v1/config.pb.h"
#include "storage/base/result.h"

namespace labrack::fleet {

// "HOST:PORT", "[V6]:PORT". Errors say what would be right.
struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;

  bool loopback() const;
  std::string text() const;  // as gRPC takes it
};
Result<ListenAddress> ParseListenAddress(std::string_view text, std::string_view field);

// Where something of an agent can be reached from here that listens on `listens_on` there. `peer`:
// gRPC's name of the other end of its session, or empty. Nothing when it is loopback of another
// machine, or any address of one that is not known.
std::optional<std::string> ReachableAddress(std::string_view listens_on, std::string_view peer,
                                            bool same_machine);

// Credentials of the agents' port. Errors: kPermissionDenied for an address off loopback without
// tls; kInvalidArgument, about tls.FIELD, for files that cannot be read or hold no certificate.
Result<std::shared_ptr<grpc::ServerCredentials>> AgentsCredentials(
    const v1::ControllerConfig& config, const ListenAddress& address);

// The agent that the peer's URIs name. Errors: kPermissionDenied for none or several.
Result<std::string> AgentOfUris(const std::vector<std::string>& uris);
Result<std::string> AgentOfPeer(const grpc::AuthContext& context);

}  // namespace labrack::fleet
