// The controller's one loop. It owns who is attached (fleet::Roster) and what runs
// (run::Scheduler), and is the only writer of the catalog.
//
//   gRPC callbacks --tasks--> inbox --batch--> state machines --Effects--> one commit --> send
//
// Everything that arrived meanwhile forms the next batch, so that one fsync serves many events
// (group commit). Commands, acknowledgements and answers leave after the commit, never before. When
// a commit fails the loop ends: nothing may be acknowledged any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "controller/api/byte_budget.h"
#include "controller/api/call.h"
#include "controller/api/controller.h"
#include "controller/api/inbox.h"
#include "controller/api/jobs.h"
#include "controller/api/metrics.h"
#include "controller/api/watch.h"
#include "controller/catalog/catalog.h"
#include "controller/fleet/roster.h"
#include "controller/fleet/session.h"
#include "controller/plan/planner.h"
#include "controller/run/scheduler.h"

namespace labrack::api {

class Brain final : public fleet::SessionSink {
 public:
  using Task = Inbox<>::Task;
  static constexpr std::size_t kInboxMax = 65'536;
  static constexpr std::size_t kInboxBytesMax = 256 << 20;  // of agents' messages
  static constexpr std::size_t kBatchMax = 256;             // tasks per commit
  static constexpr Nanoseconds kTickMax = std::chrono::milliseconds(100);
  static constexpr double kHellosPerSecond = 200;
  static constexpr double kHellosBurst = 1000;

  struct Parts {  // all outlive the brain
    catalog::Catalog* catalog;
    Jobs* jobs;
    Metrics* metrics;
    fleet::RosterOptions roster;
    run::Options run;
    OpenRuns open_runs = OpenRuns::kGoOn;
  };
  // Loads what the catalog knows and starts the loop.
  static Result<std::unique_ptr<Brain>> Start(Parts parts);
  ~Brain() override;
  Brain(const Brain&) = delete;
  Brain& operator=(const Brain&) = delete;

  // Any thread. Tasks run on the loop's thread and may use what is below.
  bool Post(Task task) { return inbox_.Push(std::move(task)); }
  bool PostAlways(Task task) { return inbox_.PushAlways(std::move(task)); }
  // Says Goodbye to the agents and ends all streams. Returns once that is under way, or after
  // `limit`.
  void Drain(Nanoseconds limit);
  void Stop();  // ends the loop; what waits is dropped, which answers it
  std::optional<Error> failure() const;
  void OnFailure(std::function<void(const Error&)> callback);

  // On the loop's thread only.
  plan::FleetView FleetHosts() const;
  v1::HostsReply Hosts() const;
  const fleet::Roster& roster() const { return roster_; }
  // Answers with the run made with this key, if there is one, and leaves `call` untouched if not.
  bool AnswerExisting(const std::string& key, Call<v1::SubmitReply>& call);
  void Submit(const v1::SubmitRequest& request, v1::PlanReply plan, Call<v1::SubmitReply> call);
  void Cancel(const v1::CancelRequest& request, const std::string& who, Call<v1::CancelReply> call);
  void OpenWatch(std::uint64_t id, const std::string& run_id, std::shared_ptr<Watcher> watcher);
  void CloseWatch(std::uint64_t id);

  // fleet::SessionSink
  bool OnOpened(const std::shared_ptr<fleet::Session>& session) override;
  bool OnMessage(const std::shared_ptr<fleet::Session>& session, v1::AgentMessage message) override;
  void OnClosed(std::uint64_t session_id) override;

 private:
  explicit Brain(Parts parts);

  Result<void> Load();
  void Loop();
  bool Turn();  // false: the catalog has failed
  run::Moment Now() const;
  Nanoseconds WaitLimit() const;
  void Tick(run::Moment now);
  bool Commit();
  void Send();
  void Publish(TimePoint now);
  void GiveUp(const Error& error);
  void TellMassSilence();
  void WantVerdicts();
  bool WantVerdict(const std::string& run_id);

  void Take(const std::shared_ptr<fleet::Session>& session, const v1::AgentMessage& message);
  void TakeHello(const std::shared_ptr<fleet::Session>& session, const v1::Hello& hello);
  bool Admit(const std::shared_ptr<fleet::Session>& session, const v1::Hello& hello);
  void Welcome(std::uint64_t session_id, const v1::Hello& hello);
  void AddStranger(const std::string& agent_id, const v1::HeldAssignment& held,
                   v1::Welcome& welcome);
  void SaveAgent(const fleet::Roster::Agent& agent);
  void DropSession(std::uint64_t session_id, const grpc::Status& status);
  void TouchRunsOf(const v1::Heartbeat& heartbeat);
  std::string NewRunId();
  std::optional<v1::RunEvent> Describe(const std::string& run_id,
                                       const std::set<std::uint32_t>* trials) const;

  Parts parts_;
  ByteBudget inbox_bytes_{kInboxBytesMax};  // before what holds shares of it
  Inbox<> inbox_{kInboxMax};
  fleet::Roster roster_;
  run::Scheduler scheduler_;
  WatchHub watches_;
  // Sessions are shared with gRPC. All that are open, also before Hello and while they end; and
  // those that take part.
  std::map<std::uint64_t, std::shared_ptr<fleet::Session>> open_sessions_;
  std::map<std::uint64_t, std::shared_ptr<fleet::Session>> sessions_;
  std::map<std::string, std::string> keys_;  // idempotency keys of runs that may not be committed
  run::Effects effects_;
  std::vector<Task> after_commit_;
  std::uint64_t controller_epoch_ = 0;
  double hello_tokens_ = kHellosBurst;
  TimePoint hello_refilled_{};
  bool draining_ = false;
  bool mass_silence_ = false;              // as it was told last
  std::set<std::string> verdicts_wanted_;  // ended runs that found no room in the jobs' queue yet

  mutable std::mutex failure_mutex_;
  std::optional<Error> failure_;
  std::function<void(const Error&)> on_failure_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace labrack::api
