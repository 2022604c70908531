// Goal: whatever the order of events, every assignment of every run ends, no command leaves before
// its row is committed, no trial begins before the one before it ended, runs that share a host do
// not overlap, and every result is stored exactly once.
// Method: the pure scheduler against model agents and a model catalog; a seed decides which message
// is delivered next, who loses the session, who is lost, when a run is cancelled and when the
// controller is restarted from what was committed.
#include <algorithm>
#include <deque>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/names.h"
#include "controller/run/scheduler.h"
#include "storage/base/random.h"

namespace labrack::run {
namespace {

using catalog::AssignmentState;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What was committed.
struct ModelCatalog {
  std::map<std::string, catalog::RunRow> runs;
  std::vector<std::string> order;
  std::map<std::string, std::map<std::uint32_t, catalog::TrialRow>> trials;
  std::map<std::string, catalog::AssignmentRow> assignments;
  using EventKey = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  std::map<EventKey, v1::EventRecord> events;
  std::set<std::uint64_t> epochs;

  void Apply(const std::vector<catalog::Change>& changes) {
    for (const catalog::Change& change : changes) {
      std::visit([&](const auto& one) { One(one); }, change);
    }
  }
  void One(const catalog::InsertRun& change) {
    runs[change.run.id] = change.run;
    order.push_back(change.run.id);
    for (const catalog::TrialRow& trial : change.trials) trials[change.run.id][trial.index] = trial;
  }
  void One(const catalog::UpdateRun& change) {
    catalog::RunRow& run = runs.at(change.id);
    EXPECT_FALSE(catalog::IsFinal(run.state)) << change.id << " changed after its end";
    run.state = change.state;
    run.reason = change.reason;
    run.exit_code = change.exit_code;
    run.verdict = change.verdict;
  }
  void One(const catalog::UpdateTrial& change) {
    auto& rows = trials.at(change.trial.run_id);
    catalog::TrialRow& row = rows.at(change.trial.index);
    EXPECT_FALSE(catalog::IsFinal(row.state)) << "a trial changed after its end";
    for (const auto& [index, earlier] : rows) {
      if (index >= change.trial.index) break;
      EXPECT_TRUE(catalog::IsFinal(earlier.state))
          << "trial " << change.trial.index << " before the end of " << index;
    }
    row = change.trial;
  }
  void One(const catalog::PutAssignment& change) {
    const catalog::AssignmentRow& row = change.assignment;
    const auto known = assignments.find(row.id);
    if (known == assignments.end()) {
      EXPECT_TRUE(epochs.empty() || row.epoch > *epochs.rbegin()) << "epochs only grow";
      for (const auto& [id, other] : assignments) {
        if (other.agent_id != row.agent_id) continue;
        EXPECT_TRUE(catalog::IsFinal(other.state)) << row.id << " while " << id << " goes on";
      }
    } else {
      const bool anew = row.offered_epoch > known->second.offered_epoch &&
                        trials.at(row.run_id).at(row.trial_index).attempt > 1;
      EXPECT_TRUE(anew || !catalog::IsFinal(known->second.state)) << row.id << " had ended";
    }
    epochs.insert(row.epoch);
    assignments[row.id] = row;
  }
  void One(const catalog::StoreEvents& change) {
    for (const v1::EventRecord& record : change.records) {
      events.emplace(EventKey{change.assignment_id, change.epoch, record.seq()}, record);
    }
  }
  void One(const catalog::PutAgent&) {}
  void One(const catalog::Audit&) {}
  void One(const catalog::RaiseEpoch&) {}

