// Agent: the loop of labrack-agent. One thread owns everything: trials, journal, the session's
// state. gRPC's callbacks push into the inbox; heartbeats have a thread of their own (heart.h).
//
//   inbox, worker sockets, pidfds, signals, standard input --poll--> handle --> trials move on -->
//   events are sent
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/session/clock_sync.h"
#include "agent/session/connection.h"
#include "agent/session/heart.h"
#include "agent/session/held_trial.h"
#include "agent/session/inbox.h"
#include "agent/session/journal.h"
#include "agent/session/reconnect.h"
#include "agent/telemetry/exporter.h"
#include "labrack/v1/config.pb.h"
#include "storage/base/descriptor.h"

namespace labrack::session {

constexpr std::size_t kHeldMax = 64;
// Bytes that must be left on the file system of the state directory beside a trial's disks.
constexpr Bytes kFreeMin = 256_MiB;
constexpr Nanoseconds kInventoryInterval = std::chrono::minutes(1);
// After the last trial is sealed, how long an agent that ends waits for the controller to take the
// results.
constexpr Nanoseconds kGoodbyeWait = std::chrono::seconds(2);

// Whether the controller has to hear of `found`: anything that plans depend on, free space among it
// when it has moved by more than a twentieth.
bool IsNews(const v1::Inventory& told, const v1::Inventory& found);

class Agent {
 public:
  // Blocks SIGTERM, SIGINT and SIGHUP in the calling thread: call it before any thread is made.
  static Result<std::unique_ptr<Agent>> Open(const v1::AgentConfig& config,
                                             const std::filesystem::path& worker_program);

  // Until a signal, or the end of standard input where the configuration says so. Errors: the
  // journal failed, and going on would break promises.
  Result<void> Run();

 private:
  explicit Agent(const v1::AgentConfig& config);
  Result<void> OpenState();
  Result<void> OpenSignals();
  Result<void> OpenExporter();
  Result<void> RecoverTrials();
  void FindStrayDirectories();
  void StepStrays(TimePoint now);
  std::string LeftOnHost() const;

  void Wait(TimePoint until);
  void TakeSignals();
  void TakeInput();
  void StopAll(const std::string& reason);
  void EndForJournal();
  void SayGoodbye();
  bool MayEnd(TimePoint now);

  // The session (agent_session.cc).
  void KeepConnected(TimePoint now);
  v1::Hello MakeHello();
  void DropConnection(const std::string& reason, TimePoint now);
  void TakeMessages(TimePoint now);
  void Handle(const v1::ControllerMessage& message, TimePoint now);
  void HandleWelcome(const v1::Welcome& welcome, TimePoint now);
  void HandleAssign(const v1::Assign& assign, TimePoint now);
  void HandleWant(const v1::Want& want, TimePoint now);
  void HandleArm(const v1::Arm& arm, TimePoint now);
  void HandleGo(const v1::Go& go, TimePoint now);
  void HandleAck(const v1::EventAck& ack);
  v1::CommandAck Accept(const v1::AssignmentSpec& spec, TimePoint now);
  std::optional<v1::CommandAck> Refuse(const v1::AssignmentSpec& spec);
  void ApplyWant(HeldTrial& trial, v1::WantKind want, const std::string& reason, TimePoint now);
  void SendAck(const std::string& command_id, v1::CommandAck ack);
  void SendGateReady(HeldTrial& trial);
  void SendEvents(TimePoint now);
  bool Send(v1::AgentMessage message);

  void StepTrials(TimePoint now);
  void StartNext(TimePoint now);
  void CloseTrials();
  void UpdateBoard(TimePoint now);
  void RefreshInventory(TimePoint now);
  HeldTrial* Find(const std::string& assignment_id, std::uint64_t epoch);
  HeldTrial* FindAnyEpoch(const std::string& assignment_id);

  TrialContext context_;
  Descriptor state_lock_;
  Descriptor signals_;
  std::optional<Journal> journal_;
  std::unique_ptr<Inbox> inbox_;
  ClockSync clock_sync_;
  std::unique_ptr<telemetry::Exporter> exporter_;
  std::unique_ptr<Heart> heart_;
  std::uint64_t incarnation_ = 0;
  std::uint64_t controller_epoch_ = 0;

  struct Held {
    std::unique_ptr<HeldTrial> trial;
    bool close = false;  // the controller wants it gone
  };
  std::vector<Held> held_;  // by epoch

  // Directories of trials that the journal does not hold, until they can be removed.
  struct Stray {
    std::filesystem::path directory;
    TrialCleaner cleaner;
  };
  std::vector<Stray> strays_;
  std::string told_left_;  // in the log

  std::shared_ptr<Connection> connection_;
  std::vector<std::shared_ptr<Connection>> retired_;  // gRPC still refers to them
  std::uint64_t connection_number_ = 0;
  bool welcome_ = false;
  bool ever_welcome_ = false;
  std::string last_loss_;
  ReconnectWindows windows_;
  TimePoint connect_at_;

  struct InFlight {
    std::string assignment_id;
    std::uint64_t epoch = 0;
    std::uint64_t last_seq = 0;
    std::size_t bytes = 0;
  };
  std::deque<InFlight> in_flight_;
  std::size_t in_flight_bytes_ = 0;
  std::size_t credit_batches_ = 0;
  std::size_t credit_bytes_ = 0;

  TimePoint inventory_at_;
  v1::Inventory told_inventory_;
  std::future<v1::Inventory> inventory_found_;  // while it is being looked for
  std::string told_spool_error_;
  TimePoint space_at_;
  std::uint64_t spool_bytes_ = 0;
  bool disk_low_ = false;
  bool ending_ = false;              // no new trial is started
  bool leave_workers_ = false;       // they go on without us
  std::optional<TimePoint> end_by_;  // all is sealed: results are waited for until then
};

}  // namespace labrack::session
