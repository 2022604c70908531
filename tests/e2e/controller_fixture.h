// A controller in this process, simulated agents, and a client of the control port.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "controller/api/controller.h"
#include "labrack/v1/control.grpc.pb.h"
#include "tests/sim/sim_agent.h"

namespace labrack::e2e {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// What the command line would do.
class ControlClient {
 public:
  explicit ControlClient(const std::string& address);

  v1::SubmitReply Submit(const std::string& playbook, const std::string& key = "",
                         std::int64_t lease_ns = 0);
  // Watches until the run ends or `limit` passes; the events in order.
  std::vector<v1::RunEvent> Watch(const std::string& run_id,
                                  Nanoseconds limit = std::chrono::seconds(60));
  // The last summary; watches again when the stream breaks, until the run ends or `limit` passes.
  v1::RunSummary WaitForEnd(const std::string& run_id,
                            Nanoseconds limit = std::chrono::seconds(60));
  v1::RunRecord Show(const std::string& run_id);  // with all results
  v1::RunRecord Show(const v1::ShowRunRequest& request);
  v1::HostsReply Hosts();
  grpc::Status Cancel(const std::string& run_id);
  v1::Control::Stub& stub() { return *stub_; }
  grpc::Status last_status() const { return status_; }

 private:
  std::unique_ptr<v1::Control::Stub> stub_;
  grpc::Status status_;
};

// Two stacks, one workload of one step.
std::string Playbook(int trials, const std::string& more = "");

class ControllerTest : public testing::Test {
 protected:
  ControllerTest();

  void StartController(api::OpenRuns open_runs = api::OpenRuns::kGoOn);
  void StopController() { controller_.reset(); }
  sim::SimAgentOptions AgentOptions(const std::string& id) const;
  void AddAgents(int count, const std::function<void(sim::SimAgentOptions&)>& change = nullptr);
  ControlClient& client() { return *client_; }

  TemporaryDirectory directory_;
  v1::ControllerConfig config_;
  std::unique_ptr<api::Controller> controller_;
  std::unique_ptr<ControlClient> client_;
  std::unique_ptr<sim::SimFleet> fleet_;
};

// Every sealed result is in `record`, and nothing was started twice.
void ExpectExactlyOnce(const v1::RunRecord& record, const sim::SimHistory& history);

}  // namespace labrack::e2e
