// What agents say to the loop.
#include <algorithm>
#include <iterator>
#include <utility>

#include <spdlog/spdlog.h>

#include "controller/api/brain.h"
#include "storage/base/version.h"

namespace labrack::api {
namespace {

// An agent's record of a controller's epoch is believed up to here; beyond, it is another lab's.
constexpr std::uint64_t kEpochLeapMax = 1 << 20;
constexpr std::uint32_t kCreditBatches = 64;
constexpr std::uint64_t kCreditBytes = 4 << 20;

}  // namespace

bool Brain::OnOpened(const std::shared_ptr<fleet::Session>& session) {
  return Post([this, session] { open_sessions_[session->id()] = session; });
}

bool Brain::OnMessage(const std::shared_ptr<fleet::Session>& session, v1::AgentMessage message) {
  std::optional<ByteBudget::Share> share = inbox_bytes_.Take(message.ByteSizeLong());
  if (!share) return false;
  return Post([this, session, message = std::move(message), share = *std::move(share)] {
    Take(session, message);
    session->Consumed(message.ByteSizeLong());
  });
}

void Brain::OnClosed(std::uint64_t session_id) {
  PostAlways([this, session_id] {
    if (const fleet::Roster::Agent* agent = roster_.FindSession(session_id)) {
      spdlog::info("agent {}: the session has ended", agent->id);
    }
    roster_.Closed(session_id, /*said_goodbye=*/false);
    sessions_.erase(session_id);
    open_sessions_.erase(session_id);
  });
}

void Brain::Take(const std::shared_ptr<fleet::Session>& session, const v1::AgentMessage& message) {
  if (message.has_hello()) {
    TakeHello(session, message.hello());
    return;
  }
  const fleet::Roster::Agent* agent = roster_.FindSession(session->id());
  if (agent == nullptr) return;  // of a session that was refused or replaced
  roster_.Heard(session->id());
  const std::string agent_id = agent->id;
  switch (message.body_case()) {
    case v1::AgentMessage::kCommandAck:
      scheduler_.OnCommandAck(agent_id, message.command_ack(), effects_);
      break;
    case v1::AgentMessage::kHeartbeat:
      roster_.TakeHeartbeat(session->id(), message.heartbeat());
      TouchRunsOf(message.heartbeat());
      break;
    case v1::AgentMessage::kEvents:
      // Not acknowledged either, so the agent keeps them.
      if (parts_.open_runs == OpenRuns::kLeaveAlone) break;
      scheduler_.OnEvents(agent_id, message.events(), Now(), effects_);
      break;
    case v1::AgentMessage::kInventory:
      if (roster_.TakeInventory(session->id(), message.inventory())) SaveAgent(*agent);
      break;
    case v1::AgentMessage::kGoodbye:
      spdlog::info("agent {} says goodbye: {}", agent_id, message.goodbye().reason());
      roster_.Closed(session->id(), /*said_goodbye=*/true);
      session->Close(grpc::Status::OK);
      break;
    case v1::AgentMessage::kGateReady:
      scheduler_.OnGateReady(agent_id, message.gate_ready(), Now());
      break;
    case v1::AgentMessage::kHello:
    case v1::AgentMessage::BODY_NOT_SET:
      break;
  }
}

void Brain::TouchRunsOf(const v1::Heartbeat& heartbeat) {
  for (const v1::AssignmentProgress& progress : heartbeat.assignments()) {
    watches_.Touch(progress.assignment_id().substr(0, progress.assignment_id().find('/')), {});
  }
}

bool Brain::Admit(const std::shared_ptr<fleet::Session>& session, const v1::Hello& hello) {
  const TimePoint now = MonotonicClock().Now();
  const double elapsed = std::chrono::duration<double>(now - hello_refilled_).count();
  hello_tokens_ = std::min(kHellosBurst, hello_tokens_ + elapsed * kHellosPerSecond);
  hello_refilled_ = now;
  if (draining_) {
    session->Close({grpc::StatusCode::UNAVAILABLE, "the controller stops"});
    return false;
  }
  if (hello_tokens_ < 1) {
    session->Close({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many agents come at once"});
    return false;
  }
  hello_tokens_ -= 1;
  if (hello.controller_epoch_seen() <= controller_epoch_) return true;
  if (hello.controller_epoch_seen() - controller_epoch_ > kEpochLeapMax ||
      hello.controller_epoch_seen() >= run::EpochSource::kControllerEpochMax) {
    session->Close({grpc::StatusCode::FAILED_PRECONDITION,
                    "the agent has worked for a controller at epoch " +
                        std::to_string(hello.controller_epoch_seen()) + ", this catalog is at " +
                        std::to_string(controller_epoch_) + "; it belongs to another lab"});
    return false;
  }
  // The catalog was made anew or comes from a backup: tokens must not repeat, so they leap.
  spdlog::warn("agent {} has seen controller epoch {}, the catalog was at {}", hello.agent_id(),
               hello.controller_epoch_seen(), controller_epoch_);
  controller_epoch_ = hello.controller_epoch_seen() + 1;
  effects_.changes.emplace_back(catalog::RaiseEpoch{controller_epoch_});
  scheduler_.RaiseEpoch(controller_epoch_);
  return true;
}

void Brain::TakeHello(const std::shared_ptr<fleet::Session>& session, const v1::Hello& hello) {
  if (!Admit(session, hello)) return;
  const fleet::Roster::Admission admission = roster_.Hello(session->id(), hello, session->peer());
  if (admission.conflict) parts_.metrics->agent_conflicts().Increment();
  if (!admission.status.ok()) {
    spdlog::warn("agent {} from {} is refused: {}", hello.agent_id(), session->peer(),
                 admission.status.error_message());
    session->Close(admission.status);
    return;
  }
  if (admission.replaced_session != 0) {
    DropSession(admission.replaced_session,
                {grpc::StatusCode::ABORTED, "replaced by a newer session"});
  }
  if (admission.machine_changed) {
    spdlog::warn("agent {} has come back on another machine", hello.agent_id());
  }
  spdlog::info("agent {} ({}) is attached from {}, holding {} trials", hello.agent_id(),
               hello.inventory().host_name(), session->peer(), hello.held_size());
  sessions_[session->id()] = session;
  SaveAgent(*roster_.FindSession(session->id()));
  Welcome(session->id(), hello);
}

void Brain::Welcome(std::uint64_t session_id, const v1::Hello& hello) {
  // Welcome goes before the commands that the diff brings up.
  run::Effects from_diff;
  const run::Scheduler::Diff diff = scheduler_.OnHello(hello.agent_id(), hello, Now(), from_diff);
  run::Command command{.agent_id = hello.agent_id(), .message = {}};
  v1::Welcome& welcome = *command.message.mutable_welcome();
  welcome.set_protocol(hello.protocol());
  welcome.set_version(std::string(Version()));
  welcome.set_session_id(std::to_string(controller_epoch_) + "-" + std::to_string(session_id));
  welcome.set_controller_epoch(controller_epoch_);
  welcome.set_heartbeat_ns(roster_.heartbeat().count());
  welcome.set_reconnect_window_ns(roster_.reconnect_window().count());
  welcome.set_credit_batches(kCreditBatches);
  welcome.set_credit_bytes(kCreditBytes);
  for (std::size_t i = 0; i < diff.desired.size(); ++i) {
    v1::DesiredAssignment* desired = welcome.add_desired();
    desired->set_assignment_id(diff.desired_ids[i]);
    desired->set_epoch(diff.desired[i].epoch);
    desired->set_want(diff.desired[i].want);
    v1::EventAck* ack = welcome.add_acks();
    ack->set_assignment_id(diff.desired_ids[i]);
    ack->set_epoch(diff.desired[i].epoch);
    ack->set_through_seq(diff.desired[i].through_seq);
  }
  if (parts_.open_runs == OpenRuns::kGoOn) {
    for (const v1::HeldAssignment& held : diff.strangers) {
      AddStranger(hello.agent_id(), held, welcome);
    }
  }
  effects_.commands.push_back(std::move(command));
  std::ranges::move(from_diff.changes, std::back_inserter(effects_.changes));
  std::ranges::move(from_diff.commands, std::back_inserter(effects_.commands));
  for (auto& [run_id, trials] : from_diff.touched) effects_.touched[run_id].merge(trials);
}

void Brain::AddStranger(const std::string& agent_id, const v1::HeldAssignment& held,
                        v1::Welcome& welcome) {
  const std::string key = run::EventsKey(agent_id, held.assignment_id());
  Result<std::optional<catalog::AssignmentRow>> row =
      catalog::ReadAssignment(parts_.catalog->database(), held.assignment_id());
  Result<std::uint64_t> through =
      catalog::ReadThroughSeq(parts_.catalog->database(), key, held.epoch());
  const Result<bool> result_stored =
      catalog::IsResultStored(parts_.catalog->database(), key, held.epoch());
  if (!row || !through || !result_stored) return;  // nothing is said: the agent keeps what it has
  v1::DesiredAssignment* desired = welcome.add_desired();
  desired->set_assignment_id(held.assignment_id());
  desired->set_epoch(held.epoch());
  desired->set_want(run::DesiredOfStranger(row->has_value(), *result_stored, held));
  v1::EventAck* ack = welcome.add_acks();
  ack->set_assignment_id(held.assignment_id());
  ack->set_epoch(held.epoch());
  ack->set_through_seq(*through);
  scheduler_.KnowStored(agent_id, held, *through);
}

void Brain::SaveAgent(const fleet::Roster::Agent& agent) {
  effects_.changes.emplace_back(catalog::PutAgent{{.id = agent.id,
                                                   .machine_id = agent.machine_id,
                                                   .incarnation = agent.incarnation,
                                                   .boot_id = agent.boot_id,
                                                   .version = agent.version,
                                                   .inventory = agent.inventory}});
}

void Brain::DropSession(std::uint64_t session_id, const grpc::Status& status) {
  const auto session = sessions_.find(session_id);
  if (session != sessions_.end()) {
    session->second->Close(status);
    sessions_.erase(session);
  }
  roster_.Closed(session_id, /*said_goodbye=*/false);
}

}  // namespace labrack::api
