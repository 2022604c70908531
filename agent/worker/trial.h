// Trial: one assignment from claim to tear-down, on one thread.
//
//   claim > build > lay out > settle > { settle > ready > [warm up >] measure > drain }* > verify >
//   collect > tear down
//     |       |        |         |                 any of them fails, times out or is cancelled
//     +-------+--------+---------+---------------------------------------------------------------->
//     tear down
//
// On modelled disks the workload lives in virtual time: what it counts has that time's instants,
// phases and limits have the host's.
//
// Every phase has a record with its end and the reason. The outcome is three verdicts: measurement
// (did every step count what it should), environment (did the host do its part), clean-up (is the
// host as it was). Tear-down is the undo log and nothing else; it always runs and is not cancelled.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/stack/stack.h"
#include "agent/stack/undo_log.h"
#include "agent/worker/event_log.h"
#include "agent/worker/measure.h"
#include "agent/worker/stack_access.h"
#include "agent/worker/trial_control.h"
#include "agent/worker/trial_files.h"
#include "agent/workload/workload.h"
#include "labrack/v1/worker.pb.h"
#include "storage/runtime/host_env.h"

namespace labrack::worker {

class Trial {
 public:
  Trial(const v1::WorkerSpec& spec, TrialFiles files, TrialControl& control, EventLog& events,
        workload::Progress& progress);

  // Blocks; the result is in the spool afterwards. The error is one of the spool: then there is no
  // result.
  Result<v1::AssignmentResult> Run();

 private:
  using Body = std::function<Result<void>()>;

  // Phases. Begin ends the one before as done, at the same instant.
  Result<void> BeginPhase(v1::PhaseKind phase, std::string step, TimePoint at);
  void EndPhase(v1::PhaseEnd end, std::string reason, TimePoint at);
  // The phases from here on share a limit: a field of `timeouts`, for messages.
  void LimitPhases(const char* field, std::int64_t limit_ns, TimePoint from);
  Result<void> RunPhase(v1::PhaseKind phase, const std::string& step, const Body& body);
  // Ends the phase with what its body gave.
  Result<void> FinishPhase(const Result<void>& done);
  v1::PhaseEnd EndOf(const Error& error) const;
  std::string ReasonOf(const Error& error) const;

  Result<void> Prepare();  // claim to settle
  Result<void> Claim();
  Result<void> Build();
  Result<void> LayOut();
  Result<void> Settle();
  Result<void> DropCaches();

  Result<void> RunSteps();
  Result<void> RunStep(std::size_t step, const workload::StepInfo& info);
  Result<TimePoint> PassGate(std::size_t step, const std::string& name);
  void EnterStepPhase(const std::string& name, v1::PhaseKind phase, TimePoint at);
  Result<void> VerifyBefore(const std::vector<workload::StepInfo>& steps, std::size_t next);
  void Verify(bool unmount);
  std::string KeptThatCounts() const;
  void Collect();
  void TearDown();

  void SetMeasurement(v1::Outcome outcome, std::string reason);
  void FailEnvironment(v1::PhaseKind phase, const Error& error);
  // Of phases and limits: the host's, whatever time the workload lives in.
  TimePoint Now() const { return env_.Now(); }
  bool virtual_time() const { return stack_->core() != nullptr && stack_->core()->virtual_time(); }

  const v1::WorkerSpec& spec_;
  const v1::AssignmentSpec& assignment_;
  TrialFiles files_;
  TrialControl& control_;
  EventLog& events_;
  workload::Progress& progress_;
  runtime::HostEnv env_;

  v1::AssignmentResult result_;
  std::optional<v1::PhaseRecord> phase_;  // the one under way
  std::string limit_text_;                // "`timeouts.build` of 5min"
  std::optional<Error> spool_error_;      // the trial cannot say what it does: it ends

  std::optional<stack::UndoLog> undo_;
  std::unique_ptr<stack::BuiltStack> stack_;
  std::unique_ptr<StackAccess> access_;
  std::unique_ptr<workload::Workload> workload_;
  std::unique_ptr<WindowMeter> meter_;
  double others_share_ = 0;  // of the host's processors, in the step where it was largest
  stack::KeptInMemory kept_in_memory_;       // of the last time that caches were dropped
  std::vector<workload::BytesMoved> moved_;  // by step
};

}  // namespace labrack::worker
