// Agent's side of the session: what the controller says, and what it is told.
#include <algorithm>
#include <cmath>
#include <future>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/inventory/inventory.h"
#include "agent/session/agent.h"
#include "agent/session/identity.h"
#include "proto/fields/fields.h"
#include "storage/base/units.h"

namespace labrack::session {
namespace {

// Where the controller does not say.
constexpr Nanoseconds kHeartbeatDefault = std::chrono::seconds(10);
constexpr std::size_t kCreditBatchesDefault = 64;
constexpr std::size_t kCreditBytesDefault = 4 << 20;
// epoch = controller's epoch x 2^40 + a count.
constexpr int kEpochShift = 40;

v1::CommandAck Refusal(std::string code, std::string detail) {
  v1::CommandAck ack;
  ack.set_result(v1::COMMAND_RESULT_REFUSED);
  ack.set_code(std::move(code));
  ack.set_detail(std::move(detail));
  return ack;
}

v1::CommandAck Ok() {
  v1::CommandAck ack;
  ack.set_result(v1::COMMAND_RESULT_OK);
  return ack;
}

v1::CommandAck Stale(std::string detail) {
  v1::CommandAck ack;
  ack.set_result(v1::COMMAND_RESULT_STALE_EPOCH);
  ack.set_code("STALE_EPOCH");
  ack.set_detail(std::move(detail));
  return ack;
}

// Free space moves all the time; what is below this share of the file system is not told.
constexpr double kFreeShareTold = 0.05;

v1::Inventory WithoutFigures(v1::Inventory inventory) {
  for (v1::LentDisk& disk : *inventory.mutable_disks()) {
    disk.clear_free_bytes();
    disk.clear_capacity_bytes();
  }
  return inventory;
}

}  // namespace

bool IsNews(const v1::Inventory& told, const v1::Inventory& found) {
  if (WithoutFigures(found).SerializeAsString() != WithoutFigures(told).SerializeAsString()) {
    return true;
  }
  for (int i = 0; i < found.disks_size(); ++i) {
    const v1::LentDisk& now = found.disks(i);
    const v1::LentDisk& before = told.disks(i);
    if (now.capacity_bytes() != before.capacity_bytes()) return true;
    const double moved =
        static_cast<double>(now.free_bytes()) - static_cast<double>(before.free_bytes());
    // Of what was free too: little room that becomes less is what plans fail on.
    const std::uint64_t least = std::min({now.free_bytes(), before.free_bytes()});
    const double whole = static_cast<double>(least > 0 ? least : now.capacity_bytes());
    if (std::abs(moved) > kFreeShareTold * whole) return true;
  }
  return false;
}

// --- the connection ---

v1::Hello Agent::MakeHello() {
  v1::Hello hello;
  hello.set_agent_id(context_.agent_id);
  hello.set_incarnation(incarnation_);
  hello.set_connection(connection_number_);
  hello.set_boot_id(context_.boot_id);
  hello.set_version(context_.inventory.agent_version());
  hello.set_protocol(v1::PROTOCOL_VERSION_NEWEST);
  hello.set_machine_id(MachineId());
  *hello.mutable_inventory() = context_.inventory;
  told_inventory_ = context_.inventory;
  for (const Held& held : held_) {
    v1::HeldAssignment& assignment = *hello.add_held();
    assignment.set_assignment_id(held.trial->spec().assignment_id());
    assignment.set_epoch(held.trial->spec().epoch());
    assignment.set_state(held.trial->state());
    assignment.set_last_seq(held.trial->tail().last_seq());
  }
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(context_.config.state(), error);
  if (!error) hello.set_spool_free_bytes(space.available);
  hello.set_controller_epoch_seen(controller_epoch_);
  return hello;
}

void Agent::KeepConnected(TimePoint now) {
  std::erase_if(retired_, [](const std::shared_ptr<Connection>& connection) {
    return connection->IsDone() && connection.use_count() == 1;
  });
  if (connection_ || now < connect_at_ || leave_workers_) return;
  ++connection_number_;
  Result<std::shared_ptr<Connection>> started =
      Connection::Start(context_.config, connection_number_, MakeHello(), *inbox_, clock_sync_);
  if (!started) {
    spdlog::error("no connection: {}", started.error().ToString());
    connect_at_ = now + windows_.Next();
    return;
  }
  connection_ = *std::move(started);
}

void Agent::DropConnection(const std::string& reason, TimePoint now) {
  heart_->Attach(nullptr, {});
  connection_->Cancel();
  connection_->ResumeReading();
  retired_.push_back(std::exchange(connection_, nullptr));
  welcome_ = false;
  in_flight_.clear();
  in_flight_bytes_ = 0;
  connect_at_ = now + windows_.Next();
  if (!reason.empty() && reason != last_loss_) {
    spdlog::warn("no session with {}: {}", context_.config.controller(), reason);
  }
  last_loss_ = reason;
}

bool Agent::Send(v1::AgentMessage message) {
  // What would be said may be otherwise when the next agent has read the journal.
  if (journal_->failure() && !message.has_goodbye()) return false;
  return connection_ != nullptr && connection_->Send(std::move(message));
}

void Agent::TakeMessages(TimePoint now) {
  for (InboxItem& item : inbox_->Take()) {
    if (!connection_ || item.connection != connection_->number()) continue;
    if (item.closed) {
      if (item.not_served) windows_.Slow();
      DropConnection(item.reason, now);
    } else {
      Handle(item.message, now);
    }
  }
  if (connection_) connection_->ResumeReading();
}

void Agent::Handle(const v1::ControllerMessage& message, TimePoint now) {
  switch (message.body_case()) {
    case v1::ControllerMessage::kWelcome:
      HandleWelcome(message.welcome(), now);
      return;
    case v1::ControllerMessage::kAssign:
      HandleAssign(message.assign(), now);
      return;
    case v1::ControllerMessage::kWant:
      HandleWant(message.want(), now);
      return;
    case v1::ControllerMessage::kArm:
      HandleArm(message.arm(), now);
      return;
    case v1::ControllerMessage::kGo:
      HandleGo(message.go(), now);
      return;
    case v1::ControllerMessage::kEventAck:
      HandleAck(message.event_ack());
      return;
    case v1::ControllerMessage::kGoodbye:
      DropConnection("the controller says goodbye: " + message.goodbye().reason(), now);
      connect_at_ = std::max(connect_at_, now + Nanoseconds(message.goodbye().retry_after_ns()));
      return;
    case v1::ControllerMessage::kHeartbeatAck:  // answered in the connection's callback
      return;
    case v1::ControllerMessage::BODY_NOT_SET: {
      // A newer controller's words: never silence.
      v1::CommandAck ack;
      ack.set_result(v1::COMMAND_RESULT_UNSUPPORTED);
      ack.set_code("UNKNOWN_MESSAGE");
      SendAck("", std::move(ack));
      return;
    }
  }
}

void Agent::HandleWelcome(const v1::Welcome& welcome, TimePoint now) {
  if (welcome.protocol() != v1::PROTOCOL_VERSION_NEWEST) {
    windows_.Slow();
    DropConnection(
        fmt::format("the controller (labrack {}) answers in protocol {}, this agent "
                    "(labrack {}) speaks {}: upgrade the older one of the two",
                    welcome.version(), welcome.protocol(), context_.inventory.agent_version(),
                    static_cast<int>(v1::PROTOCOL_VERSION_NEWEST)),
        now);
    return;
  }
  welcome_ = true;
  ever_welcome_ = true;
  last_loss_.clear();
  windows_.Reset(Nanoseconds(welcome.reconnect_window_ns()));
  credit_batches_ = welcome.credit_batches() > 0 ? welcome.credit_batches() : kCreditBatchesDefault;
  credit_bytes_ = welcome.credit_bytes() > 0 ? welcome.credit_bytes() : kCreditBytesDefault;
  // A controller that was started anew may be on another machine, with another clock.
  if (welcome.controller_epoch() != controller_epoch_) clock_sync_.Reset();
  if (welcome.controller_epoch() > controller_epoch_) {
    controller_epoch_ = welcome.controller_epoch();
    context_.controller_epoch = controller_epoch_;
    Result<void> kept = journal_->SetControllerEpoch(controller_epoch_);
    if (!kept) spdlog::error("journal: {}", kept.error().ToString());
  }
  spdlog::info("session {} with controller {} (epoch {})", welcome.session_id(),
               context_.config.controller(), welcome.controller_epoch());
  for (const Held& held : held_) held.trial->Reconnected();
  for (const v1::EventAck& ack : welcome.acks()) HandleAck(ack);
  for (const v1::DesiredAssignment& desired : welcome.desired()) {
    HeldTrial* trial = Find(desired.assignment_id(), desired.epoch());
    if (trial != nullptr) ApplyWant(*trial, desired.want(), "the controller wants it stopped", now);
  }
  const Nanoseconds interval(welcome.heartbeat_ns());
  heart_->Attach(connection_, interval > Nanoseconds(0) ? interval : kHeartbeatDefault);
}

// --- commands ---

void Agent::SendAck(const std::string& command_id, v1::CommandAck ack) {
  ack.set_command_id(command_id);
  v1::AgentMessage message;
  *message.mutable_command_ack() = std::move(ack);
  Send(std::move(message));
}

void Agent::HandleAssign(const v1::Assign& assign, TimePoint now) {
  v1::CommandAck ack = Accept(assign.spec(), now);
  if (ack.result() != v1::COMMAND_RESULT_OK && !journal_->failure()) {
    spdlog::warn("{}: refused: {} {}", assign.spec().assignment_id(), ack.code(), ack.detail());
  }
  ack.set_assignment_id(assign.spec().assignment_id());
  ack.set_epoch(assign.spec().epoch());
  SendAck(assign.command_id(), std::move(ack));
}

// The checks that need nothing but the specification, the configuration and the disk.
std::optional<v1::CommandAck> Agent::Refuse(const v1::AssignmentSpec& spec) {
  if (spec.assignment_id().empty() || spec.assignment_id().size() > worker::kAssignmentIdMax) {
    return Refusal("BAD_SPEC",
                   fmt::format("assignment_id has 1 to {} characters", worker::kAssignmentIdMax));
  }
  std::vector<std::string> problems;
  const google::protobuf::Message* const parts[] = {&spec.stack(), &spec.workload(), &spec.disks(),
                                                    &spec.timeouts()};
  for (const google::protobuf::Message* part : parts) {
    for (const std::string& problem : fields::Check(*part)) {
      problems.push_back(part->GetDescriptor()->name() + " " + problem);
    }
  }
  if (!problems.empty()) return Refusal("BAD_SPEC", fmt::format("{}", fmt::join(problems, "; ")));
  if (spec.workload().has_exec() && !context_.config.allow_exec()) {
    return Refusal("EXEC_NOT_ALLOWED",
                   "this agent runs no commands of playbooks; its configuration may allow it "
                   "(allow_exec: true)");
  }
  const bool on_disks = spec.stand_in().empty() && !spec.stack().host().has_dir() &&
                        spec.disks().kind() != v1::DISK_KIND_RAM;
  const std::uint64_t disks = on_disks ? spec.disks().count() * spec.disks().size() : 0;
  const std::uint64_t lent = context_.config.disk_space();
  if (lent > 0 && disks > lent) {
    return Refusal("DISK_LOW", fmt::format("{} are asked for, {} are lent (`disk_space`)",
                                           FormatBytes(Bytes(disks)), FormatBytes(Bytes(lent))));
  }
  const std::uint64_t needed = kFreeMin.count() + disks;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(context_.config.state(), error);
  if (error) return Refusal("DISK_LOW", context_.config.state() + ": " + error.message());
  if (space.available < needed) {
    return Refusal("DISK_LOW",
                   fmt::format("{} has {} free, {} are needed", context_.config.state(),
                               FormatBytes(Bytes(space.available)), FormatBytes(Bytes(needed))));
  }
  return std::nullopt;
}

v1::CommandAck Agent::Accept(const v1::AssignmentSpec& spec, TimePoint now) {
  // Again what was accepted already: yes, and nothing is done twice.
  if (Find(spec.assignment_id(), spec.epoch()) != nullptr) return Ok();
  if ((spec.epoch() >> kEpochShift) < controller_epoch_) {
    return Stale(
        fmt::format("epoch {} is of an older controller than {}", spec.epoch(), controller_epoch_));
  }
  Result<std::uint64_t> floor = journal_->EpochFloor();
  if (!floor) return Refusal("JOURNAL", floor.error().ToString());
  if (spec.epoch() <= *floor) return Stale(fmt::format("epochs up to {} are over", *floor));
  Result<std::optional<Journal::Known>> known = journal_->Find(spec.assignment_id());
  if (!known) return Refusal("JOURNAL", known.error().ToString());
  if (*known && (*known)->epoch >= spec.epoch()) {
    return Stale(fmt::format("epoch {} was accepted before", (*known)->epoch));
  }
  if (HeldTrial* older = FindAnyEpoch(spec.assignment_id()); older != nullptr && !older->sealed()) {
    older->Stop(fmt::format("replaced by epoch {}", spec.epoch()), now);
    return Refusal("OLD_EPOCH_HELD", "an earlier attempt is being stopped; say it again");
  }
  if (const std::string left = LeftOnHost(); !left.empty()) {
    return Refusal("DIRTY_HOST", "an earlier trial has left something on this host: " + left);
  }
  if (ending_) return Refusal("ENDING", "the agent is about to end");
  if (held_.size() >= kHeldMax) {
    return Refusal("TOO_MANY", fmt::format("{} trials are held already", held_.size()));
  }
  if (std::optional<v1::CommandAck> refusal = Refuse(spec)) return *std::move(refusal);

  if (Result<void> accepted = journal_->Accept(spec); !accepted) {
    return Refusal("JOURNAL", accepted.error().ToString());
  }
  JournalRow row;
  row.spec = spec;
  held_.push_back({.trial = std::make_unique<HeldTrial>(std::move(row), context_)});
  return Ok();
}

void Agent::HandleWant(const v1::Want& want, TimePoint now) {
  v1::CommandAck ack = Ok();
  ack.set_assignment_id(want.assignment_id());
  ack.set_epoch(want.epoch());
  HeldTrial* trial = Find(want.assignment_id(), want.epoch());
  if (trial != nullptr) {
    ApplyWant(*trial, want.want(), want.reason(), now);
  } else if (want.want() != v1::WANT_CLOSED) {
    // What is not here cannot run, nor be stopped; that it is gone is what CLOSED wants.
    ack.set_result(v1::COMMAND_RESULT_REFUSED);
    ack.set_code("UNKNOWN_ASSIGNMENT");
    ack.set_detail("this agent does not hold it");
  }
  if (!want.command_id().empty()) SendAck(want.command_id(), std::move(ack));
}

void Agent::ApplyWant(HeldTrial& trial, v1::WantKind want, const std::string& reason,
                      TimePoint now) {
  if (want == v1::WANT_STOP || want == v1::WANT_CLOSED) {
    trial.Stop(reason.empty() ? "the controller wants it stopped" : reason, now);
  }
  if (want != v1::WANT_CLOSED) return;
  for (Held& held : held_) {
    if (held.trial.get() == &trial) held.close = true;
  }
}

void Agent::HandleArm(const v1::Arm& arm, TimePoint now) {
  v1::CommandAck ack;
  if (HeldTrial* trial = Find(arm.assignment_id(), arm.epoch())) {
    const Gate::Answer answer = trial->gate().Arm(arm, clock_sync_.Best(now), now);
    ack.set_result(answer.result);
    ack.set_code(answer.code);
    ack.set_detail(answer.detail);
  } else {
    ack = Refusal("UNKNOWN_ASSIGNMENT", "this agent does not hold it");
  }
  ack.set_assignment_id(arm.assignment_id());
  ack.set_epoch(arm.epoch());
  SendAck(arm.command_id(), std::move(ack));
}

void Agent::HandleGo(const v1::Go& go, TimePoint now) {
  HeldTrial* trial = Find(go.assignment_id(), go.epoch());
  if (trial == nullptr) return;
  if (const std::optional<TimePoint> start = trial->gate().Go(go, now)) {
    trial->Go(go.gate_index(), *start);
  }
}

void Agent::SendGateReady(HeldTrial& trial) {
  if (!welcome_ || !trial.gate().index()) return;
  v1::AgentMessage message;
  v1::GateReady& ready = *message.mutable_gate_ready();
  ready.set_assignment_id(trial.spec().assignment_id());
  ready.set_epoch(trial.spec().epoch());
  ready.set_gate_index(*trial.gate().index());
  Send(std::move(message));
}

// --- results ---

void Agent::SendEvents(TimePoint now) {
  if (!welcome_) return;
  for (const Held& held : held_) {
    while (in_flight_.size() < credit_batches_ && in_flight_bytes_ < credit_bytes_) {
      Result<std::optional<v1::Events>> batch = held.trial->NextBatch(now);
      if (!batch) {
        const std::string what =
            held.trial->spec().assignment_id() + ": spool: " + batch.error().ToString();
        // Said once, and not at every wake-up.
        if (std::exchange(told_spool_error_, what) != what) spdlog::error("{}", what);
        break;
      }
      if (!*batch) break;
      const v1::Events& events = **batch;
      in_flight_.push_back({.assignment_id = events.assignment_id(),
                            .epoch = events.epoch(),
                            .last_seq = events.records(events.records_size() - 1).seq(),
                            .bytes = events.ByteSizeLong()});
      in_flight_bytes_ += in_flight_.back().bytes;
      v1::AgentMessage message;
      *message.mutable_events() = **std::move(batch);
      // When it cannot be sent the connection is over, and everything is read again on the next
      // one.
      if (!Send(std::move(message))) return;
    }
  }
}

void Agent::HandleAck(const v1::EventAck& ack) {
  std::erase_if(in_flight_, [&](const InFlight& batch) {
    const bool acked = batch.assignment_id == ack.assignment_id() && batch.epoch == ack.epoch() &&
                       batch.last_seq <= ack.through_seq();
    if (acked) in_flight_bytes_ -= batch.bytes;
    return acked;
  });
  HeldTrial* trial = Find(ack.assignment_id(), ack.epoch());
  if (trial != nullptr) trial->tail().Acknowledge(ack.through_seq());
}

// On a thread of its own: the tools that it asks may take a minute when they hang.
void Agent::RefreshInventory(TimePoint now) {
  if (inventory_found_.valid()) {
    if (inventory_found_.wait_for(Nanoseconds(0)) != std::future_status::ready) return;
    v1::Inventory found = inventory_found_.get();
    found.set_metrics_address(context_.inventory.metrics_address());
    context_.inventory = std::move(found);
    if (!welcome_ || !IsNews(told_inventory_, context_.inventory)) return;
    told_inventory_ = context_.inventory;
    v1::AgentMessage message;
    *message.mutable_inventory() = context_.inventory;
    Send(std::move(message));
    return;
  }
  if (now < inventory_at_) return;
  const bool first = inventory_at_ == TimePoint();
  inventory_at_ = now + kInventoryInterval;
  // Looking at tools and disks would disturb a trial.
  const bool busy = std::any_of(held_.begin(), held_.end(),
                                [](const Held& held) { return !held.trial->settled(); });
  if (first || busy || ending_) return;
  inventory_found_ = std::async(std::launch::async,
                                [config = context_.config] { return inventory::Collect(config); });
}

}  // namespace labrack::session
