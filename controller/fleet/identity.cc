#include "controller/fleet/identity.h"

#include <arpa/inet.h>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "controller/fleet/roster.h"

namespace labrack::fleet {
namespace {

constexpr std::string_view kScheme = "labrack://";
constexpr std::string_view kAgentPart = "/agent/";
constexpr std::size_t kPemMax = 1 << 20;

// Whatever is wrong with a file is wrong in the configuration.
Result<std::string> ReadPem(const std::string& field, const std::string& file,
                            const std::string& what) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const std::string why = std::generic_category().message(errno);
    return Fail(Errc::kInvalidArgument, field,
                file.empty() ? "name the file of the " + what : "open " + file + ": " + why);
  }
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (text.find("-----BEGIN ") == std::string::npos || text.size() > kPemMax) {
    return Fail(Errc::kInvalidArgument, field, file + " is no " + what + " in PEM form");
  }
  return text;
}

// gRPC writes peers as "ipv4:10.0.0.7:41234" and "ipv6:%5Bfe80::1%5D:41234".
std::optional<ListenAddress> AddressOfPeer(std::string_view peer) {
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return std::nullopt;
  std::string text(peer.substr(5));
  for (const auto& [escape, sign] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    const std::size_t at = text.find(escape);
    if (at != std::string::npos) text.replace(at, 3, sign);
  }
  Result<ListenAddress> address = ParseListenAddress(text, "peer");
  if (!address) return std::nullopt;
  return *std::move(address);
}

}  // namespace

bool ListenAddress::loopback() const {
  if (host == "localhost" || host == "::1") return true;
  in_addr v4{};
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

std::string ListenAddress::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<ListenAddress> ParseListenAddress(std::string_view text, std::string_view field) {
  const auto wrong = [&] {
    return Fail(Errc::kInvalidArgument, std::string(field),
                "`" + std::string(text) + "` is no address; write HOST:PORT as 127.0.0.1:7481");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  ListenAddress address;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  address.host = std::string(host);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (address.host.empty() || port.empty() || error != std::errc{} ||
      end != port.data() + port.size()) {
    return wrong();
  }
  return address;
}

std::optional<std::string> ReachableAddress(std::string_view listens_on, std::string_view peer,
                                            bool same_machine) {
  Result<ListenAddress> address = ParseListenAddress(listens_on, "metrics_listen");
  if (!address) return std::nullopt;
  const std::optional<ListenAddress> from = AddressOfPeer(peer);
  const bool here = same_machine || (from && from->loopback());
  if (address->host == "0.0.0.0" || address->host == "::") {
    if (!from && !here) return std::nullopt;
    address->host = here ? "127.0.0.1" : from->host;
  } else if (address->loopback() && !here) {
    return std::nullopt;
  }
  return address->text();
}

Result<std::shared_ptr<grpc::ServerCredentials>> AgentsCredentials(
    const v1::ControllerConfig& config, const ListenAddress& address) {
  if (!config.has_tls()) {
    if (address.loopback()) return grpc::InsecureServerCredentials();
    return Fail(Errc::kPermissionDenied, "agents_listen",
                "on " + address.text() +
                    " anybody could attach; off loopback the agents' port needs certificates on "
                    "both sides: set tls.ca, tls.certificate and tls.key, or listen on 127.0.0.1");
  }
  Result<std::string> ca = ReadPem("tls.ca", config.tls().ca(), "certificate");
  if (!ca) return std::unexpected(ca.error());
  Result<std::string> certificate =
      ReadPem("tls.certificate", config.tls().certificate(), "certificate");
  if (!certificate) return std::unexpected(certificate.error());
  Result<std::string> key = ReadPem("tls.key", config.tls().key(), "private key");
  if (!key) return std::unexpected(key.error());
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = *std::move(ca);
  options.pem_key_cert_pairs.push_back({*std::move(key), *std::move(certificate)});
  return grpc::SslServerCredentials(options);
}

Result<std::string> AgentOfUris(const std::vector<std::string>& uris) {
  std::optional<std::string> agent;
  for (const std::string& uri : uris) {
    if (!uri.starts_with(kScheme)) continue;
    const std::size_t part = uri.find(kAgentPart, kScheme.size());
    const bool lab_named = part != std::string::npos && part > kScheme.size();
    const std::string id = lab_named ? uri.substr(part + kAgentPart.size()) : "";
    if (agent || !IsAgentId(id)) {
      return Fail(Errc::kPermissionDenied, uri,
                  "the certificate must name exactly one agent, as labrack://LAB/agent/ID");
    }
    agent = id;
  }
  if (agent) return *agent;
  return Fail(Errc::kPermissionDenied,
              "the certificate names no agent; its alternative names need a URI "
              "labrack://LAB/agent/ID");
}

Result<std::string> AgentOfPeer(const grpc::AuthContext& context) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& value : context.FindPropertyValues("peer_uri")) {
    uris.emplace_back(value.data(), value.size());
  }
  return AgentOfUris(uris);
}

}  // namespace labrack::fleet
