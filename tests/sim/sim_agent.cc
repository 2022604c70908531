#include "tests/sim/sim_agent.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <tuple>

#include "controller/plan/names.h"
#include "labrack/v1/fleet.grpc.pb.h"

namespace labrack::sim {
namespace {

TimePoint Now() { return MonotonicClock().Now(); }

}  // namespace

// One stream. Lives until gRPC's OnDone; tells the agent through tasks of the fleet. Writes begin
// on the fleet's thread, outside of any reaction: a hold keeps OnDone away until none can any more.
class SimFleet::Stream final
    : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ControllerMessage> {
 public:
  Stream(SimFleet* fleet, std::weak_ptr<Agent> agent, std::uint64_t number)
      : fleet_(fleet), agent_(std::move(agent)), number_(number) {}

  void Begin(v1::Fleet::Stub& stub) {
    stub.async()->Session(&context_, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }
  void Send(v1::AgentMessage message) {
    std::lock_guard lock(mutex_);
    if (done_) return;
    writes_.push_back(std::move(message));
    WriteNextLocked();
  }
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    writes_.pop_front();
    if (!ok) done_ = true;
    WriteNextLocked();
  }
  void OnDone(const grpc::Status& status) override;

 private:
  void WriteNextLocked() {
    if (writing_ || done_ || writes_.empty()) return;
    writing_ = true;
    StartWrite(&writes_.front());
  }

  SimFleet* fleet_;
  std::weak_ptr<Agent> agent_;
  const std::uint64_t number_;
  grpc::ClientContext context_;
  v1::ControllerMessage incoming_;
  std::mutex mutex_;
  std::deque<v1::AgentMessage> writes_;
  bool writing_ = false;
  bool done_ = false;
};

class SimFleet::Agent : public std::enable_shared_from_this<Agent> {
 public:
  Agent(SimFleet* fleet, SimAgentOptions options)
      : fleet_(fleet), options_(std::move(options)), random_(options_.seed) {}

  void Connect();
  void Disconnect(Nanoseconds away) {
    away_until_ = Now() + away;
    if (stream_ != nullptr) stream_->Cancel();
  }
  void Vanish() {
    vanished_ = true;
    if (stream_ != nullptr) stream_->Cancel();
  }
  void OnMessage(std::uint64_t number, const v1::ControllerMessage& message);
  void OnStreamDone(std::uint64_t number, const grpc::Status& status);

 private:
  struct Held {
    v1::AssignmentSpec spec;
    std::deque<v1::EventRecord> events;  // not acknowledged yet
    std::uint64_t next_seq = 1;
    bool sealed = false;
    std::vector<std::string> steps;
    std::size_t step = 0;
    bool standing = false;  // at the gate of `step`
    std::uint64_t arming = 0;
    bool go = false;
    TimePoint start{};
    std::vector<std::pair<TimePoint, TimePoint>> windows;
    std::vector<TimePoint> intended;
  };
  using Key = std::pair<std::string, std::uint64_t>;

  void Send(v1::AgentMessage message) {
    if (stream_ != nullptr && online_) stream_->Send(std::move(message));
  }
  void Ack(const std::string& command_id, const Key& key, v1::CommandResult result,
           const std::string& code);
  void SendHello();
  void OnWelcome(const v1::Welcome& welcome);
  void OnAssign(const v1::Assign& assign);
  void OnWant(const v1::Want& want);
  void OnArm(const v1::Arm& arm);
  void OnGo(const v1::Go& go);
  void OnEventAck(const v1::EventAck& ack);
  void Heartbeat(std::uint64_t number);
  void Record(const Key& key, v1::EventRecord record);
  void SendEvents(const Key& key);
  void NextStep(const Key& key);
  void Stand(const Key& key);
  void StartDue(const Key& key, std::uint64_t arming);
  void RunStep(const Key& key, TimePoint intended);
  void Seal(const Key& key, v1::Outcome outcome, const std::string& reason);
  void Close(const Key& key);
  void SetOnline(bool online);
  void After(Nanoseconds delay, std::function<void(Agent&)> task) {
    fleet_->Post(
        [weak = weak_from_this(), task = std::move(task)] {
          if (std::shared_ptr<Agent> agent = weak.lock()) task(*agent);
        },
        delay);
  }

