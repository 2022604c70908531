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
//
// When many agents fall silent within a minute it is the network or the power, not the agents.
// While such a mass silence lasts nobody may be lost, nor for grace() afterwards: they come back at
// the pace of their reconnect windows. It is over when enough are back, or after kMassSilenceMax.
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
  // Mass silence: so many, and so large a part of those who were there, within so long.
  static constexpr std::size_t kMassSilenceMin = 3;
  static constexpr std::size_t kMassSilencePercent = 30;
  static constexpr Nanoseconds kMassSilenceWindow = std::chrono::seconds(60);
  static constexpr Nanoseconds kMassSilenceMax = std::chrono::hours(1);

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
    std::string dirty;    // what an earlier trial has left there; by its last heartbeat
    std::string peer;     // gRPC's name of the other end, of the last session
    bool heard = false;   // since the controller's start
    bool silent = false;  // suspect or worse, and did not say Goodbye
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
  Admission Hello(std::uint64_t session_id, const v1::Hello& hello, const std::string& peer = "");
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
  // An agent that was not heard since the controller's start is not given up for so long: it may
  // be waiting out the longest of its reconnect windows.
  Nanoseconds grace() const;
  bool mass_silence() const { return mass_silence_; }

 private:
  Agent* MutableSession(std::uint64_t session_id);
  void Advance(Agent& agent, std::vector<std::uint64_t>& drop);
  bool FindMassSilence() const;

  RosterOptions options_;
  std::map<std::string, Agent> agents_;
  std::map<std::uint64_t, std::string> sessions_;  // session -> agent
  Nanoseconds awake_{0};
  std::optional<TimePoint> last_tick_;
  bool mass_silence_ = false;
  Nanoseconds none_lost_before_{0};  // on the awake clock
};

// "[A-Za-z0-9][A-Za-z0-9._-]{0,62}", as in the agent's configuration.
bool IsAgentId(std::string_view id);

}  // namespace labrack::fleet
