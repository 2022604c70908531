#include "controller/api/controller.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include <spdlog/spdlog.h>

#include "controller/api/brain.h"
#include "controller/api/control_service.h"
#include "controller/api/http_routes.h"
#include "controller/api/jobs.h"
#include "controller/api/metrics.h"
#include "controller/api/servers.h"
#include "controller/catalog/catalog.h"
#include "controller/fleet/identity.h"
#include "controller/fleet/session.h"
#include "controller/http/server.h"
#include "proto/fields/fields.h"

namespace labrack::api {

// Members are destroyed from the last to the first: what answers goes before what it asks.
class Controller::Impl {
 public:
  Impl(const v1::ControllerConfig& config, OpenRuns open_runs)
      : config_(config), open_runs_(open_runs) {
    // An empty http_listen means none, so its default must not be filled in.
    const std::string http_listen = config_.http_listen();
    fields::FillDefaults(config_);
    config_.set_http_listen(http_listen);
  }

  Result<void> Start();
  void Stop(Nanoseconds limit);

  std::string agents_address;
  std::string control_address;
  std::string http_address;
  Brain* brain() { return brain_.get(); }

 private:
  Result<void> StartCatalog();
  Result<void> StartPorts(const fleet::ListenAddress& agents, const fleet::ListenAddress& control,
                          std::shared_ptr<grpc::ServerCredentials> credentials);
  Result<void> StartHttp(const fleet::ListenAddress& address);