  SimFleet* fleet_;
  SimAgentOptions options_;
  Random random_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
  Stream* stream_ = nullptr;  // deletes itself in OnDone
  std::uint64_t connection_ = 0;
  bool online_ = false;
  bool vanished_ = false;
  TimePoint away_until_{};
  int failures_ = 0;
  Nanoseconds heartbeat_ = std::chrono::seconds(1);
  std::uint64_t epoch_seen_ = 0;
  std::map<Key, Held> held_;
  std::set<Key> seen_;  // never started again, even when they are closed
};

void SimFleet::Stream::OnReadDone(bool ok) {
  if (!ok) {
    // Once: no read is begun any more. OnDone follows.
    fleet_->Post([this] {
      {
        std::lock_guard lock(mutex_);
        done_ = true;
      }
      RemoveHold();
    });
    return;
  }
  fleet_->Post([agent = agent_, number = number_, message = std::move(incoming_)] {
    if (std::shared_ptr<Agent> alive = agent.lock()) alive->OnMessage(number, message);
  });
  incoming_.Clear();
  StartRead(&incoming_);
}

void SimFleet::Stream::OnDone(const grpc::Status& status) {
  fleet_->Post([fleet = fleet_, agent = agent_, number = number_, status, self = this] {
    if (std::shared_ptr<Agent> alive = agent.lock()) alive->OnStreamDone(number, status);
    delete self;
    std::lock_guard lock(fleet->mutex_);
    --fleet->streams_;
    fleet->changed_.notify_all();
  });
}

void SimFleet::Agent::Connect() {
  if (vanished_ || stream_ != nullptr) return;
  if (Now() < away_until_) {
    After(away_until_ - Now(), [](Agent& agent) { agent.Connect(); });
    return;
  }
  if (channel_ == nullptr) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
    if (!options_.target_name.empty()) arguments.SetSslTargetNameOverride(options_.target_name);
    channel_ = grpc::CreateCustomChannel(
        options_.controller,
        options_.credentials ? options_.credentials : grpc::InsecureChannelCredentials(),
        arguments);
    stub_ = v1::Fleet::NewStub(channel_);
  }
  stream_ = new Stream(fleet_, weak_from_this(), ++connection_);
  {
    std::lock_guard lock(fleet_->mutex_);
    ++fleet_->streams_;
  }
  stream_->Begin(*stub_);
  SendHello();
}

void SimFleet::Agent::SendHello() {
  v1::AgentMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_agent_id(options_.id);
  hello->set_incarnation(options_.incarnation);
  hello->set_connection(connection_);
  hello->set_boot_id("sim");
  hello->set_version("0.1.0");
  hello->set_protocol(options_.protocol);
  hello->set_machine_id(options_.machine_id);
  hello->set_controller_epoch_seen(epoch_seen_);
  *hello->mutable_inventory() = MakeInventory(options_);
  for (const auto& [key, held] : held_) {
    v1::HeldAssignment* item = hello->add_held();
    item->set_assignment_id(key.first);
    item->set_epoch(key.second);
    item->set_last_seq(held.next_seq - 1);
    item->set_state(held.sealed          ? v1::ASSIGNMENT_STATE_SEALED
                    : held.next_seq == 1 ? v1::ASSIGNMENT_STATE_ACCEPTED
                                         : v1::ASSIGNMENT_STATE_RUNNING);
  }
  stream_->Send(std::move(message));
}

void SimFleet::Agent::SetOnline(bool online) {
  if (online == online_) return;
  online_ = online;
  std::lock_guard lock(fleet_->mutex_);
  online ? ++fleet_->online_ : --fleet_->online_;
  if (online) ++fleet_->history_.sessions;
}

void SimFleet::Agent::OnStreamDone(std::uint64_t number, const grpc::Status& status) {
  if (number != connection_) return;
  stream_ = nullptr;
  const bool was_online = online_;
  SetOnline(false);
  if (!was_online && status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    std::lock_guard lock(fleet_->mutex_);
    ++fleet_->history_.refusals;
    fleet_->history_.last_refusal = status.error_message();
  }
  failures_ = was_online ? 0 : std::min(failures_ + 1, 4);
  const Nanoseconds window = options_.reconnect * (1 << failures_);
  After(Nanoseconds(static_cast<std::int64_t>(
            random_.Below(static_cast<std::uint64_t>(window.count()) + 1))),
        [](Agent& agent) { agent.Connect(); });
}

