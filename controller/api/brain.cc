#include "controller/api/brain.h"

#include <algorithm>
#include <future>
#include <utility>

#include <spdlog/spdlog.h>

#include "storage/base/exit_codes.h"

namespace labrack::api {
Result<std::unique_ptr<Brain>> Brain::Start(Parts parts) {
  std::unique_ptr<Brain> brain(new Brain(parts));
  if (Result<void> loaded = brain->Load(); !loaded) return std::unexpected(loaded.error());
  brain->thread_ = std::thread([raw = brain.get()] { raw->Loop(); });
  return brain;
}

Brain::Brain(Parts parts)
    : parts_(parts),
      roster_(parts.roster),
      scheduler_(parts.run, roster_, parts.catalog->controller_epoch()),
      watches_([this](const std::string& run_id, const std::set<std::uint32_t>* trials) {
        return Describe(run_id, trials);
      }),
      controller_epoch_(parts.catalog->controller_epoch()) {}

Brain::~Brain() { Stop(); }

Result<void> Brain::Load() {
  const run::Moment now = Now();
  roster_.Tick(now.mono);
  hello_refilled_ = now.mono;
  Result<std::vector<catalog::AgentRow>> agents = catalog::ReadAgents(parts_.catalog->database());
  if (!agents) return std::unexpected(agents.error());
  for (catalog::AgentRow& agent : *agents) roster_.Remember(std::move(agent));
  Result<catalog::Totals> totals = catalog::ReadTotals(parts_.catalog->database());
  if (!totals) return std::unexpected(totals.error());
  Result<std::vector<catalog::StoredRun>> runs = parts_.catalog->OpenRuns();
  if (!runs) return std::unexpected(runs.error());
  parts_.metrics->Begin(*totals, *runs);
  if (parts_.open_runs == OpenRuns::kLeaveAlone) return {};
  for (catalog::StoredRun& run : *runs) {
    spdlog::info("run {} goes on: {}", run.run.id, run.run.plan.playbook_name());
    scheduler_.Restore(std::move(run), now);
  }
  return {};
}

run::Moment Brain::Now() const {
  return {.mono = MonotonicClock().Now(), .wall_ns = WallClockNow().count()};
}

void Brain::Loop() {
  while (!stopping_ && Turn()) {
  }
  watches_.EndAll({grpc::StatusCode::UNAVAILABLE, "the controller has stopped"});
  for (const auto& [id, session] : open_sessions_) {
    session->Close({grpc::StatusCode::UNAVAILABLE, "the controller has stopped"});
  }
  open_sessions_.clear();
  sessions_.clear();
  after_commit_.clear();
  inbox_.Close();
}

Nanoseconds Brain::WaitLimit() const {
  const std::optional<TimePoint> wake = scheduler_.wake();
  if (!wake) return kTickMax;
  return std::clamp(*wake - MonotonicClock().Now(), Nanoseconds(0), kTickMax);
}

bool Brain::Turn() {
  std::vector<Task> tasks = inbox_.Take(WaitLimit(), kBatchMax);
  const run::Moment now = Now();
  Tick(now);
  for (Task& task : tasks) task();
  tasks.clear();
  scheduler_.Advance(now, effects_);
  if (!Commit()) return false;
  Send();
  Publish(now.mono);
  return true;
}

void Brain::Tick(run::Moment now) {
  for (const std::uint64_t session_id : roster_.Tick(now.mono)) {
    parts_.metrics->sessions_dropped().Increment();
    DropSession(session_id, {grpc::StatusCode::DEADLINE_EXCEEDED, "nothing was heard for long"});
  }
  for (const auto& [id, session] : open_sessions_) session->CheckTime(now.mono);
  if (roster_.mass_silence() != mass_silence_) TellMassSilence();
}

void Brain::TellMassSilence() {
  mass_silence_ = roster_.mass_silence();
  parts_.metrics->SetMassSilence(mass_silence_);
  const std::string text =
      mass_silence_ ? "many agents fell silent together; nobody is given up while that lasts"
                    : "the silence of many agents together is over";
  if (mass_silence_) {
    spdlog::error("alarm: {}", text);
  } else {
    spdlog::info("{}", text);
  }
  for (const std::string& run_id : scheduler_.run_ids()) effects_.notes.push_back({run_id, text});
}

bool Brain::Commit() {
  if (effects_.changes.empty()) return true;
  const TimePoint began = MonotonicClock().Now();
  Result<catalog::Applied> applied = parts_.catalog->Apply(effects_.changes);
  if (!applied) {
    GiveUp(applied.error());
    return false;
  }
  parts_.metrics->Committed(effects_.changes, *applied, MonotonicClock().Now() - began);
  if (applied->events_conflicting > 0) {
    spdlog::error("alarm: {} events came again with another body; the first was kept",
                  applied->events_conflicting);
  }
  return true;
}

void Brain::Send() {
  for (run::Command& command : effects_.commands) {
    const fleet::Roster::Agent* agent = roster_.Find(command.agent_id);
    if (agent == nullptr || agent->session_id == 0) continue;  // Hello brings it up again
    const auto session = sessions_.find(agent->session_id);
    if (session == sessions_.end()) continue;
    const bool welcome = command.message.has_welcome();
    // What was meant for the session before is in Welcome, or comes up again.
    if (!welcome && agent->state == fleet::AgentState::kSyncing) continue;
    session->second->Send(std::move(command.message));
    if (welcome) roster_.Welcomed(agent->session_id);
  }
  for (Task& task : std::exchange(after_commit_, {})) task();
}

void Brain::Publish(TimePoint now) {
  run::Effects done = std::exchange(effects_, {});
  if (done.foreign_events > 0) {
    parts_.metrics->foreign_events().Increment(static_cast<double>(done.foreign_events));
  }
  if (done.refused_events > 0) {
    spdlog::error("alarm: {} records of agents leave a gap; they are not acknowledged",
                  done.refused_events);
    parts_.metrics->refused_events().Increment(static_cast<double>(done.refused_events));
  }
  std::set<std::string> ended;
  for (const auto& [run_id, trials] : done.touched) {
    watches_.Touch(run_id, trials);
    const std::optional<v1::RunSummary> summary = scheduler_.Summary(run_id, Now());
    if (!summary || !catalog::IsFinal(summary->state())) continue;
    ended.insert(run_id);
    spdlog::info("run {} has ended: {} {}", run_id, catalog::StateName(summary->state()),
                 summary->verdict());
  }
  for (const run::Note& note : done.notes) {
    spdlog::info("run {}: {}", note.run_id, note.text);
    watches_.AddNote(note.run_id, note.text);
  }
  for (const catalog::Change& change : done.changes) {
    if (const auto* inserted = std::get_if<catalog::InsertRun>(&change)) {
      keys_.erase(inserted->run.idempotency_key);  // the catalog answers from now on
    }
    const auto* put = std::get_if<catalog::PutAssignment>(&change);
    if (put == nullptr || put->assignment.state != catalog::AssignmentState::kAbandoned) continue;
    spdlog::warn("agent {} is given up for {}: {}", put->assignment.agent_id, put->assignment.id,
                 put->assignment.reason);
    roster_.MarkLost(put->assignment.agent_id);
  }
  watches_.Flush(now, ended);
  verdicts_wanted_.insert(done.ended_runs.begin(), done.ended_runs.end());
  WantVerdicts();
  std::map<fleet::AgentState, std::uint64_t> states;
  for (const auto& [id, agent] : roster_.agents()) ++states[agent.state];
  parts_.metrics->SetAgents(states);
  parts_.metrics->SetQueues({.inbox = inbox_.size(),
                             .inbox_bytes = inbox_bytes_.taken(),
                             .jobs = parts_.jobs->size(),
                             .reports_bytes = parts_.jobs->reports().bytes(),
                             .watchers = watches_.size(),
                             .sessions = open_sessions_.size()});
}

void Brain::GiveUp(const Error& error) {
  spdlog::critical("the catalog cannot be written, so nothing can be acknowledged: {}",
                   error.ToString());
  std::function<void(const Error&)> callback;
  {
    std::lock_guard lock(failure_mutex_);
    failure_ = error;
    callback = on_failure_;
  }
  if (callback) callback(error);
}

// Without room in the queue they are wanted again in the next turn.
void Brain::WantVerdicts() {
  std::erase_if(verdicts_wanted_,
                [this](const std::string& run_id) { return WantVerdict(run_id); });
}

// The verdict needs every result and some arithmetic, so it is made on the jobs' thread. When that
// is broken off by the controller's end, the next one finds the run as it is and asks again.
bool Brain::WantVerdict(const std::string& run_id) {
  const bool cancelled = scheduler_.Summary(run_id, Now()).value_or(v1::RunSummary()).state() ==
                         v1::RUN_STATE_CANCELLING;
  const v1::RunState ended_as = cancelled ? v1::RUN_STATE_CANCELLED : v1::RUN_STATE_DONE;
  return parts_.jobs->Post([this, run_id, ended_as](catalog::Reader& reader) {
    std::string verdict = "INVALID";
    std::int32_t exit_code = ToInt(ExitCode::kLabFailed);
    if (const Result<v1::Report> report =
            parts_.jobs->reports().Closing(reader, run_id, ended_as)) {
      verdict = report->verdict();
      exit_code = report->exit_code();
    } else if (report.error().code() == Errc::kUnavailable) {
      return;
    } else {
      spdlog::error("run {}: no verdict: {}", run_id, report.error().ToString());
    }
    PostAlways([this, run_id, verdict, exit_code] {
      scheduler_.SetVerdict(run_id, verdict, exit_code, Now(), effects_);
    });
  });
}

std::optional<Error> Brain::failure() const {
  std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Brain::OnFailure(std::function<void(const Error&)> callback) {
  std::optional<Error> failed;
  {
    std::lock_guard lock(failure_mutex_);
    failed = failure_;
    if (!failed) on_failure_ = std::move(callback);
  }
  if (failed) callback(*failed);
}

void Brain::Drain(Nanoseconds limit) {
  auto done = std::make_shared<std::promise<void>>();  // shared: the task may outlive this call
  std::future<void> waited = done->get_future();
  const bool posted = PostAlways([this, done] {
    draining_ = true;
    v1::ControllerMessage goodbye;
    goodbye.mutable_goodbye()->set_reason("the controller stops");
    goodbye.mutable_goodbye()->set_retry_after_ns(roster_.reconnect_window().count());
    for (const auto& [id, session] : sessions_) {
      session->Send(goodbye);
      session->Close({grpc::StatusCode::UNAVAILABLE, "the controller stops"});
    }
    watches_.EndAll({grpc::StatusCode::UNAVAILABLE, "the controller stops"});
    done->set_value();
  });
  if (posted) waited.wait_for(limit);
}

void Brain::Stop() {
  stopping_ = true;
  PostAlways([] {});  // wakes the loop
  if (thread_.joinable()) thread_.join();
}

}  // namespace labrack::api