  catalog::StoredRun Stored(const std::string& id) const {
    catalog::StoredRun stored;
    stored.run = runs.at(id);
    for (const auto& [index, trial] : trials.at(id)) stored.trials.push_back(trial);
    for (const auto& [assignment_id, row] : assignments) {
      if (row.run_id != id || catalog::IsFinal(trials.at(id).at(row.trial_index).state)) continue;
      catalog::StoredAssignment& assignment = stored.assignments.emplace_back();
      assignment.row = row;
      for (const auto& [key, record] : events) {
        if (std::get<0>(key) != assignment_id || std::get<1>(key) != row.offered_epoch) continue;
        assignment.through_seq = std::max(assignment.through_seq, std::get<2>(key));
        if (record.has_result()) assignment.result = record.result();
      }
    }
    return stored;
  }
};

// An agent that keeps the protocol; its trials take no time.
struct ModelAgent {
  struct Held {
    v1::AssignmentSpec spec;
    std::deque<v1::EventRecord> unacked;
    std::uint64_t last_seq = 0;
    bool sealed = false;
    std::optional<std::uint32_t> standing;
    std::uint64_t arming = 0;
    TimePoint start{};
  };
  std::string id;
  bool connected = false;
  bool lost = false;  // away until Return
  std::map<std::pair<std::string, std::uint64_t>, Held> held;
  std::map<std::pair<std::string, std::uint64_t>, int> starts;
  std::deque<v1::AgentMessage> to_controller;
  std::deque<v1::ControllerMessage> to_agent;
  TimePoint silent_since{};
};

v1::Plan MakePlan(const std::vector<std::string>& agents, std::uint32_t trials, bool subset) {
  v1::Plan plan;
  plan.set_playbook_name("model");
  plan.mutable_playbook()->set_lost_after(Nanoseconds(seconds(20)).count());
  for (const std::string& agent : agents) {
    plan.add_hosts()->set_agent_id(agent);
    plan.mutable_hosts(plan.hosts_size() - 1)->set_host_name("host-" + agent);
  }
  for (std::uint32_t index = 0; index < 2; ++index) {
    v1::PlannedCell* cell = plan.add_cells();
    cell->set_index(index);
    cell->mutable_stack()->set_name(index == 0 ? "a" : "b");
    cell->mutable_workload()->set_name("pages");
    cell->mutable_workload()->mutable_sync_pages();
    for (const std::string& agent : agents) cell->add_agent_ids(agent);
    if (index == 1 && subset) cell->mutable_agent_ids()->RemoveLast();
  }
  for (std::uint32_t index = 0; index < trials; ++index) {
    v1::PlannedTrial* trial = plan.add_trials();
    trial->set_index(index);
    trial->set_cell(index % 2);
    trial->set_repeat(index / 2);
  }
  return plan;
}

class World : public AgentDirectory {
 public:
  explicit World(std::uint64_t seed) : random_(Seed{seed}) {
    for (const char* id : {"a1", "a2", "a3"}) agents_[id].id = id;
    Restart();
  }

  AgentView Look(const std::string& agent_id) const override {
    const ModelAgent& agent = agents_.at(agent_id);
    AgentView view;
    view.connected = agent.connected;
    view.may_be_lost = now_.mono - started_ > seconds(5);
    if (!agent.connected) {
      view.silent = now_.mono - std::max(agent.silent_since, started_);
      view.away = view.silent > seconds(6);
    }
    view.round_trip = milliseconds(1);
    return view;
  }

  void Submit(const std::string& id, v1::Plan plan) {
    catalog::RunRow row;
    row.id = id;
    row.plan = std::move(plan);
    scheduler_->Submit(std::move(row), now_, effects_);
    Settle();
  }
  void Cancel(const std::string& id) {
    scheduler_->Cancel(id, "test", "by the test", now_, effects_);
    Settle();
  }
  void Lose(const std::string& id) {
    agents_.at(id).lost = true;
    Disconnect(agents_.at(id));
  }
  // It was given up meanwhile, and still holds what it held.
  void Return(const std::string& id) { agents_.at(id).lost = false; }
  void ComeBack(const std::string& id) {
    Return(id);
    Connect(agents_.at(id));
    Settle();
  }
  // kill -9 and start: only what was committed is known.
  void Restart() {
    effects_ = {};
    started_ = now_.mono;
    for (auto& [id, agent] : agents_) Disconnect(agent);
    scheduler_ = std::make_unique<Scheduler>(Options{.repeat_after = seconds(2)}, *this, ++epoch_);
    for (const std::string& id : catalog_.order) {
      if (!catalog::IsFinal(catalog_.runs.at(id).state)) {
        scheduler_->Restore(catalog_.Stored(id), now_);
      }
    }
  }