void SimFleet::Agent::OnMessage(std::uint64_t number, const v1::ControllerMessage& message) {
  if (number != connection_ || stream_ == nullptr || vanished_) return;
  switch (message.body_case()) {
    case v1::ControllerMessage::kWelcome:
      OnWelcome(message.welcome());
      break;
    case v1::ControllerMessage::kAssign:
      OnAssign(message.assign());
      break;
    case v1::ControllerMessage::kWant:
      OnWant(message.want());
      break;
    case v1::ControllerMessage::kArm:
      OnArm(message.arm());
      break;
    case v1::ControllerMessage::kGo:
      OnGo(message.go());
      break;
    case v1::ControllerMessage::kEventAck:
      OnEventAck(message.event_ack());
      break;
    case v1::ControllerMessage::kHeartbeatAck:
    case v1::ControllerMessage::kGoodbye:
    case v1::ControllerMessage::BODY_NOT_SET:
      break;
  }
}

void SimFleet::Agent::OnWelcome(const v1::Welcome& welcome) {
  SetOnline(true);
  heartbeat_ = Nanoseconds(welcome.heartbeat_ns());
  epoch_seen_ = std::max(epoch_seen_, welcome.controller_epoch());
  for (const v1::EventAck& ack : welcome.acks()) OnEventAck(ack);
  for (const v1::DesiredAssignment& desired : welcome.desired()) {
    const Key key{desired.assignment_id(), desired.epoch()};
    if (desired.want() == v1::WANT_CLOSED) Close(key);
    if (desired.want() == v1::WANT_STOP) Seal(key, v1::OUTCOME_CANCELLED, "stopped");
  }
  std::vector<Key> keys;
  for (const auto& [key, held] : held_) keys.push_back(key);
  for (const Key& key : keys) {
    SendEvents(key);
    if (const auto held = held_.find(key); held != held_.end() && held->second.standing) Stand(key);
  }
  After(heartbeat_, [number = connection_](Agent& agent) { agent.Heartbeat(number); });
}

