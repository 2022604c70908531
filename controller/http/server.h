// The controller's http port, for Prometheus and for scripts. GET only, nothing can be changed
// through it, loopback only (the library predates fixes for several CVEs).
//
//   /metrics           Prometheus text format 0.0.4
//   /healthz           200 "ok", or 503 with the reason
//   /sd                http_sd: where the agents' and this exporter are
//   /api/v1/runs       the newest runs, as ListRunsReply in JSON
//   /api/v1/runs/ID    one run without results, as RunRecord in JSON
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "storage/base/result.h"

namespace httplib {
class Server;
}

namespace labrack::http {

// Where answers come from. Called on http threads; they may block for a while.
struct Routes {
  std::function<Result<std::string>()> metrics;
  std::function<Result<void>()> health;
  std::function<Result<std::string>()> targets;
  std::function<Result<std::string>()> runs;
  std::function<Result<std::string>(const std::string& id)> run;
};

class Server {
 public:
  // Port 0 takes any free one.
  static Result<std::unique_ptr<Server>> Start(const std::string& host, std::uint16_t port,
                                               Routes routes);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  Server(std::unique_ptr<httplib::Server> server, std::uint16_t port);

  std::unique_ptr<httplib::Server> server_;
  std::uint16_t port_;
  std::thread thread_;
};

}  // namespace labrack::http