  // One random event.
  void Step(bool faults) {
    auto agent = std::next(agents_.begin(), static_cast<long>(random_.Below(agents_.size())));
    const std::uint64_t what = random_.Below(100);
    if (faults && what < 3) {
      Disconnect(agent->second);
    } else if (faults && what < 4) {
      Restart();
    } else if (what < 10) {
      Advance(milliseconds(50 + random_.Below(2000)));
    } else if (what < 55) {
      DeliverToAgent(agent->second);
    } else {
      DeliverToController(agent->second);
    }
    if (!agent->second.connected && !agent->second.lost && random_.Chance(0.3)) {
      Connect(agent->second);
    }
    Settle();
  }
  bool Finished() const {
    return std::ranges::all_of(catalog_.runs,
                               [](const auto& run) { return catalog::IsFinal(run.second.state); });
  }
  bool Quiet() const {
    return std::ranges::all_of(agents_, [](const auto& entry) {
      return entry.second.lost || (entry.second.held.empty() && entry.second.connected);
    });
  }
  std::string Describe() const {
    std::string text;
    for (const auto& [id, run] : catalog_.runs) {
      text += id + " " + std::string(catalog::StateName(run.state)) + "\n";
    }
    for (const auto& [id, row] : catalog_.assignments) {
      if (catalog::IsFinal(row.state)) continue;
      text += id + " " + std::string(catalog::StateName(row.state)) +
              (row.stop_wanted ? " stop wanted" : "") + "\n";
    }
    for (const auto& [id, agent] : agents_) {
      text += id + (agent.connected ? " connected" : " away") + (agent.lost ? " lost" : "") +
              " in " + std::to_string(agent.to_controller.size()) + " out " +
              std::to_string(agent.to_agent.size());
      for (const auto& [key, held] : agent.held) {
        text += "; " + key.first + " " + std::to_string(key.second) +
                (held.sealed ? " sealed" : "") + (held.standing ? " standing" : "") + " unacked " +
                std::to_string(held.unacked.size());
      }
      text += "\n";
    }
    return text;
  }
  const ModelCatalog& catalog() const { return catalog_; }
  const std::map<std::string, ModelAgent>& agents() const { return agents_; }
  Random& random() { return random_; }

 private:
  void Advance(Nanoseconds time) {
    now_.mono += time;
    now_.wall_ns += time.count();
    // Who was armed and has not heard Go stands again once the instant has passed.
    for (auto& [id, agent] : agents_) {
      for (auto& [key, held] : agent.held) {
        if (!held.standing || held.arming == 0 || now_.mono < held.start) continue;
        held.arming = 0;
        if (agent.connected) SayReady(agent, key, held);
      }
    }
  }

  // As the loop does it: advance, commit, send, make verdicts.
  void Settle() {
    scheduler_->Advance(now_, effects_);
    catalog_.Apply(effects_.changes);
    Effects done = std::exchange(effects_, {});
    for (Command& command : done.commands) {
      CheckCommitted(command);
      ModelAgent& agent = agents_.at(command.agent_id);
      if (agent.connected) agent.to_agent.push_back(std::move(command.message));
    }
    for (const std::string& run : done.ended_runs) {
      const bool lost = std::ranges::any_of(catalog_.trials.at(run), [](const auto& trial) {
        return trial.second.state == catalog::TrialState::kLost;
      });
      scheduler_->SetVerdict(run, lost ? "INVALID" : "PASSED", lost ? 5 : 0, now_, effects_);
    }
    if (!effects_.changes.empty()) Settle();
  }

  void CheckCommitted(const Command& command) {
    if (command.message.has_assign()) {
      const v1::AssignmentSpec& spec = command.message.assign().spec();
      const auto row = catalog_.assignments.find(spec.assignment_id());
      ASSERT_NE(row, catalog_.assignments.end()) << "an Assign without a row";
      EXPECT_EQ(row->second.offered_epoch, spec.epoch());
    }
    if (command.message.has_event_ack()) {
      const v1::EventAck& ack = command.message.event_ack();
      EXPECT_TRUE(catalog_.events.contains({ack.assignment_id(), ack.epoch(), ack.through_seq()}))
          << "an acknowledgement before the commit";
    }
    if (command.message.has_want() && command.message.want().want() == v1::WANT_STOP) {
      EXPECT_TRUE(catalog_.assignments.at(command.message.want().assignment_id()).stop_wanted);
    }
  }

  void Disconnect(ModelAgent& agent) {
    if (agent.connected) agent.silent_since = now_.mono;
    agent.connected = false;
    agent.to_agent.clear();
    agent.to_controller.clear();
  }

