// What the control port asks of the loop.
#include <cstdio>
#include <sys/random.h>
#include <utility>

#include <spdlog/spdlog.h>

#include "controller/api/archive.h"
#include "controller/api/brain.h"

namespace labrack::api {
namespace {

void ShowEnded(catalog::Reader& reader, const std::string& run_id, Watcher& watcher) {
  Result<v1::RunRecord> record = reader.Run(run_id, catalog::Level::kSummary);
  if (!record) {
    watcher.End(convert::ToStatus(record.error()));
    return;
  }
  watcher.Offer(WholeOf(*std::move(record)));
  watcher.End(grpc::Status::OK);
}

}  // namespace

plan::FleetView Brain::FleetHosts() const {
  plan::FleetView view;
  for (const auto& [id, agent] : roster_.agents()) {
    view.push_back({.agent_id = id,
                    .online = roster_.Look(id).connected,
                    .inventory = agent.inventory,
                    .dirty = agent.dirty});
  }
  return view;
}

v1::HostsReply Brain::Hosts() const {
  v1::HostsReply reply;
  for (const auto& [id, agent] : roster_.agents()) {
    v1::HostRecord* host = reply.add_hosts();
    host->set_agent_id(id);
    host->set_session_state(std::string(fleet::StateName(agent.state)));
    *host->mutable_inventory() = agent.inventory;
    host->set_silent_ns(roster_.Silent(agent).count());
    host->set_working_on(scheduler_.WorkOf(id));
    host->set_round_trip_ns(agent.round_trip.count());
    host->set_dirty(agent.dirty);
  }
  return reply;
}

bool Brain::AnswerExisting(const std::string& key, Call<v1::SubmitReply>& call) {
  if (key.empty()) return false;
  std::string run_id;
  if (const auto found = keys_.find(key); found != keys_.end()) {
    run_id = found->second;
  } else {
    Result<std::optional<std::string>> stored = parts_.catalog->RunByKey(key);
    if (!stored) {
      call.Fail(stored.error());
      return true;
    }
    if (!*stored) return false;
    run_id = **stored;
  }
  // Its row may be part of this very batch, so the answer waits for the commit.
  after_commit_.emplace_back([this, run_id, call = std::move(call)]() mutable {
    parts_.jobs->Post([run_id, call = std::move(call)](catalog::Reader& reader) mutable {
      Result<v1::RunRecord> record = reader.Run(run_id, catalog::Level::kPlan);
      if (!record) {
        call.Fail(record.error());
        return;
      }
      call.reply().set_run_id(run_id);
      call.reply().set_existed(true);
      call.reply().mutable_plan()->mutable_plan()->Swap(record->mutable_plan());
      call.Done();
    });
  });
  return true;
}

std::string Brain::NewRunId() {
  for (;;) {
    std::uint32_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) continue;
    char text[16];
    std::snprintf(text, sizeof text, "r-%06x", number & 0xffffff);
    const Result<bool> taken = parts_.catalog->HasRun(text);
    if (!scheduler_.Has(text) && (!taken || !*taken)) return text;
  }
}

void Brain::Submit(const v1::SubmitRequest& request, v1::PlanReply plan,
                   Call<v1::SubmitReply> call) {
  if (draining_) {
    call.Fail(Error(Errc::kUnavailable, "the controller stops"));
    return;
  }
  if (parts_.open_runs == OpenRuns::kLeaveAlone) {
    call.Fail(
        Error(Errc::kUnsupported, "this controller only answers questions; it takes no runs"));
    return;
  }
  if (AnswerExisting(request.idempotency_key(), call)) return;
  const run::Moment now = Now();
  catalog::RunRow row;
  row.id = NewRunId();
  row.playbook_file = request.source().file();
  row.playbook_text = request.source().text();
  row.plan = plan.plan();
  row.owner = request.owner();
  row.idempotency_key = request.idempotency_key();
  row.lease_ns = request.lease_ns();
  row.created_wall_ns = now.wall_ns;
  const std::string run_id = row.id;
  if (!row.idempotency_key.empty()) keys_[row.idempotency_key] = run_id;
  spdlog::info("run {}: {} with {} trials on {} hosts, for {}", run_id, row.plan.playbook_name(),
               row.plan.trials_size(), row.plan.hosts_size(),
               row.owner.empty() ? "somebody" : row.owner);
  scheduler_.Submit(std::move(row), now, effects_);
  after_commit_.emplace_back([run_id, plan = std::move(plan), call = std::move(call)]() mutable {
    call.reply().set_run_id(run_id);
    call.reply().mutable_plan()->Swap(&plan);
    call.Done();
  });
}

