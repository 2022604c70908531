#include "agent/session/held_trial.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

namespace labrack::session {
namespace {

// How often what cannot be waited for is looked at.
constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(200);
constexpr Nanoseconds kConnectInterval = std::chrono::milliseconds(10);

spool::Identity IdentityOf(const v1::AssignmentSpec& spec) {
  return {.assignment_id = spec.assignment_id(), .epoch = spec.epoch()};
}

// How far this trial's records are in the exporter's counters. Not synced: a reboot loses nothing
// but the certainty of that.
std::filesystem::path ExportedFile(const worker::TrialFiles& files) {
  return files.directory() / "exported";
}

}  // namespace

HeldTrial::HeldTrial(JournalRow row, const TrialContext& context)
    : row_(std::move(row)),
      context_(context),
      files_(context.trials() / worker::TrialName(row_.spec.assignment_id(), row_.spec.epoch())),
      tail_(files_.spool(), IdentityOf(row_.spec)),
      cleaner_(files_, context.worker_program, Nanoseconds(row_.spec.timeouts().teardown())),
      clock_(files_.directory() / "clock") {
  tail_.set_observer([this](const v1::EventRecord& event) { ObserveEvent(event); });
}

// --- start ---

Result<void> HeldTrial::MakeDirectory() {
  std::error_code error;
  std::filesystem::create_directories(files_.directory(), error);
  if (error) {
    return std::unexpected(Error::FromErrno(error.value(), "mkdir", files_.directory().string()));
  }
  const std::filesystem::path state = std::filesystem::absolute(context_.config.state());
  v1::WorkerSpec local;
  *local.mutable_assignment() = row_.spec;
  local.set_disks_dir((state / "disks").string());
  local.set_mount_dir((state / "mounts").string());
  *local.mutable_directories() = context_.config.directories();
  local.set_allow_exec(context_.config.allow_exec());
  local.set_agent_id(context_.agent_id);
  *local.mutable_inventory() = context_.inventory;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(local, &json);
  if (!status.ok()) {
    return Fail(Errc::kInternal, files_.spec().string(), std::string(status.message()));
  }
  return worker::WriteFile(files_.spec(), json, /*durable=*/false);
}

void HeldTrial::Start(TimePoint now) {
  last_step_ = now;
  // Before the fork: after a crash in between it is known that the worker may have been started.
  Result<void> ready = context_.journal->Start(row_.spec, context_.boot_id);
  if (context_.journal->failure()) return;  // the agent ends; the next one reads what is durable
  row_.state = HeldState::kStarted;
  row_.boot_id = context_.boot_id;
  if (ready) ready = MakeDirectory();
  if (ready) {
    Result<WorkerProcess> started = WorkerProcess::Start(context_.worker_program, files_,
                                                         worker::RunsPrograms(spec().workload()));
    if (started) {
      process_ = *std::move(started);
      stage_ = Stage::kRunning;
      if (context_.exporter != nullptr) context_.exporter->TrialBegan(row_.spec);
      Wake(now + kConnectInterval);
      return;
    }
    ready = std::unexpected(started.error());
  }
  spdlog::error("{}: not started: {}", spec().assignment_id(), ready.error().ToString());
  end_ = {.started = false,
          .how = "the worker was not started: " + ready.error().ToString(),
          .stop_reason = {}};
  UndoIsOver("");
  Wake(now);
}

void HeldTrial::Recover(TimePoint now) {
  last_step_ = now;
  Wake(now);
  if (row_.state == HeldState::kAccepted) return;
  if (context_.exporter != nullptr) context_.exporter->TrialBegan(row_.spec);
  stamped_ = row_.state == HeldState::kSealed;
  clock_.Load();
  if (const Result<std::string> text = worker::ReadFile(ExportedFile(files_), 64)) {
    exported_seq_ = std::strtoull(text->c_str(), nullptr, 10);
  }
  ReadSpool();
  const Result<WorkerProcess::Holder> holder = WorkerProcess::FindHolder(files_);
  if (!holder) {
    spdlog::error("{}: looking for its worker: {}", spec().assignment_id(),
                  holder.error().ToString());
  }
  // What cannot be looked at is not dead.
  const bool may_live = !holder || *holder == WorkerProcess::Holder::kWorker;
  if (may_live) process_ = WorkerProcess::Found(files_);
  if (tail_.sealed()) {
    BecomeSealed();
    return;
  }
  if (may_live) {
    spdlog::info("{}: the worker is alive, going on with it", spec().assignment_id());
    stage_ = Stage::kRunning;
    return;
  }
  end_.host_rebooted = row_.boot_id != context_.boot_id;
  end_.started = tail_.last_seq() > 0 || std::filesystem::exists(files_.undo_log());
  WorkerIsDead(end_.started ? "it ended while no agent was there"
                            : "the agent ended before the worker was started",
               now);
}

// --- the worker at work ---

void HeldTrial::ObserveEvent(const v1::EventRecord& event) {
  telemetry::Exporter* exporter = context_.exporter;
  if (event.body_case() == v1::EventRecord::kPhaseBegun && exporter != nullptr) {
    const Nanoseconds ago =
        MonotonicClock().Now().time_since_epoch() - Nanoseconds(event.mono_ns());
    exporter->PhaseBegan(row_.spec, event.phase_begun(), WallClockNow() - ago);
  }
  if (event.has_step_done()) {
    steps_done_.insert(event.step_done().step());
    if (exporter != nullptr && IsNewToExporter(event.seq()))
      exporter->StepDone(row_.spec, event.step_done());
  }
  if (event.has_result() && !outcome_told_) {
    outcome_told_ = true;
    const v1::AssignmentResult& result = event.result();
    spdlog::info("{}: {}{}{}", spec().assignment_id(),
                 v1::Outcome_Name(result.measurement().outcome()),
                 result.measurement().reason().empty() ? "" : ": ", result.measurement().reason());
    if (exporter != nullptr && IsNewToExporter(event.seq()))
      exporter->TrialEnded(row_.spec, result.measurement().outcome());
  }
}

bool HeldTrial::IsNewToExporter(std::uint64_t seq) {
  if (seq <= exported_seq_) return false;
  exported_seq_ = seq;
  (void)worker::WriteFile(ExportedFile(files_), std::to_string(seq) + "\n", /*durable=*/false);
  return true;
}

void HeldTrial::ReadSpool() {
  Result<void> looked = tail_.Look();
  if (!looked) {
    spdlog::error("{}: spool: {}", spec().assignment_id(), looked.error().ToString());
  }
}

void HeldTrial::TakeReport(const v1::WorkerReport& report, TimePoint now) {
  silence_ = Nanoseconds(0);
  switch (report.body_case()) {
    case v1::WorkerReport::kAtGate:
      gate_.Reached(report.at_gate().gate_index());
      gate_told_ = false;
      break;
    case v1::WorkerReport::kProgress:
      progress_ = report.progress();
      if (progress_->phase() != v1::PHASE_READY) gate_.Left();
      TakeClock(now);
      break;
    case v1::WorkerReport::kDoorbell:
      ReadSpool();
      break;
    case v1::WorkerReport::kTotals:
      // A step whose record has been read already would count twice.
      if (context_.exporter != nullptr && !steps_done_.contains(report.totals().step())) {
        context_.exporter->StepRuns(
            row_.spec, {report.totals().operations().begin(), report.totals().operations().end()});
      }
      break;
    case v1::WorkerReport::BODY_NOT_SET:
      break;
  }
  Wake(now + kLookInterval);
}

void HeldTrial::TalkToWorker(TimePoint now) {
  if (!link_) {
    Result<Descriptor> socket = files_.Connect();
    if (!socket) {
      Wake(now + (tail_.last_seq() == 0 ? kConnectInterval : kLookInterval));
      return;
    }
    link_ = std::make_unique<worker::FrameSocket>(*std::move(socket));
    stop_told_ = false;
  }
  const Result<void> received = link_->Receive();
  for (;;) {
    v1::WorkerReport report;
    const Result<bool> next = link_->Next(report);
    if (!next || !*next) break;
    TakeReport(report, now);
  }
  if (!received) {
    link_.reset();
    Wake(now + kConnectInterval);
    return;
  }
  if (stop_reason_ && !stop_told_) {
    v1::WorkerCommand command;
    command.mutable_stop()->set_reason(*stop_reason_);
    stop_told_ = link_->Send(command).has_value();
  }
  (void)link_->Flush();
}

void HeldTrial::Go(std::uint32_t gate_index, TimePoint start) {
  if (!link_) return;
  v1::WorkerCommand command;
  command.mutable_go()->set_gate_index(gate_index);
  command.mutable_go()->set_start_mono_ns(start.time_since_epoch().count());
  (void)link_->Send(command);
}

bool HeldTrial::TakeGateReady() {
  return gate_.index().has_value() && !std::exchange(gate_told_, true);
}

void HeldTrial::Reconnected() {
  tail_.Rewind();
  gate_told_ = false;
}

void HeldTrial::Stop(const std::string& reason, TimePoint now) {
  if (stop_reason_ || sealed()) return;
  stop_reason_ = reason;
  spdlog::info("{}: stop: {}", spec().assignment_id(), reason);
  if (stage_ == Stage::kWaiting) {
    end_ = {.started = false, .how = "", .stop_reason = reason};
    UndoIsOver("");
  }
  terminate_at_ = now + kStopToTerm;
  Wake(now);
}

void HeldTrial::GiveUp(const std::string& reason, TimePoint now) {
  if (stage_ != Stage::kWaiting) return;
  end_ = {.started = false, .how = reason, .stop_reason = {}};
  UndoIsOver("");
  Wake(now);
}

// Asked to stop, the worker has a while to reach its tear-down, which then has its own limit. Then
// TERM, then KILL.
void HeldTrial::Escalate(TimePoint now) {
  if (!terminate_at_) return;
  const bool tearing_down = progress_ && progress_->phase() == v1::PHASE_TEAR_DOWN;
  if (tearing_down && !kill_at_) {
    const Nanoseconds left = Nanoseconds(spec().timeouts().teardown()) + kStopToTerm -
                             Nanoseconds(progress_->phase_elapsed_ns());
    terminate_at_ = std::max(*terminate_at_, now + left);
  }
  if (!kill_at_ && now >= *terminate_at_) {
    process_->Terminate();
    kill_at_ = now + kTermToKill;
  }
  if (kill_at_ && now >= *kill_at_) {
    KillWorker(now);
    kill_at_ = now + kTermToKill;
  }
  Wake(kill_at_.value_or(*terminate_at_));
}

void HeldTrial::Watch(TimePoint now) {
  // A pause of the whole machine is no silence of the worker's.
  silence_ += std::min<Nanoseconds>(now - last_step_, std::chrono::seconds(2));
  if (silence_ < kWorkerSilenceMax) return;
  silence_ = Nanoseconds(0);
  end_.timed_out = true;
  spdlog::error("{}: the worker says nothing any more and is killed", spec().assignment_id());
  KillWorker(now);
}

void HeldTrial::KillWorker(TimePoint now) {
  if (!killed_at_) killed_at_ = now;
  process_->Kill();
}

void HeldTrial::StepRunning(TimePoint now) {
  TalkToWorker(now);
  if (tail_.sealed()) {
    BecomeSealed();
    return;
  }
  if (std::optional<WorkerProcess::End> ended = process_->Poll()) {
    ReadSpool();
    if (tail_.sealed()) {
      BecomeSealed();
    } else {
      WorkerIsDead(HowItEnded(*ended), now);
    }
    return;
  }
  Escalate(now);
  Watch(now);
  if (is_unkillable(now)) WorkerHangs();
}

// --- a worker that died ---

// With what a worker says last, which is the reason when it has no other way to say it.
std::string HeldTrial::HowItEnded(const WorkerProcess::End& end) const {
  if (end.exit_code <= 0) return end.how;
  const std::string words = LastWords(files_);
  if (!words.empty()) return end.how + ": " + words;
  const bool no_space = end.exit_code == worker::kExitNoSpace;
  return end.how + (no_space ? ": No space left for its result in the spool" : "");
}

void HeldTrial::WorkerIsDead(std::string how, TimePoint now) {
  spdlog::warn("{}: the worker ended without a result: {}", spec().assignment_id(), how);
  process_.reset();
  link_.reset();
  gate_.Left();
  end_.how = std::move(how);
  end_.stop_reason = stop_reason_;
  stage_ = Stage::kUndoing;
  cleaner_.Begin(now, TrialCleaner::Processes::kMaybe);
  Wake(now);
}

// Its result is written for it; what it holds is undone if it ever ends.
void HeldTrial::WorkerHangs() {
  const std::string how = process_->Name() + " was killed and hangs in the kernel";
  spdlog::error("{}: {}", spec().assignment_id(), how);
  link_.reset();
  gate_.Left();
  end_.how = how;
  end_.unkillable = true;
  end_.timed_out = true;
  end_.stop_reason = stop_reason_;
  UndoIsOver(how);
}

void HeldTrial::StepUndoing(TimePoint now) {
  cleaner_.Step(now);
  Wake(cleaner_.next_step());
  if (cleaner_.clean()) {
    UndoIsOver("");
  } else if (cleaner_.given_up()) {
    UndoIsOver(cleaner_.left());
  }
}

void HeldTrial::UndoIsOver(std::string left) {
  clean_up_.left = std::move(left);
  stage_ = Stage::kEnding;
  retry_at_ = TimePoint();
}

void HeldTrial::StepEnding(TimePoint now) {
  if (now < retry_at_) {
    Wake(retry_at_);
    return;
  }
  std::error_code ignored;  // the spool's error says the same, and more
  std::filesystem::create_directories(files_.directory(), ignored);
  Result<void> ended = EndSpool(files_, row_.spec, context_.agent_id,
                                context_.inventory.host_name(), end_, clean_up_);
  if (ended) {
    ReadSpool();
    if (tail_.sealed()) BecomeSealed();
    return;
  }
  if (end_.held_up.empty()) {
    end_.held_up = ended.error().ToString();
    spdlog::error("{}: the result cannot be written, trying again: {}", spec().assignment_id(),
                  end_.held_up);
  }
  retry_at_ = now + kRetryInterval;
  Wake(retry_at_);
}

void HeldTrial::BecomeSealed() {
  stage_ = Stage::kSealed;
  link_.reset();
  gate_.Left();
  progress_.reset();
}

// The result is there; the host is not free before the worker has ended, and nothing of it is left.
void HeldTrial::StepSealed(TimePoint now) {
  if (process_) {
    const std::optional<WorkerProcess::End> ended = process_->Poll();
    ended_well_ =
        ended && (ended->exit_code == worker::kExitOk || ended->exit_code == worker::kExitNotOk);
    if (ended) process_.reset();
  }
  if (process_) {
    if (!exit_limit_) exit_limit_ = now + kExitGrace;
    if (now >= *exit_limit_) KillWorker(now);
    return;
  }
  const bool none_left = ended_well_ && !worker::RunsPrograms(spec().workload());
  cleaner_.Begin(now, none_left ? TrialCleaner::Processes::kNone : TrialCleaner::Processes::kMaybe);
  cleaner_.Step(now);
  Wake(cleaner_.next_step());
}

std::string HeldTrial::left() const {
  if (!sealed()) return {};
  std::string what;
  if (process_ && is_unkillable(last_step_)) {
    what = process_->Name() + " was killed and hangs in the kernel";
  } else if (cleaner_.given_up()) {
    what = cleaner_.left();
  }
  return what.empty() ? what : spec().assignment_id() + ": " + what;
}

// --- towards the controller ---

void HeldTrial::Step(TimePoint now) {
  next_step_ = now + std::chrono::seconds(1);
  switch (stage_) {
    case Stage::kWaiting:
      break;
    case Stage::kRunning:
      StepRunning(now);
      break;
    case Stage::kUndoing:
      StepUndoing(now);
      break;
    case Stage::kEnding:
      break;
    case Stage::kSealed:
      StepSealed(now);
      break;
  }
  // Straight on from what has just been undone.
  if (stage_ == Stage::kEnding) StepEnding(now);
  last_step_ = now;
}

void HeldTrial::AddPolls(std::vector<pollfd>& polls) const {
  if (link_) {
    const int events = link_->wants_to_write() ? POLLIN | POLLOUT : POLLIN;
    polls.push_back({.fd = link_->fd(), .events = static_cast<short>(events), .revents = 0});
  }
  if (process_ && process_->poll_fd() >= 0) {
    polls.push_back({.fd = process_->poll_fd(), .events = POLLIN, .revents = 0});
  }
  if (cleaner_.poll_fd() >= 0) {
    polls.push_back({.fd = cleaner_.poll_fd(), .events = POLLIN, .revents = 0});
  }
}

void HeldTrial::Wake(TimePoint at) { next_step_ = std::min(next_step_, at); }

// Once for each step, at its beginning.
void HeldTrial::TakeClock(TimePoint now) {
  const v1::PhaseKind phase = progress_->phase();
  const bool measured =
      phase == v1::PHASE_WARM_UP || phase == v1::PHASE_MEASURE || phase == v1::PHASE_DRAIN;
  if (!measured || progress_->step() == clock_step_) return;
  const std::optional<ClockEstimate> clock = context_.clock_sync->Best(now);
  if (!clock) return;
  clock_step_ = progress_->step();
  clock_.Take(*clock, context_.controller_epoch);
}

// The figures are durable before they are sent: a result that is sent again must be the same.
bool HeldTrial::Stamp(TimePoint now) {
  std::optional<ClockEstimate> clock = clock_.figures();
  if (!clock && row_.boot_id != context_.boot_id && !row_.boot_id.empty()) {
    clock = {.offset = Nanoseconds(0), .uncertainty = kUncertaintyUnknown, .round_trip = {}};
  }
  if (!clock) clock = context_.clock_sync->Best(now);
  if (!clock) return false;
  row_.clock_offset_ns = clock->offset.count();
  row_.clock_uncertainty_ns = clock->uncertainty.count();
  Result<void> sealed =
      context_.journal->Seal(row_.spec, row_.clock_offset_ns, row_.clock_uncertainty_ns);
  if (!sealed) {
    spdlog::error("{}: journal: {}", spec().assignment_id(), sealed.error().ToString());
    return false;
  }
  row_.state = HeldState::kSealed;
  stamped_ = true;
  return true;
}

Result<std::optional<v1::Events>> HeldTrial::NextBatch(TimePoint now) {
  return tail_.Next([this, now](v1::AssignmentResult& result) {
    if (!stamped_ && !Stamp(now)) return false;
    result.set_clock_offset_ns(row_.clock_offset_ns);
    result.set_clock_uncertainty_ns(row_.clock_uncertainty_ns);
    return true;
  });
}

v1::AssignmentState HeldTrial::state() const {
  if (stage_ == Stage::kWaiting) return v1::ASSIGNMENT_STATE_ACCEPTED;
  return sealed() ? v1::ASSIGNMENT_STATE_SEALED : v1::ASSIGNMENT_STATE_RUNNING;
}

bool HeldTrial::Close() {
  if (!settled()) return false;
  Result<void> closed = context_.journal->Close(spec().assignment_id(), spec().epoch());
  if (!closed) {
    spdlog::error("{}: journal: {}", spec().assignment_id(), closed.error().ToString());
    return false;
  }
  std::error_code error;
  std::filesystem::remove_all(files_.directory(), error);
  if (error) spdlog::warn("{}: {}", files_.directory().string(), error.message());
  return true;
}

}  // namespace labrack::session
