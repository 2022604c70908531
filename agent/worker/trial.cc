#include "agent/worker/trial.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "agent/inventory/environment.h"
#include "agent/inventory/host_facts.h"
#include "agent/worker/result_size.h"
#include "storage/base/units.h"

namespace labrack::worker {
namespace {

std::int64_t MonoNs(TimePoint at) { return at.time_since_epoch().count(); }

std::string PhaseText(v1::PhaseKind phase) {
  switch (phase) {
    case v1::PHASE_CLAIM:
      return "claim";
    case v1::PHASE_BUILD:
      return "build";
    case v1::PHASE_LAY_OUT:
      return "lay out";
    case v1::PHASE_SETTLE:
      return "settle";
    case v1::PHASE_READY:
      return "ready";
    case v1::PHASE_WARM_UP:
      return "warm up";
    case v1::PHASE_MEASURE:
      return "measure";
    case v1::PHASE_DRAIN:
      return "drain";
    case v1::PHASE_VERIFY:
      return "verify";
    case v1::PHASE_COLLECT:
      return "collect";
    case v1::PHASE_TEAR_DOWN:
      return "tear down";
    default:
      return "start";
  }
}

v1::Outcome OutcomeOf(v1::PhaseEnd end) {
  if (end == v1::PHASE_END_TIMED_OUT) return v1::OUTCOME_TIMED_OUT;
  if (end == v1::PHASE_END_CANCELLED) return v1::OUTCOME_CANCELLED;
  return v1::OUTCOME_FAILED;
}

// Of a spec written by hand, which may leave it out.
constexpr Nanoseconds kLimitDefault = std::chrono::hours(1);

Nanoseconds LimitOf(std::int64_t limit_ns) {
  return limit_ns > 0 ? Nanoseconds(limit_ns) : kLimitDefault;
}

}  // namespace

Trial::Trial(const v1::WorkerSpec& spec, TrialFiles files, TrialControl& control, EventLog& events,
             workload::Progress& progress)
    : spec_(spec),
      assignment_(spec.assignment()),
      files_(std::move(files)),
      control_(control),
      events_(events),
      progress_(progress) {
  result_.set_assignment_id(assignment_.assignment_id());
  result_.set_epoch(assignment_.epoch());
  result_.set_agent_id(spec.agent_id());
  result_.set_clock("monotonic");
}

Result<v1::AssignmentResult> Trial::Run() {
  result_.mutable_environment_verdict()->set_outcome(v1::OUTCOME_OK);
  Result<void> prepared = Prepare();
  if (prepared) {
    const Result<void> measured = RunSteps();
    if (measured) SetMeasurement(v1::OUTCOME_OK, "");
    Collect();
  }
  TearDown();
  if (events_.dropped_count() > 0) {
    v1::Warning& warning = *result_.add_warnings();
    warning.set_code("LW304");
    warning.set_message(
        fmt::format("{} details of the trial found no room in the spool", events_.dropped_count()));
    warning.set_cure("make room on the file system of the agent's state directory");
  }
  FitResult(result_);
  if (Result<void> finished = events_.Finish(result_); !finished) {
    return std::unexpected(finished.error());
  }
  return result_;
}

// --- phases ---

Result<void> Trial::BeginPhase(v1::PhaseKind phase, std::string step, TimePoint at) {
  if (phase_) EndPhase(v1::PHASE_END_DONE, "", at);
  phase_.emplace();
  phase_->set_phase(phase);
  phase_->set_step(step);
  phase_->set_begin_mono_ns(MonoNs(at));
  control_.BeginPhase(phase, std::move(step), at);
  Result<void> told = events_.PhaseBegun(phase);
  if (!told && !spool_error_) spool_error_ = told.error();
  return told;
}

void Trial::EndPhase(v1::PhaseEnd end, std::string reason, TimePoint at) {
  phase_->set_end(end);
  phase_->set_reason(std::move(reason));
  phase_->set_end_mono_ns(std::max(MonoNs(at), phase_->begin_mono_ns()));
  *result_.add_phases() = *phase_;
  Result<void> told = events_.PhaseEnded(*phase_);
  if (!told && !spool_error_) spool_error_ = told.error();
  phase_.reset();
}

void Trial::LimitPhases(const char* field, std::int64_t limit_ns, TimePoint from) {
  const Nanoseconds limit = LimitOf(limit_ns);
  limit_text_ = fmt::format("`timeouts.{}` of {}", field, FormatDurationExact(limit));
  control_.SetDeadline(from + limit);
}

v1::PhaseEnd Trial::EndOf(const Error& error) const {
  const TrialControl::View view = control_.view();
  if (view.timed_out || error.code() == Errc::kTimedOut) return v1::PHASE_END_TIMED_OUT;
  if (view.stop_reason && error.code() == Errc::kCancelled) return v1::PHASE_END_CANCELLED;
  return v1::PHASE_END_FAILED;
}

std::string Trial::ReasonOf(const Error& error) const {
  const TrialControl::View view = control_.view();
  if (view.timed_out) {
    return fmt::format("took longer than {} allows: {}", limit_text_, error.ToString());
  }
  if (view.stop_reason && error.code() == Errc::kCancelled) return *view.stop_reason;
  return error.ToString();
}

Result<void> Trial::FinishPhase(const Result<void>& done) {
  if (!phase_) return done;
  if (done) {
    EndPhase(v1::PHASE_END_DONE, "", Now());
    return done;
  }
  EndPhase(EndOf(done.error()), ReasonOf(done.error()), Now());
  return done;
}

Result<void> Trial::RunPhase(v1::PhaseKind phase, const std::string& step, const Body& body) {
  if (control_.cancel().cancelled()) return Fail(Errc::kCancelled, "stopped");
  if (Result<void> begun = BeginPhase(phase, step, Now()); !begun) return FinishPhase(begun);
  return FinishPhase(body());
}

void Trial::SetMeasurement(v1::Outcome outcome, std::string reason) {
  if (result_.measurement().outcome() != v1::OUTCOME_UNSPECIFIED) return;
  result_.mutable_measurement()->set_outcome(outcome);
  result_.mutable_measurement()->set_reason(std::move(reason));
}

void Trial::FailEnvironment(v1::PhaseKind phase, const Error& error) {
  if (result_.environment_verdict().outcome() != v1::OUTCOME_OK) return;
  const v1::PhaseEnd end = EndOf(error);
  if (end == v1::PHASE_END_CANCELLED) return;  // the host is not to blame
  result_.mutable_environment_verdict()->set_outcome(OutcomeOf(end));
  result_.mutable_environment_verdict()->set_reason(PhaseText(phase) + ": " + ReasonOf(error));
}

// --- from nothing to a stack with files ---

Result<void> Trial::Prepare() {
  struct Stage {
    v1::PhaseKind phase;
    const char* limit_field;
    std::int64_t limit_ns;
    Result<void> (Trial::*run)();
  };
  const v1::PhaseTimeouts& limits = assignment_.timeouts();
  const Stage stages[] = {{v1::PHASE_CLAIM, "build", limits.build(), &Trial::Claim},
                          {v1::PHASE_BUILD, "build", limits.build(), &Trial::Build},
                          {v1::PHASE_LAY_OUT, "layout", limits.layout(), &Trial::LayOut},
                          {v1::PHASE_SETTLE, "layout", limits.layout(), &Trial::Settle}};
  for (const Stage& stage : stages) {
    // Claim and build share a limit, and so do lay out and settle.
    if (stage.phase != v1::PHASE_BUILD && stage.phase != v1::PHASE_SETTLE) {
      LimitPhases(stage.limit_field, stage.limit_ns, Now());
    }
    Result<void> done = RunPhase(stage.phase, "", [&] { return (this->*stage.run)(); });
    if (done) continue;
    FailEnvironment(stage.phase, done.error());
    const bool cancelled = EndOf(done.error()) == v1::PHASE_END_CANCELLED;
    SetMeasurement(cancelled ? v1::OUTCOME_CANCELLED : v1::OUTCOME_NOT_STARTED,
                   PhaseText(stage.phase) + ": " + ReasonOf(done.error()));
    return done;
  }
  return {};
}

Result<void> Trial::Claim() {
  *result_.mutable_environment() = inventory::CollectEnvironment(
      spec_.has_inventory() ? &spec_.inventory() : nullptr, spec_.disks_dir());
  result_.set_host_name(result_.environment().host().host_name());
  Result<stack::UndoLog> undo = stack::UndoLog::Open(files_.undo_log());
  if (!undo) return std::unexpected(undo.error());
  undo_ = *std::move(undo);
  return {};
}

Result<void> Trial::Build() {
  const std::string name = TrialName(assignment_.assignment_id(), assignment_.epoch());
  stack::BuildRequest request;
  request.stack = assignment_.stack();
  request.disks = assignment_.disks();
  request.stand_in = assignment_.stand_in();
  request.disks_dir = std::filesystem::path(spec_.disks_dir()) / name;
  request.mount_dir = std::filesystem::path(spec_.mount_dir()) / name;
  request.tag = name;
  request.timeout = LimitOf(assignment_.timeouts().build());
  request.seed = Seed{assignment_.seed()};
  request.cancel = &control_.cancel();
  request.allowed_directories = {spec_.directories().begin(), spec_.directories().end()};
  Result<std::unique_ptr<stack::BuiltStack>> built = stack::BuildStack(request, *undo_);
  if (!built) return std::unexpected(built.error());
  stack_ = *std::move(built);
  meter_ = std::make_unique<WindowMeter>(stack_->devices(), stack_->core());
  if (virtual_time()) result_.set_clock("virtual");
  result_.mutable_environment()->set_backing_device(stack_->backing());
  std::string note = stack_->description();
  if (!assignment_.stand_in().empty()) {
    note = fmt::format("a directory stands in for {}: {}", assignment_.stack().name(),
                       assignment_.stand_in());
  }
  result_.set_stack_note(note);
  return {};
}

Result<void> Trial::LayOut() {
  Result<std::unique_ptr<StackAccess>> access = StackAccess::Open(*stack_);
  if (!access) return std::unexpected(access.error());
  access_ = *std::move(access);
  const v1::Inventory& host = result_.environment().host();
  workload::Target target{.file_system = &access_->files(),
                          .directory = stack_->directory(),
                          .scratch = files_.directory(),
                          .allow_exec = spec_.allow_exec(),
                          .launcher = &access_->launcher(),
                          .memory_available = inventory::MemoryAvailable()};
  // On our own core nothing is cached, and all clients share one thread.
  if (stack_->core() == nullptr) {
    target.memory = Bytes(host.memory_bytes());
    target.cpu_count = host.cpu_count();
  }
  Result<std::unique_ptr<workload::Workload>> made = workload::MakeWorkload(
      assignment_.workload(), Seed{assignment_.seed()}, target, access_->env());
  if (!made) return std::unexpected(made.error());
  workload_ = *std::move(made);
  workload::StepContext context;
  context.start = access_->env().Now();
  context.cancel = &control_.cancel();
  context.progress = &progress_;
  progress_.Reset();
  Result<workload::LayOutReport> laid_out = workload_->LayOut(context);
  if (!laid_out) return std::unexpected(laid_out.error());
  result_.set_laid_out_bytes(laid_out->written.count());
  return {};
}

Result<void> Trial::Settle() {
  if (Result<void> synced = access_->Sync(); !synced) return synced;
  return stack_->Check();
}

Result<void> Trial::DropCaches() {
  Result<void> dropped = access_->DropCaches();
  if (dropped) kept_in_memory_ = stack_->KeptInMemory();
  return dropped;
}

// --- the steps ---

Result<void> Trial::RunSteps() {
  const std::vector<workload::StepInfo> steps = workload_->Steps();
  for (std::size_t step = 0; step < steps.size(); ++step) {
    Result<void> done = RunStep(step, steps[step]);
    if (!done) {
      const v1::PhaseEnd end = EndOf(done.error());
      SetMeasurement(OutcomeOf(end),
                     fmt::format("step {}: {}", steps[step].name, ReasonOf(done.error())));
      return done;
    }
    if (step != workload_->VerifyAfter()) continue;
    if (Result<void> ready = VerifyBefore(steps, step + 1); !ready) {
      SetMeasurement(v1::OUTCOME_FAILED,
                     fmt::format("step {}: {}", steps[step + 1].name, ready.error().ToString()));
      return ready;
    }
  }
  return {};
}

// The steps that follow find the same, whatever the playbook says about verification: everything
// written is on the medium, and the file system was not mounted anew for Verify's sake. An error is
// that of a stack on which nothing can run any more.
Result<void> Trial::VerifyBefore(const std::vector<workload::StepInfo>& steps, std::size_t next) {
  if (next == steps.size()) {
    Verify(/*unmount=*/true);
    return {};
  }
  Verify(workload_->WantsColdCache(next));
  if (!access_->usable()) return Fail(Errc::kNotFound, "the stack could not be mounted again");
  return access_->Sync();
}

Result<TimePoint> Trial::PassGate(std::size_t step, const std::string& name) {
  LimitPhases("ready", assignment_.timeouts().ready(), Now());
  if (Result<void> begun = BeginPhase(v1::PHASE_READY, name, Now()); !begun) {
    return std::unexpected(begun.error());
  }
  if (!assignment_.barrier()) return Now();
  return control_.WaitForGo(static_cast<std::uint32_t>(step));
}

void Trial::EnterStepPhase(const std::string& name, v1::PhaseKind phase, TimePoint at) {
  if (phase == v1::PHASE_MEASURE) meter_->Open();
  if (phase == v1::PHASE_DRAIN) meter_->Close();
  (void)BeginPhase(phase, name, virtual_time() ? Now() : at);
}

Result<void> Trial::RunStep(std::size_t step, const workload::StepInfo& info) {
  if (workload_->WantsColdCache(step)) {
    LimitPhases("layout", assignment_.timeouts().layout(), Now());
    Result<void> cold = RunPhase(v1::PHASE_SETTLE, info.name, [this] { return DropCaches(); });
    if (!cold) {
      FailEnvironment(v1::PHASE_SETTLE, cold.error());
      return cold;
    }
  }
  Result<TimePoint> start = PassGate(step, info.name);
  if (!start) return FinishPhase(std::unexpected(start.error()));

  meter_->Reset();
  // From the start on, one limit for warm up, measure and drain.
  LimitPhases("measure", assignment_.timeouts().measure(), *start);
  progress_.Reset();
  workload::StepContext context;
  context.start = *start;
  context.barrier = assignment_.barrier();
  if (virtual_time()) {
    // Nothing of another host happens in this time.
    context.start = access_->env().Now();
    context.barrier = false;
  }
  context.cancel = &control_.cancel();
  context.progress = &progress_;
  context.enter = [&](v1::PhaseKind phase, TimePoint at) { EnterStepPhase(info.name, phase, at); };
  workload::StepOutcome outcome = workload_->RunStep(step, context);
  meter_->Close();
  meter_->Fill(outcome.result);
  if (outcome.result.has_cpu()) {
    outcome.result.mutable_cpu()->set_data_making_ns(outcome.making.count());
  }
  others_share_ = std::max(others_share_, meter_->others_share());
  if (!meter_->note().empty()) events_.Note(meter_->note());
  if (spool_error_ && outcome.status) outcome.status = std::unexpected(*spool_error_);
  Result<void> finished = FinishPhase(outcome.status);

  *result_.add_steps() = outcome.result;
  moved_.push_back(outcome.moved);
  v1::StepResult totals = outcome.result;
  totals.clear_intervals();
  events_.StepDone(totals);
  return finished;
}

void Trial::Verify(bool unmount) {
  LimitPhases("verify", assignment_.timeouts().verify(), Now());
  Result<void> verified = RunPhase(v1::PHASE_VERIFY, "", [this, unmount]() -> Result<void> {
    // What memory still holds would be compared otherwise, not what is on the medium. (Without
    // unmounting, Verify drops the data pages file by file; they must be clean for that.)
    if (workload_->ReadsBack()) {
      Result<void> dropped = unmount ? DropCaches() : access_->Sync();
      if (!dropped) return dropped;
    }
    workload::StepContext context;
    context.start = access_->env().Now();
    context.cancel = &control_.cancel();
    context.progress = &progress_;
    progress_.Reset();
    Result<workload::VerifyReport> report = workload_->Verify(context);
    if (!report) return std::unexpected(report.error());
    result_.set_verified(report->outcome);
    result_.set_verify_detail(report->detail);
    result_.set_verified_bytes(report->bytes.count());
    return {};
  });
  if (verified) return;
  result_.set_verify_detail(ReasonOf(verified.error()));
  FailEnvironment(v1::PHASE_VERIFY, verified.error());
}

// Only what a step wanted to find cold: file data, and for `files` names and attributes too.
std::string Trial::KeptThatCounts() const {
  bool wanted = false;
  for (std::size_t step = 0; step < moved_.size(); ++step)
    wanted |= workload_->WantsColdCache(step);
  if (!wanted) return "";
  if (!kept_in_memory_.data.empty()) return kept_in_memory_.data;
  return assignment_.workload().has_files() ? kept_in_memory_.names : "";
}

// Neither a stop nor a limit that has passed keeps it from saying what was seen: it takes no time.
void Trial::Collect() {
  LimitPhases("verify", assignment_.timeouts().verify(), Now());
  (void)BeginPhase(v1::PHASE_COLLECT, "", Now());
  const Result<void> collected = FinishPhase([this] {
    std::vector<v1::Warning> warnings = workload_->Warnings();
    for (int i = 0; i < result_.steps_size(); ++i) {
      const auto step = static_cast<std::size_t>(i);
      AddDeviceWarnings(result_.steps(i), moved_[step], workload_->WantsColdCache(step), warnings);
    }
    AddHostWarnings(others_share_, warnings);
    AddCacheWarning(KeptThatCounts(), warnings);
    for (v1::Warning& warning : warnings) *result_.add_warnings() = std::move(warning);
    return stack_->Check();
  }());
  if (!collected) FailEnvironment(v1::PHASE_COLLECT, collected.error());
}

// --- back to nothing ---

void Trial::TearDown() {
  // A stop that came after the last step changes nothing any more.
  SetMeasurement(v1::OUTCOME_NOT_STARTED, "ended before anything was measured");
  control_.BeginTearDown();
  LimitPhases("teardown", assignment_.timeouts().teardown(), Now());
  (void)BeginPhase(v1::PHASE_TEAR_DOWN, "", Now());
  workload_.reset();
  access_.reset();
  stack_.reset();
  Result<void> undone;
  if (undo_) {
    undone = undo_->RunAll([this](const stack::UndoStep& step, const Result<void>& done) {
      if (!done) events_.Note(step.Describe() + ": " + done.error().ToString());
    });
  }
  result_.mutable_clean_up()->set_outcome(undone ? v1::OUTCOME_OK : v1::OUTCOME_FAILED);
  if (!undone) result_.mutable_clean_up()->set_reason(undone.error().ToString());
  EndPhase(undone ? v1::PHASE_END_DONE : v1::PHASE_END_FAILED,
           undone ? "" : undone.error().ToString(), Now());
}

}  // namespace labrack::worker
