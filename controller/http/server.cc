#include "controller/http/server.h"

#include <sys/socket.h>
#include <utility>

#include <httplib.h>

namespace labrack::http {
namespace {

constexpr std::size_t kThreads = 4;
constexpr time_t kReadSeconds = 5;
constexpr time_t kKeepAliveSeconds = 2;
constexpr std::size_t kRequestMax = 64 << 10;

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kExposition = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kJson = "application/json";

int StatusOf(Errc code) {
  switch (code) {
    case Errc::kNotFound:
      return 404;
    case Errc::kInvalidArgument:
      return 400;
    case Errc::kTimedOut:
    case Errc::kUnavailable:
    case Errc::kExhausted:
    case Errc::kBusy:
      return 503;
    case Errc::kAlreadyExists:
    case Errc::kPermissionDenied:
    case Errc::kNoSpace:
    case Errc::kIo:
    case Errc::kDataMismatch:
    case Errc::kUnsupported:
    case Errc::kCancelled:
    case Errc::kRefusedBySafety:
    case Errc::kCorrupt:
    case Errc::kInternal:
      return 500;
  }
  return 500;
}

void Answer(httplib::Response& response, const Result<std::string>& body, const char* type) {
  if (body) {
    response.set_content(*body, type);
    return;
  }
  response.status = StatusOf(body.error().code());
  response.set_content(body.error().ToString() + "\n", kText);
}

void AddRoutes(httplib::Server& server, Routes routes) {
  auto shared = std::make_shared<const Routes>(std::move(routes));  // by all handlers
  server.Get("/metrics", [shared](const httplib::Request&, httplib::Response& response) {
    Answer(response, shared->metrics(), kExposition);
  });
  server.Get("/healthz", [shared](const httplib::Request&, httplib::Response& response) {
    Result<void> health = shared->health();
    response.status = health ? 200 : 503;
    response.set_content(health ? "ok\n" : health.error().ToString() + "\n", kText);
  });
  server.Get("/sd", [shared](const httplib::Request&, httplib::Response& response) {
    Answer(response, shared->targets(), kJson);
  });
  server.Get("/api/v1/runs", [shared](const httplib::Request&, httplib::Response& response) {
    Answer(response, shared->runs(), kJson);
  });
  server.Get(R"(/api/v1/runs/([A-Za-z0-9._-]{1,64}))",
             [shared](const httplib::Request& request, httplib::Response& response) {
               Answer(response, shared->run(request.matches[1]), kJson);
             });
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const std::string& host, std::uint16_t port,
                                              Routes routes) {
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // The library's default shares the port with whoever asks (SO_REUSEPORT).
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server->set_read_timeout(kReadSeconds);
  server->set_write_timeout(kReadSeconds);
  server->set_keep_alive_timeout(kKeepAliveSeconds);
  server->set_payload_max_length(kRequestMax);
  AddRoutes(*server, std::move(routes));
  const int bound = port == 0 ? server->bind_to_any_port(host)
                              : (server->bind_to_port(host, port) ? static_cast<int>(port) : -1);
  if (bound <= 0) {
    return Fail(Errc::kBusy, "http_listen",
                "cannot listen on " + host + ":" + std::to_string(port) +
                    "; is another controller running?");
  }
  return std::unique_ptr<Server>(new Server(std::move(server), static_cast<std::uint16_t>(bound)));
}

Server::Server(std::unique_ptr<httplib::Server> server, std::uint16_t port)
    : server_(std::move(server)), port_(port), thread_([this] { server_->listen_after_bind(); }) {
  // stop() has no effect before the loop runs.
  while (!server_->is_running()) std::this_thread::yield();
}

Server::~Server() {
  server_->stop();
  thread_.join();
}

}  // namespace labrack::http