void Brain::Cancel(const v1::CancelRequest& request, const std::string& who,
                   Call<v1::CancelReply> call) {
  const std::string run_id = request.run_id();
  if (scheduler_.Cancel(run_id, who, request.reason(), Now(), effects_)) {
    after_commit_.emplace_back([call = std::move(call)]() mutable {
      call.reply().set_state(v1::RUN_STATE_CANCELLING);
      call.Done();
    });
    return;
  }
  parts_.jobs->Post([run_id, call = std::move(call)](catalog::Reader& reader) mutable {
    Result<v1::RunRecord> record = reader.Run(run_id, catalog::Level::kSummary);
    if (!record) {
      call.Fail(record.error());
      return;
    }
    call.reply().set_state(record->summary().state());
    call.Done();
  });
}

void Brain::OpenWatch(std::uint64_t id, const std::string& run_id,
                      std::shared_ptr<Watcher> watcher) {
  const std::optional<v1::RunSummary> summary = scheduler_.Summary(run_id, Now());
  if (summary && !catalog::IsFinal(summary->state()) && !draining_) {
    if (!watches_.Add(id, run_id, watcher)) {
      watcher->End({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch already"});
      return;
    }
    scheduler_.SetWatchers(run_id, watches_.Count(run_id), Now());
    return;
  }
  // Its end may be part of this very batch, so the catalog is asked after the commit.
  after_commit_.emplace_back([this, run_id, watcher = std::move(watcher)] {
    const bool posted = parts_.jobs->Post(
        [run_id, watcher](catalog::Reader& reader) { ShowEnded(reader, run_id, *watcher); });
    if (!posted) watcher->End({grpc::StatusCode::UNAVAILABLE, "the controller is too busy"});
  });
}

void Brain::CloseWatch(std::uint64_t id) {
  const std::optional<std::string> run_id = watches_.RunOf(id);
  if (!run_id) return;
  watches_.Remove(id);
  scheduler_.SetWatchers(*run_id, watches_.Count(*run_id), Now());
}

std::optional<v1::RunEvent> Brain::Describe(const std::string& run_id,
                                            const std::set<std::uint32_t>* trials) const {
  const run::Moment now = Now();
  std::optional<v1::RunSummary> summary = scheduler_.Summary(run_id, now);
  if (!summary) return std::nullopt;
  v1::RunEvent event;
  event.set_wall_ns(now.wall_ns);
  event.mutable_summary()->Swap(&*summary);
  for (v1::TrialSummary& trial : scheduler_.Trials(run_id, trials)) {
    event.add_trials()->Swap(&trial);
  }
  const std::string prefix = run_id + "/";
  for (const std::string& agent_id : scheduler_.HostsOf(run_id)) {
    v1::HostProgress* host = event.add_hosts();
    host->set_agent_id(agent_id);
    const fleet::Roster::Agent* agent = roster_.Find(agent_id);
    if (agent == nullptr) {
      host->set_session_state(std::string(fleet::StateName(fleet::AgentState::kOffline)));
      continue;
    }
    host->set_host_name(agent->inventory.host_name());
    host->set_session_state(std::string(fleet::StateName(agent->state)));
    host->set_age_ns(roster_.Silent(*agent).count());
    for (const auto& [assignment_id, progress] : agent->progress) {
      if (assignment_id.starts_with(prefix)) *host->mutable_progress() = progress;
    }
  }
  return event;
}

}  // namespace labrack::api
