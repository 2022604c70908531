// Who is attached: one record per agent, and how long each has been silent. Pure: no gRPC, no
// clock of its own.
//
//            Hello            diff and acks sent        3 heartbeats silent, or closed
//   OFFLINE --------> SYNCING ------------------> ONLINE ------------------> SUSPECT
//      ^                                                                        |
//      +--------- 6 heartbeats silent, or closed for 1.5, or Goodbye -----------+
//   LOST: OFFLINE for longer than a playbook waits (lost_after), until the next Hello.
//
// A stream that closes is not a loss: trials go on at the agent. Silence counts only while the
// controller itself was awake: a pause of its own (SIGSTOP, a suspended VM) makes nobody silent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/support/status.h>

#include "controller/catalog/rows.h"
#include "controller/run/effects.h"
#include "labrack/v1/control.pb.h"
#include "labrack/v1/fleet.pb.h"
#include "storage/base/clock.h"

namespace labrack::fleet {

enum class AgentState { kOffline, kSyncing, kOnline, kSuspect, kLost };
std::string_view StateName(AgentState state);  // "ONLINE"

struct RosterOptions {
  Nanoseconds heartbeat = std::chrono::seconds(10);
  Nanoseconds reconnect_window = std::chrono::seconds(2);
};

class Roster final : public run::AgentDirectory {
 public:
  static constexpr std::size_t kAgentsMax = 10'000;
  static constexpr int kSuspectHeartbeats = 3;
  static constexpr int kOfflineHeartbeats = 6;

  struct Agent {
    std::string id;
    AgentState state = AgentState::kOffline;
    std::uint64_t session_id = 0;  // 0: none is up
    std::uint64_t incarnation = 0;
    std::uint64_t connection = 0;
    std::string machine_id;
    std::string boot_id;
    std::string version;
    v1::Inventory inventory;
    Nanoseconds heartbeat{0};   // as it was told
    Nanoseconds heard_at{0};    // on the awake clock
    Nanoseconds closed_at{-1};  // likewise; negative: its stream is up
    Nanoseconds round_trip{0};
    std::map<std::string, v1::AssignmentProgress> progress;  // by assignment id
    double load_average_1m = 0;
    bool disk_low = false;
  };

  explicit Roster(RosterOptions options) : options_(options) {}

  // An agent that the catalog knows; OFFLINE until it says Hello.
  void Remember(catalog::AgentRow row);

  // Whether the session may take part. On success the agent is SYNCING and the caller sends
  // Welcome, then calls Welcomed().
  struct Admission {
    grpc::Status status;
    std::uint64_t replaced_session = 0;  // to be closed; 0: none
    bool machine_changed = false;        // it was attached from another machine before
    bool conflict = false;               // two machines use one agent id at once: an alarm
  };
  Admission Hello(std::uint64_t session_id, const v1::Hello& hello);
  void Welcomed(std::uint64_t session_id);
  void Heard(std::uint64_t session_id);
  void TakeHeartbeat(std::uint64_t session_id, const v1::Heartbeat& heartbeat);
  // True when it differs from what was known.
  bool TakeInventory(std::uint64_t session_id, const v1::Inventory& inventory);
  void Closed(std::uint64_t session_id, bool said_goodbye);
  void MarkLost(const std::string& agent_id);

  // Moves the awake clock and the states. Answers with the sessions that are to be dropped since
  // nothing is heard on them.
  std::vector<std::uint64_t> Tick(TimePoint now);

  run::AgentView Look(const std::string& agent_id) const override;
  const Agent* Find(const std::string& agent_id) const;
  const Agent* FindSession(std::uint64_t session_id) const;
  const std::map<std::string, Agent>& agents() const { return agents_; }
  Nanoseconds Silent(const Agent& agent) const { return awake_ - agent.heard_at; }
  // What agents are told: the configured time, stretched so that a large fleet does not flood us.
  Nanoseconds heartbeat() const;
  Nanoseconds reconnect_window() const;
  // Agents are not given up for so long after a start: they need time to come back.
  Nanoseconds grace() const;

 private:
  Agent* MutableSession(std::uint64_t session_id);
  void Advance(Agent& agent, std::vector<std::uint64_t>& drop);

  RosterOptions options_;
  std::map<std::string, Agent> agents_;
  std::map<std::uint64_t, std::string> sessions_;  // session -> agent
  Nanoseconds awake_{0};
  std::optional<TimePoint> last_tick_;
};

// "[A-Za-z0-9][A-Za-z0-9._-]{0,62}", as in the agent's configuration.
bool IsAgentId(std::string_view id);

}  // namespace labrack::fleet