  void Connect(ModelAgent& agent) {
    v1::Hello hello;
    for (const auto& [key, held] : agent.held) {
      v1::HeldAssignment* item = hello.add_held();
      item->set_assignment_id(key.first);
      item->set_epoch(key.second);
      item->set_state(held.sealed          ? v1::ASSIGNMENT_STATE_SEALED
                      : held.last_seq == 0 ? v1::ASSIGNMENT_STATE_ACCEPTED
                                           : v1::ASSIGNMENT_STATE_RUNNING);
    }
    agent.connected = true;
    const Scheduler::Diff diff = scheduler_->OnHello(agent.id, hello, now_, effects_);
    for (std::size_t i = 0; i < diff.desired.size(); ++i) {
      Want(agent, {diff.desired_ids[i], diff.desired[i].epoch}, diff.desired[i].want);
      Acked(agent, {diff.desired_ids[i], diff.desired[i].epoch}, diff.desired[i].through_seq);
    }
    for (const v1::HeldAssignment& held : diff.strangers) {
      std::uint64_t through = 0;
      for (const auto& [key, record] : catalog_.events) {
        const bool same =
            std::get<0>(key) == held.assignment_id() && std::get<1>(key) == held.epoch();
        if (same) through = std::max(through, std::get<2>(key));
      }
      scheduler_->KnowStored(agent.id, held, through);
      const bool stored = std::ranges::any_of(catalog_.events, [&](const auto& event) {
        return std::get<0>(event.first) == held.assignment_id() &&
               std::get<1>(event.first) == held.epoch() && event.second.has_result();
      });
      Want(agent, {held.assignment_id(), held.epoch()},
           DesiredOfStranger(catalog_.assignments.contains(held.assignment_id()), stored, held));
    }
    for (auto& [key, held] : agent.held) {
      Resend(agent, key, held);
      if (held.standing) SayReady(agent, key, held);
    }
  }

  using Key = std::pair<std::string, std::uint64_t>;

  void Ack(ModelAgent& agent, const std::string& id, const Key& key, bool ok) {
    v1::CommandAck* ack = agent.to_controller.emplace_back().mutable_command_ack();
    ack->set_command_id(id);
    ack->set_assignment_id(key.first);
    ack->set_epoch(key.second);
    ack->set_result(ok ? v1::COMMAND_RESULT_OK : v1::COMMAND_RESULT_REFUSED);
    if (!ok) ack->set_code("UNKNOWN_ASSIGNMENT");
  }
  void Resend(ModelAgent& agent, const Key& key, const ModelAgent::Held& held) {
    if (held.unacked.empty()) return;
    v1::Events* events = agent.to_controller.emplace_back().mutable_events();
    events->set_assignment_id(key.first);
    events->set_epoch(key.second);
    for (const v1::EventRecord& record : held.unacked) *events->add_records() = record;
  }
  void Record(ModelAgent& agent, const Key& key, v1::EventRecord record) {
    ModelAgent::Held& held = agent.held.at(key);
    record.set_seq(++held.last_seq);
    held.unacked.push_back(std::move(record));
    Resend(agent, key, held);
  }
  void SayReady(ModelAgent& agent, const Key& key, ModelAgent::Held& held) {
    v1::GateReady* ready = agent.to_controller.emplace_back().mutable_gate_ready();
    ready->set_assignment_id(key.first);
    ready->set_epoch(key.second);
    ready->set_gate_index(held.standing.value_or(0));
  }
  void Seal(ModelAgent& agent, const Key& key, v1::Outcome outcome) {
    const auto found = agent.held.find(key);
    if (found == agent.held.end() || found->second.sealed) return;
    found->second.sealed = true;
    found->second.standing.reset();
    v1::EventRecord record;
    v1::AssignmentResult* result = record.mutable_result();
    result->mutable_measurement()->set_outcome(outcome);
    result->set_verified(v1::VERIFY_OUTCOME_MATCHED);
    if (outcome == v1::OUTCOME_OK) {
      v1::StepResult* step = result->add_steps();
      step->set_step("write");
      step->set_primary(v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND);
      step->set_measure_begin_mono_ns(1000);
      step->set_measure_end_mono_ns(2'000'000);
      v1::OperationResult* operation = step->add_operations();
      operation->set_operation("write");
      operation->set_count(10);
      step->add_counted("write");
      v1::PhaseRecord* phase = result->add_phases();
      phase->set_phase(v1::PHASE_MEASURE);
      phase->set_step("write");
      phase->set_end(v1::PHASE_END_DONE);
    }
    Record(agent, key, std::move(record));
  }
  void Want(ModelAgent& agent, const Key& key, v1::WantKind want) {
    if (want == v1::WANT_STOP) Seal(agent, key, v1::OUTCOME_CANCELLED);
    if (want != v1::WANT_CLOSED) return;
    const auto held = agent.held.find(key);
    if (held == agent.held.end()) return;
    EXPECT_TRUE(held->second.sealed) << "ordered deleted before its end";
    for (std::uint64_t seq = 1; seq <= held->second.last_seq; ++seq) {
      EXPECT_TRUE(catalog_.events.contains({key.first, key.second, seq})) << "deleted, not stored";
    }
    agent.held.erase(held);
  }
  void Acked(ModelAgent& agent, const Key& key, std::uint64_t through) {
    const auto held = agent.held.find(key);
    if (held == agent.held.end()) return;
    std::deque<v1::EventRecord>& unacked = held->second.unacked;
    while (!unacked.empty() && unacked.front().seq() <= through) unacked.pop_front();
  }

