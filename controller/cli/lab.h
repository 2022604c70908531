// Where a verb finds its controller: one that --controller names, or the lab on this machine.
//
//   --controller ADDR            the lab on this machine, state in ~/.local/state/labrack
//        |                         lab.lock ---- another labrack's? then its controller, or wait
//        v                         controller/   catalog of the embedded controller
//     Client  <--- loopback gRPC   agents/agent-1/  config.yaml, agent.log, the agent's own state
//                                  agents/agent-2/  ...
//
// The embedded controller is the daemon's own object on free ports, and the agents are processes of
// labrack-agent; nothing is special but who starts and ends them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/controller.h"
#include "controller/cli/agent_process.h"
#include "controller/cli/clean_up.h"
#include "controller/cli/client.h"
#include "controller/cli/interrupts.h"
#include "controller/cli/lab_lock.h"
#include "controller/cli/options.h"

namespace labrack::cli {

constexpr std::size_t kAgentsMax = 64;
// How often ended agents are started again, all together.
constexpr std::size_t kRestartsMax = 3;

// How long another labrack is waited for that starts a lab here or has a private one (lab_lock.h),
// and how often is looked.
constexpr Nanoseconds kLabTurnLimit = std::chrono::seconds(10);
constexpr Nanoseconds kLabTurnPoll = std::chrono::milliseconds(50);
// Why a lab cannot be had here: of `holder`, with what to do.
Error LabIsTaken(const std::filesystem::path& state, const LabHolder& holder);

// Where the embedded controller has its state.
std::filesystem::path CatalogDirectory(const std::filesystem::path& state);

// $XDG_STATE_HOME/labrack, or ~/.local/state/labrack.
Result<std::filesystem::path> DefaultStateDirectory(const Environment& environment);

struct AgentsOptions {
  std::size_t count = 1;
  std::map<std::string, std::string> labels;  // what the playbook matches hosts by
  bool allow_exec = false;
  std::vector<std::string> directories;  // that `dir` stacks may name
};

// The text of one agent's configuration file. `disk_space` 0: as the agent decides.
std::string AgentConfigText(const std::string& name, const std::string& controller,
                            const std::filesystem::path& state, const AgentsOptions& options,
                            std::uint64_t disk_space);

class Lab {
 public:
  // A controller elsewhere.
  static std::unique_ptr<Lab> Connect(const std::string& address);
  // The lab on this machine, private until Announce(). Null when another labrack has its lab here
  // (LookAtLab). Errors: kBusy when a labrack-controller works on the catalog.
  static Result<std::unique_ptr<Lab>> OpenAlone(const std::filesystem::path& state,
                                                api::OpenRuns open_runs);
  // Ends what Close() has not ended.
  ~Lab();

  Client& client() { return *client_; }
  // Whether the controller lives in this process.
  bool embedded() const { return controller_ != nullptr; }
  const std::filesystem::path& state() const { return state_; }

  // Opens it to everybody on this machine: from here on verbs that look ask our controller.
  Result<void> Announce();
  // Starts agents agent-1 .. agent-N and waits until all are online. Errors name the agent and show
  // the end of its log; kCancelled when a signal came.
  Result<void> StartAgents(const AgentsOptions& options, const Interrupts& interrupts);
  // To be called now and then: starts agents that ended again, as a service manager would, so that
  // what they held is carried on or cleaned up. Says what it did; empty when all is well. Errors:
  // too many ended, or the controller gave up.
  Result<std::string> Tend();
  // How long the agents may take to clean up in Close(): of the plan that they work on.
  void set_clean_up_limit(Nanoseconds limit) { clean_up_limit_ = limit; }
  // Ends the agents, after their clean-up, then the controller. The error says what may be left.
  Result<void> Close();

 private:
  explicit Lab(std::filesystem::path state);
  Result<void> StartController(api::OpenRuns open_runs);
  Result<void> StartAgent(std::size_t number, const AgentsOptions& options);
  Result<void> StartProcess(const AgentProcess::Options& options);
  Result<void> WaitUntilOnline(const Interrupts& interrupts);
  // An agent that ended, a controller that gave up.
  std::optional<Error> Failure();

  std::filesystem::path state_;
  std::optional<LabLock> lock_;
  std::unique_ptr<api::Controller> controller_;
  std::unique_ptr<Client> client_;
  std::filesystem::path program_;  // labrack-agent
  std::vector<std::unique_ptr<AgentProcess>> agents_;
  std::size_t restarts_ = 0;
  Nanoseconds clean_up_limit_ = CleanUpLimit(kTearDownDefault);
};

}  // namespace labrack::cli