void SimFleet::Agent::Heartbeat(std::uint64_t number) {
  if (number != connection_ || !online_) return;
  v1::AgentMessage message;
  v1::Heartbeat* heartbeat = message.mutable_heartbeat();
  heartbeat->set_agent_send_mono_ns(Now().time_since_epoch().count());
  heartbeat->set_round_trip_best_ns(200'000);
  heartbeat->set_dirty(options_.dirty);
  for (const auto& [key, held] : held_) {
    v1::AssignmentProgress* progress = heartbeat->add_assignments();
    progress->set_assignment_id(key.first);
    progress->set_epoch(key.second);
    progress->set_phase(v1::PHASE_MEASURE);
    progress->set_last_seq(held.next_seq - 1);
  }
  Send(std::move(message));
  After(heartbeat_, [number](Agent& agent) { agent.Heartbeat(number); });
}

void SimFleet::Agent::Ack(const std::string& command_id, const Key& key, v1::CommandResult result,
                          const std::string& code) {
  v1::AgentMessage message;
  v1::CommandAck* ack = message.mutable_command_ack();
  ack->set_command_id(command_id);
  ack->set_assignment_id(key.first);
  ack->set_epoch(key.second);
  ack->set_result(result);
  ack->set_code(code);
  Send(std::move(message));
}

void SimFleet::Agent::OnAssign(const v1::Assign& assign) {
  if (options_.never_answer) return;
  const Key key{assign.spec().assignment_id(), assign.spec().epoch()};
  if (options_.refuse) {
    Ack(assign.command_id(), key, v1::COMMAND_RESULT_REFUSED, "DISK_LOW");
    return;
  }
  if (!seen_.contains(key) && (key.second >> 40) < epoch_seen_) {
    Ack(assign.command_id(), key, v1::COMMAND_RESULT_STALE_EPOCH, "");
    return;
  }
  Ack(assign.command_id(), key, v1::COMMAND_RESULT_OK, "");
  if (!seen_.insert(key).second) return;
  Held& held = held_[key];
  held.spec = assign.spec();
  held.steps = plan::StepNames(held.spec.workload());
  {
    std::lock_guard lock(fleet_->mutex_);
    ++fleet_->history_.starts[key];
    ++fleet_->held_;
  }
  v1::EventRecord begun;
  begun.set_phase_begun(v1::PHASE_BUILD);
  Record(key, std::move(begun));
  NextStep(key);
}

void SimFleet::Agent::OnWant(const v1::Want& want) {
  if (options_.never_answer) return;
  const Key key{want.assignment_id(), want.epoch()};
  if (!held_.contains(key)) {
    Ack(want.command_id(), key, v1::COMMAND_RESULT_REFUSED, "UNKNOWN_ASSIGNMENT");
    return;
  }
  Ack(want.command_id(), key, v1::COMMAND_RESULT_OK, "");
  if (want.want() == v1::WANT_STOP) Seal(key, v1::OUTCOME_CANCELLED, want.reason());
  if (want.want() == v1::WANT_CLOSED) Close(key);
}

void SimFleet::Agent::Close(const Key& key) {
  if (held_.erase(key) == 0) return;
  std::lock_guard lock(fleet_->mutex_);
  --fleet_->held_;
}

void SimFleet::Agent::Record(const Key& key, v1::EventRecord record) {
  Held& held = held_.at(key);
  record.set_seq(held.next_seq++);
  record.set_mono_ns(Now().time_since_epoch().count());
  held.events.push_back(std::move(record));
  SendEvents(key);
}

void SimFleet::Agent::SendEvents(const Key& key) {
  const auto found = held_.find(key);
  if (found == held_.end() || found->second.events.empty() || !online_) return;
  v1::AgentMessage message;
  v1::Events* events = message.mutable_events();
  events->set_assignment_id(key.first);
  events->set_epoch(key.second);
  for (const v1::EventRecord& record : found->second.events) *events->add_records() = record;
  if (options_.duplicate_events) Send(message);
  Send(std::move(message));
  if (random_.Chance(options_.drop_chance)) Disconnect(Nanoseconds(0));
}

void SimFleet::Agent::OnEventAck(const v1::EventAck& ack) {
  const auto found = held_.find({ack.assignment_id(), ack.epoch()});
  if (found == held_.end()) return;
  std::deque<v1::EventRecord>& events = found->second.events;
  while (!events.empty() && events.front().seq() <= ack.through_seq()) events.pop_front();
}

void SimFleet::Agent::NextStep(const Key& key) {
  const auto found = held_.find(key);
  if (found == held_.end() || found->second.sealed) return;
  Held& held = found->second;
  if (held.step == held.steps.size()) {
    const bool fails = random_.Chance(options_.fail_chance);
    Seal(key, fails ? v1::OUTCOME_FAILED : v1::OUTCOME_OK, fails ? "as asked" : "");
  } else if (held.spec.barrier()) {
    Stand(key);
  } else {
    RunStep(key, Now());
  }
}

void SimFleet::Agent::Stand(const Key& key) {
  Held& held = held_.at(key);
  held.standing = true;
  held.arming = 0;
  held.go = false;
  v1::AgentMessage message;
  v1::GateReady* ready = message.mutable_gate_ready();
  ready->set_assignment_id(key.first);
  ready->set_epoch(key.second);
  ready->set_gate_index(static_cast<std::uint32_t>(held.step));
  Send(std::move(message));
}

void SimFleet::Agent::OnArm(const v1::Arm& arm) {
  const Key key{arm.assignment_id(), arm.epoch()};
  const auto found = held_.find(key);
  if (options_.never_answer) return;
  if (found == held_.end() || !found->second.standing) {
    Ack(arm.command_id(), key, v1::COMMAND_RESULT_REFUSED, "NOT_AT_GATE");
    return;
  }
  found->second.arming = arm.arming();
  found->second.go = false;
  found->second.start = TimePoint(Nanoseconds(arm.start_controller_mono_ns()));  // one machine
  Ack(arm.command_id(), key, v1::COMMAND_RESULT_OK, "");
  After(std::max(Nanoseconds(0), found->second.start - Now()),
        [key, arming = arm.arming()](Agent& agent) { agent.StartDue(key, arming); });
}

void SimFleet::Agent::OnGo(const v1::Go& go) {
  const auto found = held_.find({go.assignment_id(), go.epoch()});
  if (found == held_.end() || found->second.arming != go.arming()) return;
  if (Now() < found->second.start) found->second.go = true;
}

void SimFleet::Agent::StartDue(const Key& key, std::uint64_t arming) {
  const auto found = held_.find(key);
  if (found == held_.end() || found->second.sealed || found->second.arming != arming) return;
  Held& held = found->second;
  const bool misses = options_.miss_starts > 0;
  if (misses) --options_.miss_starts;
  if (!held.go || misses) {
    Stand(key);
    return;
  }
  held.standing = false;
  RunStep(key, held.start);
}

void SimFleet::Agent::RunStep(const Key& key, TimePoint intended) {
  const TimePoint begin = Now();
  After(options_.step_time, [key, begin, intended](Agent& agent) {
    const auto found = agent.held_.find(key);
    if (found == agent.held_.end() || found->second.sealed) return;
    found->second.windows.emplace_back(begin, Now());
    found->second.intended.push_back(found->second.spec.barrier() ? intended : TimePoint{});
    ++found->second.step;
    agent.NextStep(key);
  });
}

void SimFleet::Agent::Seal(const Key& key, v1::Outcome outcome, const std::string& reason) {
  const auto found = held_.find(key);
  if (found == held_.end() || found->second.sealed) return;
  Held& held = found->second;
  held.sealed = true;
  held.standing = false;
  v1::EventRecord record;
  *record.mutable_result() =
      MakeResult(held.spec, options_.id, held.windows, held.intended, random_);
  record.mutable_result()->mutable_measurement()->set_outcome(outcome);
  record.mutable_result()->mutable_measurement()->set_reason(reason);
  {
    std::lock_guard lock(fleet_->mutex_);
    ++fleet_->history_.results[key];
  }
  Record(key, std::move(record));
}

SimFleet::SimFleet() : thread_([this] { Loop(); }) {}

SimFleet::~SimFleet() {
  Post([this] {
    for (auto& [id, agent] : agents_) agent->Vanish();
  });
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [this] { return streams_ == 0; });
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SimFleet::Post(std::function<void()> task, Nanoseconds delay) {
  {
    std::lock_guard lock(mutex_);
    timers_.push_back({Now() + delay, next_order_++, std::move(task)});
    std::ranges::push_heap(timers_, [](const Timer& a, const Timer& b) {
      return std::tie(a.at, a.order) > std::tie(b.at, b.order);
    });
  }
  changed_.notify_all();
}

bool SimFleet::NextTask(std::function<void()>& task) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_) return false;
    if (timers_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Nanoseconds wait = timers_.front().at - Now();
    if (wait > Nanoseconds(0)) {
      changed_.wait_for(lock, wait);
      continue;
    }
    std::ranges::pop_heap(timers_, [](const Timer& a, const Timer& b) {
      return std::tie(a.at, a.order) > std::tie(b.at, b.order);
    });
    task = std::move(timers_.back().task);
    timers_.pop_back();
    return true;
  }
}

void SimFleet::Loop() {
  std::function<void()> task;
  while (NextTask(task)) {
    task();
    task = nullptr;
  }
  agents_.clear();
}

void SimFleet::Add(SimAgentOptions options) {
  Post([this, options = std::move(options)] {
    auto agent = std::make_shared<Agent>(this, options);
    agents_[options.id] = agent;
    agent->Connect();
  });
}

void SimFleet::Disconnect(const std::string& id, Nanoseconds away) {
  Post([this, id, away] { agents_.at(id)->Disconnect(away); });
}

void SimFleet::Vanish(const std::string& id) {
  Post([this, id] { agents_.at(id)->Vanish(); });
}

std::size_t SimFleet::online_count() const {
  std::lock_guard lock(mutex_);
  return online_;
}
std::size_t SimFleet::held_count() const {
  std::lock_guard lock(mutex_);
  return held_;
}
SimHistory SimFleet::history() const {
  std::lock_guard lock(mutex_);
  return history_;
}

bool SimFleet::WaitForOnline(std::size_t count, Nanoseconds limit) const {
  const TimePoint until = Now() + limit;
  while (online_count() < count) {
    if (Now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace labrack::sim