  void DeliverToAgent(ModelAgent& agent) {
    if (agent.to_agent.empty()) return;
    const v1::ControllerMessage message = agent.to_agent.front();
    agent.to_agent.pop_front();
    if (message.has_assign()) {
      TakeAssign(agent, message.assign());
    } else if (message.has_want()) {
      const Key key{message.want().assignment_id(), message.want().epoch()};
      Ack(agent, message.want().command_id(), key, agent.held.contains(key));
      Want(agent, key, message.want().want());
    } else if (message.has_arm()) {
      const Key key{message.arm().assignment_id(), message.arm().epoch()};
      const auto held = agent.held.find(key);
      const bool can = held != agent.held.end() && held->second.standing;
      if (can) {
        held->second.arming = message.arm().arming();
        held->second.start = TimePoint(Nanoseconds(message.arm().start_controller_mono_ns()));
      }
      Ack(agent, message.arm().command_id(), key, can);
    } else if (message.has_go()) {
      const Key key{message.go().assignment_id(), message.go().epoch()};
      const auto held = agent.held.find(key);
      if (held == agent.held.end() || held->second.arming != message.go().arming()) return;
      if (held->second.standing && now_.mono < held->second.start) {
        Seal(agent, key, v1::OUTCOME_OK);
      }
    } else if (message.has_event_ack()) {
      Acked(agent, {message.event_ack().assignment_id(), message.event_ack().epoch()},
            message.event_ack().through_seq());
    }
  }

  void TakeAssign(ModelAgent& agent, const v1::Assign& assign) {
    const Key key{assign.spec().assignment_id(), assign.spec().epoch()};
    // As real agents do: tokens of an older controller are over.
    EXPECT_EQ(key.second >> EpochSource::kCounterBits, epoch_) << "a stale token is offered";
    Ack(agent, assign.command_id(), key, true);
    if (agent.starts.contains(key)) return;
    ++agent.starts[key];
    agent.held[key].spec = assign.spec();
    v1::EventRecord begun;
    begun.set_phase_begun(v1::PHASE_BUILD);
    Record(agent, key, std::move(begun));
    if (assign.spec().barrier()) {
      agent.held.at(key).standing = 0;
      SayReady(agent, key, agent.held.at(key));
    } else {
      Seal(agent, key, random_.Chance(0.9) ? v1::OUTCOME_OK : v1::OUTCOME_FAILED);
    }
  }

  void DeliverToController(ModelAgent& agent) {
    if (!agent.connected || agent.to_controller.empty()) return;
    const v1::AgentMessage message = agent.to_controller.front();
    agent.to_controller.pop_front();
    if (message.has_command_ack()) {
      scheduler_->OnCommandAck(agent.id, message.command_ack(), effects_);
    } else if (message.has_events()) {
      scheduler_->OnEvents(agent.id, message.events(), now_, effects_);
    } else if (message.has_gate_ready()) {
      scheduler_->OnGateReady(agent.id, message.gate_ready(), now_);
    }
  }