  v1::ControllerConfig config_;
  OpenRuns open_runs_;
  std::unique_ptr<catalog::Catalog> catalog_;
  Metrics metrics_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<Brain> brain_;
  std::unique_ptr<fleet::FleetService> fleet_service_;
  std::unique_ptr<ControlService> control_service_;
  std::unique_ptr<grpc::Server> agents_server_;
  std::unique_ptr<grpc::Server> control_server_;
  std::unique_ptr<http::Server> http_;
  std::mutex stop_mutex_;
  bool stopped_ = false;
};

Result<void> Controller::Impl::Start() {
  if (config_.state().empty()) {
    return Fail(Errc::kInvalidArgument, "state", "name a directory for the catalog");
  }
  Result<fleet::ListenAddress> agents =
      fleet::ParseListenAddress(config_.agents_listen(), "agents_listen");
  if (!agents) return std::unexpected(agents.error());
  Result<fleet::ListenAddress> control =
      fleet::ParseListenAddress(config_.control_listen(), "control_listen");
  if (!control) return std::unexpected(control.error());
  if (!control->loopback()) {
    return Fail(Errc::kPermissionDenied, "control_listen",
                "the command line's port asks nobody who he is, so it must stay on loopback; "
                "write 127.0.0.1:PORT and reach it through ssh -L");
  }
  // All addresses and files are looked at before the catalog is touched.
  Result<std::shared_ptr<grpc::ServerCredentials>> credentials =
      fleet::AgentsCredentials(config_, *agents);
  if (!credentials) return std::unexpected(credentials.error());
  std::optional<fleet::ListenAddress> http;
  if (!config_.http_listen().empty()) {
    Result<fleet::ListenAddress> parsed =
        fleet::ParseListenAddress(config_.http_listen(), "http_listen");
    if (!parsed) return std::unexpected(parsed.error());
    if (!parsed->loopback()) {
      return Fail(Errc::kPermissionDenied, "http_listen",
                  "http stays on loopback; write 127.0.0.1:PORT and put a proxy in front");
    }
    http = *std::move(parsed);
  }
  if (Result<void> started = StartCatalog(); !started) return started;
  if (http) {
    if (Result<void> started = StartHttp(*http); !started) return started;
  }
  return StartPorts(*agents, *control, *std::move(credentials));
}

Result<void> Controller::Impl::StartCatalog() {
  Result<std::unique_ptr<catalog::Catalog>> catalog = catalog::Catalog::Open(config_.state());
  if (!catalog) return std::unexpected(catalog.error());
  catalog_ = *std::move(catalog);
  Result<std::unique_ptr<Jobs>> jobs = Jobs::Start(config_.state());
  if (!jobs) return std::unexpected(jobs.error());
  jobs_ = *std::move(jobs);
  const Nanoseconds heartbeat(config_.heartbeat());
  Result<std::unique_ptr<Brain>> brain = Brain::Start(
      {.catalog = catalog_.get(),
       .jobs = jobs_.get(),
       .metrics = &metrics_,
       .roster = {.heartbeat = heartbeat,
                  .reconnect_window = Nanoseconds(config_.reconnect_window())},
       .run = {.start_lead = Nanoseconds(config_.start_lead()), .repeat_after = heartbeat},
       .open_runs = open_runs_});
  if (!brain) return std::unexpected(brain.error());
  brain_ = *std::move(brain);
  return {};
}

Result<void> Controller::Impl::StartPorts(const fleet::ListenAddress& agents,
                                          const fleet::ListenAddress& control,
                                          std::shared_ptr<grpc::ServerCredentials> credentials) {
  fleet_service_ = std::make_unique<fleet::FleetService>(brain_.get(), config_.has_tls());
  control_service_ = std::make_unique<ControlService>(brain_.get(), jobs_.get());
  Result<StartedServer> agents_port =
      StartAgentsServer(fleet_service_.get(), agents, std::move(credentials));
  if (!agents_port) return std::unexpected(agents_port.error());
  agents_server_ = std::move(agents_port->server);
  agents_address = agents_port->address.text();
  Result<StartedServer> control_port = StartControlServer(control_service_.get(), control);
  if (!control_port) return std::unexpected(control_port.error());
  control_server_ = std::move(control_port->server);
  control_address = control_port->address.text();
  spdlog::info("agents on {}{}, control on {}{}", agents_address,
               config_.has_tls() ? " (with certificates)" : "", control_address,
               http_address.empty() ? "" : ", http on " + http_address);
  return {};
}

Result<void> Controller::Impl::StartHttp(const fleet::ListenAddress& address) {
  auto own_address = std::make_shared<std::string>();  // shared with the handlers
  Result<std::unique_ptr<http::Server>> http = http::Server::Start(
      address.host, address.port,
      MakeRoutes(brain_.get(), jobs_.get(), &metrics_, [own_address] { return *own_address; }));
  if (!http) return std::unexpected(http.error());
  http_ = *std::move(http);
  fleet::ListenAddress bound = address;
  bound.port = http_->port();
  http_address = *own_address = bound.text();
  return {};
}

void Controller::Impl::Stop(Nanoseconds limit) {
  std::lock_guard lock(stop_mutex_);
  if (std::exchange(stopped_, true)) return;
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(limit);
  // Shutdown waits for every call, so what waits for the jobs' thread is answered before it.
  if (jobs_) jobs_->Close();
  if (brain_) brain_->Drain(limit / 2);
  http_.reset();
  // Without a deadline, Shutdown waits for ever for a stream whose peer does not read.
  if (agents_server_) agents_server_->Shutdown(deadline);
  if (control_server_) control_server_->Shutdown(deadline);
  if (brain_) brain_->Stop();
}

Result<std::unique_ptr<Controller>> Controller::Start(const v1::ControllerConfig& config,
                                                      OpenRuns open_runs) {
  auto impl = std::make_unique<Impl>(config, open_runs);
  Result<void> started = impl->Start();
  // Also after a failure: what did start has to end in order.
  std::unique_ptr<Controller> controller(new Controller(std::move(impl)));
  if (!started) return std::unexpected(started.error());
  return controller;
}

Controller::Controller(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Controller::~Controller() { impl_->Stop(kStopLimit); }

const std::string& Controller::agents_address() const { return impl_->agents_address; }
const std::string& Controller::control_address() const { return impl_->control_address; }
const std::string& Controller::http_address() const { return impl_->http_address; }
void Controller::Stop(Nanoseconds limit) { impl_->Stop(limit); }
std::optional<Error> Controller::failure() const { return impl_->brain()->failure(); }
void Controller::OnFailure(std::function<void(const Error&)> callback) {
  impl_->brain()->OnFailure(std::move(callback));
}

}  // namespace labrack::api
