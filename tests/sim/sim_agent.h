// Simulated agents: they speak the real protocol to a real controller, but their trials are timers
// and their results are made up. Hundreds fit into one process: they share one thread for all that
// they decide and gRPC's callback threads for what they send.
//
// A simulated agent keeps what it holds in memory over lost sessions and restarted controllers, as
// a real one does on disk, so it can be used to check that every result arrives exactly once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "labrack/v1/fleet.pb.h"
#include "storage/base/clock.h"
#include "storage/base/random.h"

namespace labrack::sim {

struct SimAgentOptions {
  std::string controller;  // address of the agents' port
  std::string id;
  std::string machine_id = "sim";
  std::map<std::string, std::string> labels;
  std::shared_ptr<grpc::ChannelCredentials> credentials;  // null: plain
  std::string target_name;  // expected name in the controller's certificate
  std::uint64_t incarnation = 1;
  std::uint32_t protocol = v1::PROTOCOL_VERSION_NEWEST;
  Nanoseconds step_time = std::chrono::milliseconds(2);   // of each measured step
  Nanoseconds reconnect = std::chrono::milliseconds(50);  // window of the first try
  Seed seed{1};
  std::string dirty;  // what its heartbeats say that a trial has left
  // Faults.
  double drop_chance = 0;         // the session breaks after an Events message
  bool duplicate_events = false;  // each batch of events is sent twice
  bool never_answer = false;      // commands are not answered and nothing is started
  bool refuse = false;            // Assign is refused
  double fail_chance = 0;         // a measurement fails
  std::uint32_t miss_starts = 0;  // so many starts are missed at first
};

// What all agents of a fleet have done.
struct SimHistory {
  std::map<std::pair<std::string, std::uint64_t>, int> starts;   // (assignment, epoch) -> times
  std::map<std::pair<std::string, std::uint64_t>, int> results;  // sealed
  std::uint64_t sessions = 0;
  std::uint64_t refusals = 0;  // sessions that the controller refused
  std::string last_refusal;
};

class SimFleet {
 public:
  SimFleet();
  ~SimFleet();
  SimFleet(const SimFleet&) = delete;
  SimFleet& operator=(const SimFleet&) = delete;

  void Add(SimAgentOptions options);
  // The agent breaks its session and comes back after `away`.
  void Disconnect(const std::string& id, Nanoseconds away);
  // The agent is gone for good, without a word.
  void Vanish(const std::string& id);

  std::size_t online_count() const;
  std::size_t held_count() const;  // assignments that no agent was told to close yet
  SimHistory history() const;
  bool WaitForOnline(std::size_t count, Nanoseconds limit) const;

 private:
  class Agent;
  class Stream;
  struct Timer {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> task;
  };

  void Post(std::function<void()> task, Nanoseconds delay = Nanoseconds(0));
  void Loop();
  bool NextTask(std::function<void()>& task);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Timer> timers_;  // a heap
  std::uint64_t next_order_ = 0;
  bool stopping_ = false;
  SimHistory history_;
  std::size_t online_ = 0;
  std::size_t held_ = 0;
  std::size_t streams_ = 0;                               // that gRPC still knows
  std::map<std::string, std::shared_ptr<Agent>> agents_;  // of the loop's thread; shared with tasks
  std::thread thread_;
};

// A plausible result of `spec`: every step measured within [begin, end] of the local clock.
v1::AssignmentResult MakeResult(const v1::AssignmentSpec& spec, const std::string& agent_id,
                                const std::vector<std::pair<TimePoint, TimePoint>>& windows,
                                const std::vector<TimePoint>& intended, Random& random);
v1::Inventory MakeInventory(const SimAgentOptions& options);

}  // namespace labrack::sim