  Random random_;
  Moment now_{.mono = TimePoint(seconds(1000)), .wall_ns = 1};
  TimePoint started_{};
  std::uint64_t epoch_ = 0;
  std::map<std::string, ModelAgent> agents_;
  ModelCatalog catalog_;
  std::unique_ptr<Scheduler> scheduler_;
  Effects effects_;
};

class SchedulerOrders : public testing::TestWithParam<int> {};

TEST_P(SchedulerOrders, EveryAssignmentEndsAndEveryResultIsStoredOnce) {
  SCOPED_TRACE("replay: build/release/tests/run_scheduler_test --gtest_filter='*/" +
               std::to_string(GetParam() - 1) + "'");
  World world(static_cast<std::uint64_t>(GetParam()));
  world.Submit("r-1", MakePlan({"a1", "a2"}, 4, /*subset=*/true));
  world.Submit("r-2", MakePlan({"a2", "a3"}, 3, /*subset=*/false));
  world.Submit("r-3", MakePlan({"a1"}, 2, /*subset=*/false));
  const bool cancels = world.random().Chance(0.3);
  const bool loses = world.random().Chance(0.3);
  const bool returns = world.random().Chance(0.5);
  for (int step = 0; step < 600; ++step) {
    world.Step(/*faults=*/true);
    if (step == 40 && cancels) world.Cancel("r-1");
    if (step == 60 && loses) world.Lose("a3");
    if (step == 560 && returns) world.Return("a3");
  }
  int steps = 0;
  while ((!world.Finished() || !world.Quiet()) && steps < 200'000) {
    world.Step(/*faults=*/false);
    ++steps;
  }
  ASSERT_TRUE(world.Finished()) << "a run did not end:\n" << world.Describe();
  ASSERT_TRUE(world.Quiet()) << "an agent was not told to close:\n" << world.Describe();
  for (const auto& [id, row] : world.catalog().assignments) {
    EXPECT_TRUE(catalog::IsFinal(row.state)) << id;
  }
  for (const auto& [run, trials] : world.catalog().trials) {
    for (const auto& [index, trial] : trials) {
      EXPECT_TRUE(catalog::IsFinal(trial.state)) << run << "/" << index;
      if (trial.state != catalog::TrialState::kValid) EXPECT_NE(trial.reason, "");
      EXPECT_LE(trial.attempt, Trial::kAttemptsMax);
      // The cause, not what came of it, over restarts as well.
      if (trial.state == catalog::TrialState::kCancelled) EXPECT_EQ(trial.reason, "by the test");
      // A start that broke is no reason to end as long as there are attempts left.
      EXPECT_TRUE(trial.state != catalog::TrialState::kInvalid ||
                  trial.reason.find("common start") == std::string::npos ||
                  trial.reason.find("host-") != std::string::npos ||
                  trial.attempt == Trial::kAttemptsMax)
          << trial.attempt << ": " << trial.reason;
    }
  }
  for (const auto& [id, agent] : world.agents()) {
    for (const auto& [key, count] : agent.starts) {
      EXPECT_EQ(count, 1);
      if (agent.lost) continue;
      const auto results = std::ranges::count_if(world.catalog().events, [&](const auto& event) {
        return std::get<0>(event.first) == key.first && std::get<1>(event.first) == key.second &&
               event.second.has_result();
      });
      EXPECT_EQ(results, 1) << key.first;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, SchedulerOrders, testing::Range(1, 301));

class SchedulerTest : public testing::Test {
 protected:
  void RunToEnd(World& world) {
    for (int step = 0; step < 100'000 && !(world.Finished() && world.Quiet()); ++step) {
      world.Step(/*faults=*/false);
    }
    ASSERT_TRUE(world.Finished());
  }
};

TEST_F(SchedulerTest, ALostAgentEndsItsTrialsWithTheReasonAndOthersGoOn) {
  World world(7);
  world.Lose("a2");
  world.Submit("r-1", MakePlan({"a1", "a2"}, 4, /*subset=*/true));  // cell b needs a1 only
  RunToEnd(world);
  const auto& trials = world.catalog().trials.at("r-1");
  EXPECT_EQ(trials.at(0).state, catalog::TrialState::kLost);
  EXPECT_THAT(trials.at(0).reason, testing::HasSubstr("host-a2: the agent was silent for"));
  EXPECT_EQ(trials.at(2).state, catalog::TrialState::kLost);
  EXPECT_THAT(trials.at(2).reason, testing::HasSubstr("host-a2 was lost in an earlier trial"));
  EXPECT_NE(trials.at(1).state, catalog::TrialState::kLost);
  EXPECT_EQ(world.catalog().runs.at("r-1").state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(world.catalog().runs.at("r-1").exit_code, 5);
  const catalog::AssignmentRow& row = world.catalog().assignments.at("r-1/0/a2");
  EXPECT_EQ(row.state, AssignmentState::kAbandoned);
  EXPECT_GT(row.epoch, row.offered_epoch);
}

TEST_F(SchedulerTest, ACancelledRunEndsItsTrialsAsCancelled) {
  World world(8);
  world.Submit("r-1", MakePlan({"a1", "a2"}, 4, /*subset=*/false));
  world.Cancel("r-1");
  RunToEnd(world);
  EXPECT_EQ(world.catalog().runs.at("r-1").state, v1::RUN_STATE_CANCELLED);
  for (const auto& [index, trial] : world.catalog().trials.at("r-1")) {
    EXPECT_EQ(trial.state, catalog::TrialState::kCancelled);
    EXPECT_EQ(trial.reason, "by the test");
  }
}

// Drives one scheduler by hand.
class Directory : public AgentDirectory {
 public:
  AgentView Look(const std::string& agent_id) const override {
    return agents.contains(agent_id) ? agents.at(agent_id) : AgentView{};
  }
  std::map<std::string, AgentView> agents;
};

TEST_F(SchedulerTest, ARunIsCancelledWhenNobodyWatchesForItsLease) {
  Directory directory;
  Scheduler scheduler({}, directory, 1);
  Moment now{.mono = TimePoint(seconds(10))};
  Effects effects;
  catalog::RunRow row;
  row.id = "r-1";
  row.plan = MakePlan({"a1"}, 1, false);
  row.lease_ns = Nanoseconds(seconds(30)).count();
  scheduler.Submit(row, now, effects);
  scheduler.SetWatchers("r-1", 1, now);
  now.mono += seconds(100);
  scheduler.Advance(now, effects);
  EXPECT_EQ(scheduler.Summary("r-1", now)->state(), v1::RUN_STATE_RUNNING);
  scheduler.SetWatchers("r-1", 0, now);
  now.mono += seconds(29);
  scheduler.Advance(now, effects);
  EXPECT_EQ(scheduler.Summary("r-1", now)->state(), v1::RUN_STATE_RUNNING);
  now.mono += seconds(2);
  scheduler.Advance(now, effects);
  EXPECT_EQ(scheduler.Summary("r-1", now)->state(), v1::RUN_STATE_CANCELLING);
  EXPECT_THAT(scheduler.Summary("r-1", now)->reason(), testing::HasSubstr("nobody watched"));
}

TEST_F(SchedulerTest, ALostAgentThatComesBackIsUsedAgain) {
  World world(7);
  world.Lose("a2");
  world.Submit("r-1", MakePlan({"a1", "a2"}, 4, /*subset=*/true));  // cell b needs a1 only
  const auto& trials = world.catalog().trials.at("r-1");
  for (int step = 0; step < 10'000 && !catalog::IsFinal(trials.at(0).state); ++step) {
    world.Step(/*faults=*/false);
  }
  ASSERT_EQ(trials.at(0).state, catalog::TrialState::kLost);
  ASSERT_FALSE(catalog::IsFinal(trials.at(1).state));
  world.ComeBack("a2");
  RunToEnd(world);
  EXPECT_EQ(trials.at(2).state, catalog::TrialState::kValid) << trials.at(2).reason;
}

v1::Events Batch(const std::string& assignment_id, std::uint64_t first, int count, bool result) {
  v1::Events events;
  events.set_assignment_id(assignment_id);
  events.set_epoch(7);
  for (int i = 0; i < count; ++i) {
    events.add_records()->set_seq(first + static_cast<std::uint64_t>(i));
  }
  if (result) events.mutable_records(count - 1)->mutable_result();
  return events;
}

std::uint64_t AckedThrough(const Effects& effects) {
  std::uint64_t through = 0;
  for (const Command& command : effects.commands) {
    if (command.message.has_event_ack()) through = command.message.event_ack().through_seq();
  }
  return through;
}

bool IsClosed(const Effects& effects) {
  return std::ranges::any_of(effects.commands, [](const Command& command) {
    return command.message.has_want() && command.message.want().want() == v1::WANT_CLOSED;
  });
}

// Whatever is acknowledged or ordered deleted is among the changes that are committed before.
TEST_F(SchedulerTest, AResultAboutAnotherAgentsAssignmentIsStoredApart) {
  Directory directory;
  Scheduler scheduler({}, directory, 1);
  Effects effects;
  scheduler.OnEvents("a2", Batch("r-1/0/a1", 1, 2, /*result=*/true), Moment{}, effects);
  EXPECT_EQ(effects.foreign_events, 1U);
  EXPECT_EQ(AckedThrough(effects), 2U);
  EXPECT_TRUE(IsClosed(effects));
  ASSERT_EQ(effects.changes.size(), 1U);
  const auto& stored = std::get<catalog::StoreEvents>(effects.changes[0]);
  EXPECT_EQ(stored.assignment_id, "r-1/0/a1@a2") << "the owner's key stays free";
  EXPECT_EQ(stored.records.size(), 2U);
}

TEST_F(SchedulerTest, RecordsBehindAGapAreNeitherStoredNorAcknowledged) {
  Directory directory;
  Scheduler scheduler({}, directory, 1);
  Effects gap;
  scheduler.OnEvents("a1", Batch("r-1/0/a1", 3, 2, /*result=*/true), Moment{}, gap);
  EXPECT_TRUE(gap.changes.empty());
  EXPECT_TRUE(gap.commands.empty());
  EXPECT_EQ(gap.refused_events, 2U);

  Effects inside;
  v1::Events torn = Batch("r-1/0/a1", 1, 4, /*result=*/true);
  torn.mutable_records(2)->set_seq(7);
  scheduler.OnEvents("a1", torn, Moment{}, inside);
  EXPECT_EQ(AckedThrough(inside), 2U);
  EXPECT_FALSE(IsClosed(inside)) << "the result is behind the gap";
  EXPECT_EQ(std::get<catalog::StoreEvents>(inside.changes.at(0)).records.size(), 2U);
  EXPECT_EQ(inside.refused_events, 2U);

  Effects rest;
  scheduler.OnEvents("a1", Batch("r-1/0/a1", 2, 3, /*result=*/true), Moment{}, rest);
  EXPECT_EQ(AckedThrough(rest), 4U);
  EXPECT_TRUE(IsClosed(rest));
}

TEST_F(SchedulerTest, AfterHelloEventsGoOnWhereTheCatalogIs) {
  Directory directory;
  Scheduler scheduler({}, directory, 1);
  Effects effects;
  v1::Hello hello;
  v1::HeldAssignment* held = hello.add_held();
  held->set_assignment_id("r-1/0/a1");
  held->set_epoch(7);
  const Scheduler::Diff diff = scheduler.OnHello("a1", hello, Moment{}, effects);
  ASSERT_EQ(diff.strangers.size(), 1U);
  scheduler.KnowStored("a1", diff.strangers[0], 5);
  scheduler.OnEvents("a1", Batch("r-1/0/a1", 6, 1, /*result=*/true), Moment{}, effects);
  EXPECT_EQ(AckedThrough(effects), 6U);
  EXPECT_EQ(effects.refused_events, 0U);
}

TEST_F(SchedulerTest, NumbersThatCannotBeAreRefused) {
  Directory directory;
  Scheduler scheduler({}, directory, 1);
  Effects effects;
  v1::Events events = Batch("r-1/0/a1", 1, 1, /*result=*/true);
  events.set_epoch(1ULL << 63);
  scheduler.OnEvents("a1", events, Moment{}, effects);
  scheduler.OnEvents("a1", Batch("r-1/0/a1", 0, 1, /*result=*/false), Moment{}, effects);
  EXPECT_TRUE(effects.changes.empty());
  EXPECT_TRUE(effects.commands.empty());
  EXPECT_EQ(effects.refused_events, 2U);
}

// Two agents whose tokens are equal (of two catalogs) are both told, and no agent fills memory.
TEST_F(SchedulerTest, ClosingIsToldToEachAgentAndIsBounded) {
  Directory directory;
  directory.agents["a1"].connected = directory.agents["a2"].connected = true;
  Scheduler scheduler({.repeat_after = seconds(10)}, directory, 1);
  Effects effects;
  Moment now{.mono = TimePoint(seconds(10))};
  scheduler.OnEvents("a1", Batch("r-1/0/a1", 1, 1, /*result=*/true), now, effects);
  scheduler.OnEvents("a2", Batch("r-1/0/a2", 1, 1, /*result=*/true), now, effects);
  const auto repeats = [&] {
    now.mono += seconds(11);
    Effects repeated;
    scheduler.Advance(now, repeated);
    return repeated.commands.size();
  };
  EXPECT_EQ(repeats(), 2U);
  v1::CommandAck ack;
  ack.set_command_id("c-7");
  ack.set_assignment_id("r-1/0/a2");
  ack.set_epoch(7);
  scheduler.OnCommandAck("a2", ack, effects);
  EXPECT_EQ(repeats(), 1U) << "a2's answer says nothing about a1";
  for (int trial = 0; trial < 200; ++trial) {
    scheduler.OnEvents("a1", Batch("r-2/" + std::to_string(trial) + "/a1", 1, 1, true), now,
                       effects);
  }
  EXPECT_EQ(repeats(), Scheduler::kClosingPerAgentMax);
}

TEST_F(SchedulerTest, TokensGrowOverRestarts) {
  EpochSource first(3);
  const std::uint64_t last = first.Next() + 1'000'000;
  EXPECT_GT(EpochSource(4).Next(), last);
  EXPECT_EQ(EpochSource(5).Next(), (5ULL << 40) + 1);
}

}  // namespace
}  // namespace labrack::run
