// gRPC servers with our settings (and why: table in servers.cc). Two servers, not one with two
// ports, since every service of a server answers on all of its ports.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "controller/fleet/identity.h"
#include "storage/base/result.h"

namespace labrack::api {

struct StartedServer {
  std::unique_ptr<grpc::Server> server;
  fleet::ListenAddress address;  // with the port really bound
};

// `field` names the address in the configuration, for errors.
Result<StartedServer> StartAgentsServer(grpc::Service* service, const fleet::ListenAddress& address,
                                        std::shared_ptr<grpc::ServerCredentials> credentials);
Result<StartedServer> StartControlServer(grpc::Service* service,
                                         const fleet::ListenAddress& address);

}  // namespace labrack::api
