// The whole controller as one object: catalog, agents' port, control port, http. labrack-controller
// is a main() around it; `labrack run` without --controller holds one of its own. Both use the same
// ports and the same code.
//
//   v1::ControllerConfig config;  config.set_state(directory);  fields::FillDefaults(config);
//   Result<std::unique_ptr<Controller>> controller = Controller::Start(config);
//   grpc::CreateChannel((*controller)->control_address(), grpc::InsecureChannelCredentials());
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "labrack/v1/config.pb.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::api {

// What a controller does about the unfinished runs of its catalog. Left alone they are neither gone
// on with nor changed: agents are told nothing about the trials that they hold, and nothing that
// they report is taken, so that they keep it. Such a controller answers questions, and takes no
// runs.
enum class OpenRuns { kGoOn, kLeaveAlone };

class Controller {
 public:
  // Opens the catalog below config.state (made when missing), raises the controller's epoch, goes
  // on with unfinished runs (see OpenRuns) and opens the ports. Port 0 takes any free one.
  // Addresses and times that are empty or zero mean their defaults, but an empty http_listen means
  // no http. Errors: kBusy when another controller holds the catalog; kUnsupported when the catalog
  // was written by a newer version; kInvalidArgument for addresses and certificates, with what
  // would be right.
  static Result<std::unique_ptr<Controller>> Start(const v1::ControllerConfig& config,
                                                   OpenRuns open_runs = OpenRuns::kGoOn);

  // Stops as Stop(kStopLimit) does.
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  static constexpr Nanoseconds kStopLimit = std::chrono::seconds(5);

  // "127.0.0.1:40123", with the ports really bound.
  const std::string& agents_address() const;
  const std::string& control_address() const;
  const std::string& http_address() const;  // empty when there is none

  // Says Goodbye to the agents, ends every stream, commits what is in hand and closes. Running
  // trials go on at the agents, and the next Start() resumes their runs. Takes at most `limit` and
  // a little, but for a report that is just being made. Safe to call twice.
  void Stop(Nanoseconds limit);

  // Why the controller gave up: it stops by itself when the catalog cannot be written, since
  // nothing may be acknowledged then. Nothing while it works. Thread-safe.
  std::optional<Error> failure() const;
  // Called once when it gives up, on a thread of the controller's; at once, on this one, when it
  // has done so already.
  void OnFailure(std::function<void(const Error&)> callback);

 private:
  class Impl;
  explicit Controller(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace labrack::api
