#include "controller/fleet/roster.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/util/message_differencer.h>

#include "storage/base/session_limits.h"
#include "storage/base/version.h"

namespace labrack::fleet {
namespace {

// A step of the awake clock is at most so long: a longer gap was a pause of the controller.
constexpr Nanoseconds kAwakeStepMax = std::chrono::seconds(1);
constexpr std::size_t kAgentIdMax = 63;
constexpr std::size_t kProgressMax = 64;  // assignments per heartbeat
// Heartbeats of all agents together per second, and comings back.
constexpr std::int64_t kHeartbeatsPerSecondMax = 300;
constexpr std::int64_t kReconnectsPerSecondMax = 200;

Nanoseconds Spread(std::size_t agents, std::int64_t per_second) {
  return Nanoseconds(std::chrono::seconds(1)) * static_cast<std::int64_t>(agents) / per_second;
}

bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool IsAgentId(std::string_view id) {
  return !id.empty() && id.size() <= kAgentIdMax && IsWordStart(id.front()) &&
         std::ranges::all_of(
             id, [](char c) { return IsWordStart(c) || c == '.' || c == '_' || c == '-'; });
}

std::string_view StateName(AgentState state) {
  switch (state) {
    case AgentState::kOffline:
      return "OFFLINE";
    case AgentState::kSyncing:
      return "SYNCING";
    case AgentState::kOnline:
      return "ONLINE";
    case AgentState::kSuspect:
      return "SUSPECT";
    case AgentState::kLost:
      return "LOST";
  }
  return "OFFLINE";
}

Nanoseconds Roster::heartbeat() const {
  return std::max(options_.heartbeat, Spread(agents_.size(), kHeartbeatsPerSecondMax));
}
Nanoseconds Roster::reconnect_window() const {
  return std::max(options_.reconnect_window, Spread(agents_.size(), kReconnectsPerSecondMax));
}
Nanoseconds Roster::grace() const {
  return std::max(2 * std::max(kReconnectWindowMax, reconnect_window()) + heartbeat(),
                  kOfflineHeartbeats * heartbeat());
}

void Roster::Remember(catalog::AgentRow row) {
  Agent& agent = agents_[row.id];
  agent.id = std::move(row.id);
  agent.machine_id = std::move(row.machine_id);
  agent.incarnation = row.incarnation;
  agent.boot_id = std::move(row.boot_id);
  agent.version = std::move(row.version);
  agent.inventory = std::move(row.inventory);
  agent.heartbeat = heartbeat();
  agent.heard_at = awake_;
}

namespace {

// Refused agents keep what they hold and come back, so that an upgrade is all that is needed.
grpc::Status CheckProtocol(const v1::Hello& hello) {
  const std::uint32_t spoken = hello.protocol();
  const bool too_old = spoken < v1::PROTOCOL_VERSION_OLDEST_SERVED;
  if (!too_old && spoken <= v1::PROTOCOL_VERSION_NEWEST) return grpc::Status::OK;
  const std::string served = v1::PROTOCOL_VERSION_OLDEST_SERVED == v1::PROTOCOL_VERSION_NEWEST
                                 ? std::to_string(v1::PROTOCOL_VERSION_NEWEST)
                                 : std::to_string(v1::PROTOCOL_VERSION_OLDEST_SERVED) + " to " +
                                       std::to_string(v1::PROTOCOL_VERSION_NEWEST);
  return {grpc::StatusCode::UNIMPLEMENTED,
          "agent `" + hello.agent_id() + "` (labrack " + hello.version() + ") speaks protocol " +
              std::to_string(spoken) + ", this controller (labrack " + std::string(Version()) +
              ") speaks " + served + ": upgrade the " +
              (too_old ? "agent" : "controller, which goes before its agents") +
              "; the agent keeps its trials and results until then"};
}

}  // namespace

Roster::Admission Roster::Hello(std::uint64_t session_id, const v1::Hello& hello,
                                const std::string& peer) {
  Admission admission;
  if (!IsAgentId(hello.agent_id())) {
    admission.status = {grpc::StatusCode::INVALID_ARGUMENT,
                        "agent id `" + hello.agent_id().substr(0, 2 * kAgentIdMax) +
                            "` is not of the form [A-Za-z0-9][A-Za-z0-9._-]{0,62}"};
    return admission;
  }
  admission.status = CheckProtocol(hello);
  if (!admission.status.ok()) return admission;
  const auto found = agents_.find(hello.agent_id());
  if (found == agents_.end() && agents_.size() >= kAgentsMax) {
    admission.status = {grpc::StatusCode::RESOURCE_EXHAUSTED,
                        "this controller takes " + std::to_string(kAgentsMax) + " agents"};
    return admission;
  }
  if (found != agents_.end() && found->second.session_id != 0) {
    Agent& old = found->second;
    if (old.machine_id != hello.machine_id()) {
      admission.conflict = true;
      admission.status = {grpc::StatusCode::ALREADY_EXISTS,
                          "CONFLICT: another machine is attached as `" + old.id +
                              "`; give each agent a name and a state directory of its own"};
      return admission;
    }
    if (std::make_pair(hello.incarnation(), hello.connection()) <=
        std::make_pair(old.incarnation, old.connection)) {
      admission.status = {grpc::StatusCode::FAILED_PRECONDITION,
                          "a newer session of `" + old.id + "` is attached"};
      return admission;
    }
    admission.replaced_session = old.session_id;
    sessions_.erase(old.session_id);
  }
  admission.machine_changed = found != agents_.end() && !found->second.machine_id.empty() &&
                              found->second.machine_id != hello.machine_id();
  Agent& agent = agents_[hello.agent_id()];
  agent.id = hello.agent_id();
  agent.state = AgentState::kSyncing;
  agent.session_id = session_id;
  agent.incarnation = hello.incarnation();
  agent.connection = hello.connection();
  agent.machine_id = hello.machine_id();
  agent.boot_id = hello.boot_id();
  agent.version = hello.version();
  agent.inventory = hello.inventory();
  agent.heartbeat = heartbeat();
  agent.heard_at = awake_;
  agent.closed_at = Nanoseconds(-1);
  agent.peer = peer;
  agent.heard = true;
  agent.silent = false;
  agent.progress.clear();
  sessions_[session_id] = agent.id;
  return admission;
}

Roster::Agent* Roster::MutableSession(std::uint64_t session_id) {
  const auto found = sessions_.find(session_id);
  return found == sessions_.end() ? nullptr : &agents_.at(found->second);
}

const Roster::Agent* Roster::FindSession(std::uint64_t session_id) const {
  const auto found = sessions_.find(session_id);
  return found == sessions_.end() ? nullptr : &agents_.at(found->second);
}

const Roster::Agent* Roster::Find(const std::string& agent_id) const {
  const auto found = agents_.find(agent_id);
  return found == agents_.end() ? nullptr : &found->second;
}

void Roster::Welcomed(std::uint64_t session_id) {
  if (Agent* agent = MutableSession(session_id)) agent->state = AgentState::kOnline;
}

void Roster::Heard(std::uint64_t session_id) {
  Agent* agent = MutableSession(session_id);
  if (agent == nullptr) return;
  agent->heard_at = awake_;
  agent->silent = false;
  if (agent->state == AgentState::kSuspect) agent->state = AgentState::kOnline;
}

void Roster::TakeHeartbeat(std::uint64_t session_id, const v1::Heartbeat& heartbeat) {
  Agent* agent = MutableSession(session_id);
  if (agent == nullptr) return;
  if (heartbeat.round_trip_best_ns() > 0) {
    agent->round_trip = Nanoseconds(heartbeat.round_trip_best_ns());
  }
  agent->dirty = heartbeat.dirty();
  agent->progress.clear();
  for (const v1::AssignmentProgress& progress : heartbeat.assignments()) {
    if (agent->progress.size() == kProgressMax) break;
    agent->progress[progress.assignment_id()] = progress;
  }
}

bool Roster::TakeInventory(std::uint64_t session_id, const v1::Inventory& inventory) {
  Agent* agent = MutableSession(session_id);
  if (agent == nullptr) return false;
  if (google::protobuf::util::MessageDifferencer::Equals(agent->inventory, inventory)) return false;
  agent->inventory = inventory;
  return true;
}

void Roster::Closed(std::uint64_t session_id, bool said_goodbye) {
  Agent* agent = MutableSession(session_id);
  if (agent == nullptr) return;
  agent->session_id = 0;
  agent->closed_at = awake_;
  agent->state = said_goodbye ? AgentState::kOffline : AgentState::kSuspect;
  agent->silent = !said_goodbye;
  agent->progress.clear();
  sessions_.erase(session_id);
}

void Roster::MarkLost(const std::string& agent_id) {
  const auto found = agents_.find(agent_id);
  if (found != agents_.end() && found->second.session_id == 0) {
    found->second.state = AgentState::kLost;
  }
}

std::vector<std::uint64_t> Roster::Tick(TimePoint now) {
  if (last_tick_) awake_ += std::clamp(now - *last_tick_, Nanoseconds(0), kAwakeStepMax);
  last_tick_ = now;
  std::vector<std::uint64_t> drop;
  for (auto& [id, agent] : agents_) Advance(agent, drop);
  mass_silence_ = FindMassSilence();
  if (mass_silence_) none_lost_before_ = awake_ + grace();
  return drop;
}

bool Roster::FindMassSilence() const {
  std::vector<Nanoseconds> fell;  // when those who are silent now were heard last
  std::size_t there = 0;
  for (const auto& [id, agent] : agents_) {
    if (agent.silent && Silent(agent) <= kMassSilenceMax) fell.push_back(agent.heard_at);
    if (agent.session_id != 0 && !agent.silent) ++there;
  }
  if (fell.size() < kMassSilenceMin) return false;
  std::ranges::sort(fell);
  for (std::size_t first = 0, last = 0; last < fell.size(); ++last) {
    while (fell[last] - fell[first] > kMassSilenceWindow) ++first;
    const std::size_t together = last - first + 1;
    const std::size_t were_there = there + fell.size() - first;
    if (together >= kMassSilenceMin && together * 100 > were_there * kMassSilencePercent) {
      return true;
    }
  }
  return false;
}

void Roster::Advance(Agent& agent, std::vector<std::uint64_t>& drop) {
  if (agent.state == AgentState::kOffline || agent.state == AgentState::kLost) return;
  const Nanoseconds silent = Silent(agent);
  if (agent.session_id == 0) {
    const bool gone = awake_ - agent.closed_at >= 3 * agent.heartbeat / 2 ||
                      silent >= kOfflineHeartbeats * agent.heartbeat;
    if (gone) agent.state = AgentState::kOffline;
    return;
  }
  if (silent >= kOfflineHeartbeats * agent.heartbeat) {
    drop.push_back(agent.session_id);  // half-open: the agent has to come back on a new stream
  } else if (silent >= kSuspectHeartbeats * agent.heartbeat) {
    agent.state = AgentState::kSuspect;
    agent.silent = true;
  }
}

run::AgentView Roster::Look(const std::string& agent_id) const {
  run::AgentView view;
  const Agent* agent = Find(agent_id);
  const bool heard = agent != nullptr && agent->heard;
  view.may_be_lost = awake_ >= none_lost_before_ && (heard || awake_ >= grace());
  const bool counts = heard || awake_ >= kOfflineHeartbeats * heartbeat();
  if (agent == nullptr) {
    view.away = counts;
    view.silent = awake_;
    return view;
  }
  view.connected = agent->session_id != 0 &&
                   (agent->state == AgentState::kOnline || agent->state == AgentState::kSuspect);
  view.away = counts && (agent->state == AgentState::kOffline || agent->state == AgentState::kLost);
  view.silent = Silent(*agent);
  view.round_trip = agent->round_trip;
  return view;
}

}  // namespace labrack::fleet
