// What the state machines of this folder take and give. They touch nothing: an input and an
// instant go in, Effects come out. The loop (controller/api/brain.h) commits the changes first and
// sends the commands after that, which is what makes every command's row durable before it leaves.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/catalog/rows.h"
#include "labrack/v1/fleet.pb.h"
#include "storage/base/clock.h"

namespace labrack::run {

// An instant: the controller's monotonic clock decides, the wall clock is only written down.
struct Moment {
  TimePoint mono;
  std::int64_t wall_ns = 0;
};

struct Command {
  std::string agent_id;
  v1::ControllerMessage message;
};

struct Note {  // a line for people who watch the run
  std::string run_id;
  std::string text;
};

struct Effects {
  std::vector<catalog::Change> changes;  // committed first, together
  std::vector<Command> commands;         // then sent, in this order
  std::vector<Note> notes;
  std::map<std::string, std::set<std::uint32_t>> touched;  // runs, and their trials, that changed
  std::vector<std::string> ended_runs;  // whose trials have all ended: a verdict is wanted
  // Alarms: batches about another agent's assignment, which are stored apart; records that leave a
  // gap, or have numbers that cannot be, which are neither stored nor acknowledged.
  std::uint64_t foreign_events = 0;
  std::uint64_t refused_events = 0;
};

// What a machine may know about an agent; the fleet answers.
struct AgentView {
  bool connected = false;     // a session is up and has been welcomed
  bool away = false;          // silent for so long that nobody counts on it (OFFLINE)
  bool may_be_lost = false;   // silence counts: it had time to come back, and is not one of many
  Nanoseconds silent{0};      // while the controller was awake
  Nanoseconds round_trip{0};  // best of the agent's probes
};
class AgentDirectory {
 public:
  virtual ~AgentDirectory() = default;
  virtual AgentView Look(const std::string& agent_id) const = 0;
};

// Fencing tokens: controller_epoch * 2^40 + a counter. Since every start raises controller_epoch,
// tokens only grow, over restarts too.
class EpochSource {
 public:
  static constexpr int kCounterBits = 40;
  // Tokens are kept as signed numbers; above this there is no room left to grow.
  static constexpr std::uint64_t kControllerEpochMax = 1 << 22;

  explicit EpochSource(std::uint64_t controller_epoch) : controller_epoch_(controller_epoch) {}
  std::uint64_t Next() { return (controller_epoch_ << kCounterBits) + ++counter_; }
  std::uint64_t controller_epoch() const { return controller_epoch_; }
  void Raise(std::uint64_t controller_epoch) {
    if (controller_epoch <= controller_epoch_) return;
    controller_epoch_ = controller_epoch;
    counter_ = 0;
  }

 private:
  std::uint64_t controller_epoch_;
  std::uint64_t counter_ = 0;
};

struct Options {
  Nanoseconds start_lead = std::chrono::milliseconds(200);
  Nanoseconds repeat_after = std::chrono::seconds(10);  // unanswered commands are sent again
  Nanoseconds clock_uncertainty_max = std::chrono::milliseconds(50);
};

}  // namespace labrack::run
