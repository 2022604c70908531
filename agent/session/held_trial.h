// HeldTrial: one assignment that this agent has promised, from acceptance until the controller has
// everything.
//
//   WAITING --start--> RUNNING --result in the spool-----------------> SEALED --CLOSED--> gone
//      |                  |  worker dead, no result                        ^
//      |                  +--> UNDOING (labrack-worker --undo) --> ENDING -+
//      +--stopped before it was started------------------------------^   (we write the result)
//
// Lives on the agent's loop; nothing here waits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <vector>

#include "agent/exec/run.h"
#include "agent/session/clock_sync.h"
#include "agent/session/ending.h"
#include "agent/session/gate.h"
#include "agent/session/journal.h"
#include "agent/session/spool_tail.h"
#include "agent/session/trial_cleaner.h"
#include "agent/session/trial_clock.h"
#include "agent/session/worker_process.h"
#include "agent/telemetry/exporter.h"
#include "agent/worker/frames.h"
#include "agent/worker/programs.h"
#include "agent/worker/trial_files.h"
#include "labrack/v1/config.pb.h"
#include "labrack/v1/worker.pb.h"

namespace labrack::session {

// What all trials of an agent share; outlives them.
struct TrialContext {
  v1::AgentConfig config;
  std::filesystem::path worker_program;
  std::string agent_id;
  std::string boot_id;
  v1::Inventory inventory;
  Journal* journal = nullptr;
  ClockSync* clock_sync = nullptr;
  std::uint64_t controller_epoch = 0;       // whose clock that is
  telemetry::Exporter* exporter = nullptr;  // may be null

  std::filesystem::path trials() const { return std::filesystem::path(config.state()) / "trials"; }
};

// Limits of time; see HeldTrial::Escalate and Watch. A worker that is asked to stop ends by itself
// within its own grace; from SIGTERM to SIGKILL it has as long as any command.
constexpr Nanoseconds kStopToTerm = worker::kCancelGrace + worker::kCancelMargin;
using exec::kTermToKill;
// The worker's control thread reports once a second. Silence of that length, while our own loop was
// awake, means that it hangs.
constexpr Nanoseconds kWorkerSilenceMax = std::chrono::seconds(90);
// From its result to its end.
constexpr Nanoseconds kExitGrace = std::chrono::minutes(1);
constexpr Nanoseconds kRetryInterval = std::chrono::seconds(5);

class HeldTrial {
 public:
  HeldTrial(JournalRow row, const TrialContext& context);

  const v1::AssignmentSpec& spec() const { return row_.spec; }
  bool Is(const std::string& assignment_id, std::uint64_t epoch) const {
    return spec().assignment_id() == assignment_id && spec().epoch() == epoch;
  }

  // After acceptance: the trial waits for its turn.
  bool waiting() const { return stage_ == Stage::kWaiting; }
  bool sealed() const { return stage_ == Stage::kSealed; }
  // Sealed, and nothing of it is left on the host: the next one may run.
  bool settled() const { return sealed() && !process_ && cleaner_.clean(); }
  // What is left on the host for now, and why; empty: nothing, or it is still being seen to.
  std::string left() const;
  // Journals, then starts the worker. What fails ends the trial with a result that says so.
  void Start(TimePoint now);
  // At the agent's start: finds the worker, or what it has left.
  void Recover(TimePoint now);

  // Moves on as far as it goes; called after every wake-up.
  void Step(TimePoint now);
  void AddPolls(std::vector<pollfd>& polls) const;
  // Step must be called then at the latest.
  TimePoint next_step() const { return next_step_; }

  // The first reason counts. Also a trial that is sealed may be told; it changes nothing.
  void Stop(const std::string& reason, TimePoint now);

  // A trial that waits is never started.
  void GiveUp(const std::string& reason, TimePoint now);

  Gate& gate() { return gate_; }
  // At a gate that the controller has not been told of (once).
  bool TakeGateReady();
  // On a new connection everything is told again.
  void Reconnected();
  void Go(std::uint32_t gate_index, TimePoint start);

  SpoolTail& tail() { return tail_; }
  const SpoolTail& tail() const { return tail_; }
  // The next batch for the controller, with the result completed.
  Result<std::optional<v1::Events>> NextBatch(TimePoint now);

  v1::AssignmentState state() const;
  const std::optional<v1::AssignmentProgress>& progress() const { return progress_; }

  // The controller has everything. True: it may be forgotten, the directory is gone. False while
  // something is left on the host: only the undo log knows what.
  bool Close();
  // Where the worker's own words are, for the log.
  const worker::TrialFiles& files() const { return files_; }

 private:
  enum class Stage { kWaiting, kRunning, kUndoing, kEnding, kSealed };

  Result<void> MakeDirectory();
  void ObserveEvent(const v1::EventRecord& event);
  void ReadSpool();
  void TalkToWorker(TimePoint now);
  void TakeReport(const v1::WorkerReport& report, TimePoint now);
  void StepRunning(TimePoint now);
  void Escalate(TimePoint now);
  void Watch(TimePoint now);
  std::string HowItEnded(const WorkerProcess::End& end) const;
  void KillWorker(TimePoint now);
  bool is_unkillable(TimePoint now) const {
    return killed_at_ && now >= *killed_at_ + kUnkillableAfter;
  }
  void WorkerIsDead(std::string how, TimePoint now);
  void WorkerHangs();
  void StepUndoing(TimePoint now);
  void StepSealed(TimePoint now);
  void UndoIsOver(std::string left);
  void StepEnding(TimePoint now);
  void BecomeSealed();
  void TakeClock(TimePoint now);
  bool Stamp(TimePoint now);
  // For the exporter: what an earlier agent has counted is not counted again.
  bool IsNewToExporter(std::uint64_t seq);
  void Wake(TimePoint at);

  JournalRow row_;
  const TrialContext& context_;
  worker::TrialFiles files_;
  Stage stage_ = Stage::kWaiting;
  SpoolTail tail_;
  Gate gate_;
  bool gate_told_ = false;

  std::optional<WorkerProcess> process_;  // the worker
  std::unique_ptr<worker::FrameSocket> link_;
  std::optional<v1::AssignmentProgress> progress_;
  std::set<std::string> steps_done_;
  TimePoint last_step_;
  TimePoint next_step_;
  Nanoseconds silence_{0};

  std::optional<std::string> stop_reason_;
  bool stop_told_ = false;
  std::optional<TimePoint> terminate_at_;
  std::optional<TimePoint> kill_at_;

  WorkerEnd end_;
  CleanUp clean_up_;
  TrialCleaner cleaner_;
  bool ended_well_ = false;              // the worker went by itself, with its result
  std::optional<TimePoint> killed_at_;   // the first time
  std::optional<TimePoint> exit_limit_;  // of a worker that has sealed its result
  TimePoint retry_at_;
  TrialClock clock_;
  std::string clock_step_;          // at whose beginning it was taken last
  std::uint64_t exported_seq_ = 0;  // of the last record that was counted
  bool stamped_ = false;            // the clocks' figures of the result are in the journal
  bool outcome_told_ = false;
};

}  // namespace labrack::session
