// Goal: the controller as users meet it: runs on several hosts, lost agents, cancel, restarts,
// watching, http; with agents that drop sessions and repeat themselves.
// Method: a whole controller in this process on ports of its own, simulated agents over gRPC.
#include <cstdio>
#include <fstream>
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/controller_fixture.h"
#include "tests/e2e/wait_until.h"

namespace labrack::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST_F(ControllerTest, APlaybookRunsOnThreeHostsTogether) {
  StartController();
  AddAgents(3);
  const v1::SubmitReply reply = client().Submit(Playbook(2));
  ASSERT_TRUE(client().last_status().ok()) << client().last_status().error_message();
  ASSERT_EQ(reply.plan().problems_size(), 0) << reply.plan().problems(0).message();
  const std::vector<v1::RunEvent> events = client().Watch(reply.run_id());
  ASSERT_TRUE(client().last_status().ok()) << client().last_status().error_message();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().trials_size(), 4) << "the first event has the whole state";
  EXPECT_EQ(events.front().hosts_size(), 3);
  const v1::RunSummary summary = events.back().summary();
  EXPECT_EQ(summary.trials_valid(), 4U);
  EXPECT_EQ(summary.state(), v1::RUN_STATE_DONE) << summary.reason();
  EXPECT_EQ(summary.exit_code(), 0);

  const v1::RunRecord record = client().Show(reply.run_id());
  ASSERT_EQ(record.trials_size(), 4);
  for (const v1::TrialRecord& trial : record.trials()) {
    EXPECT_EQ(trial.summary().state(), "valid") << trial.summary().reason();
    EXPECT_EQ(trial.assignments_size(), 3);
    EXPECT_GT(trial.summary().overlap(), 0);
  }
  ExpectExactlyOnce(record, fleet_->history());
}

TEST_F(ControllerTest, ARunIsShownAsFarAsIsAskedForAndPageByPage) {
  StartController();
  AddAgents(2);
  const std::string run_id = client().Submit(Playbook(2)).run_id();
  client().WaitForEnd(run_id);
  const v1::RunRecord whole = client().Show(run_id);
  v1::ShowRunRequest request;
  request.set_run_id(run_id);
  request.set_level(v1::RECORD_LEVEL_SUMMARY);
  const v1::RunRecord summary = client().Show(request);
  EXPECT_EQ(summary.summary().SerializeAsString(), whole.summary().SerializeAsString());
  EXPECT_EQ(summary.trials_size(), 4);
  EXPECT_FALSE(summary.has_plan());
  request.set_level(v1::RECORD_LEVEL_ASSIGNMENTS);
  const v1::RunRecord assignments = client().Show(request);
  EXPECT_EQ(assignments.plan().cells_size(), 2);
  ASSERT_EQ(assignments.trials(0).assignments_size(), 2);
  EXPECT_FALSE(assignments.trials(0).assignments(0).has_result());

  request.set_level(v1::RECORD_LEVEL_RESULTS);
  request.set_page_bytes(1);  // each has one trial
  v1::RunRecord joined = client().Show(request);
  ASSERT_EQ(joined.trials_size(), 1);
  while (joined.trials_size() < whole.trials_size()) {
    request.set_first_trial(static_cast<std::uint32_t>(joined.trials_size()));
    const v1::RunRecord page = client().Show(request);
    ASSERT_EQ(page.trials_size(), 1);
    EXPECT_FALSE(page.has_plan());
    *joined.add_trials() = page.trials(0);
  }
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(joined, whole));
  request.set_first_trial(4);
  EXPECT_EQ(client().Show(request).trials_size(), 0);
  request.set_first_trial(0);
  request.set_page_bytes(1 << 20);
  EXPECT_EQ(client().Show(request).trials_size(), 4);
}

TEST_F(ControllerTest, AnEndedRunCanBeWatchedAndAnUnknownOneIsSaid) {
  StartController();
  AddAgents(1);
  const std::string run_id = client().Submit(Playbook(1)).run_id();
  client().WaitForEnd(run_id);
  const std::vector<v1::RunEvent> again = client().Watch(run_id);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_GE(again[0].summary().exit_code(), 0);
  EXPECT_EQ(again[0].trials_size(), 2);
  EXPECT_TRUE(client().Watch("r-none").empty());
  EXPECT_EQ(client().last_status().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControllerTest, OneKeyIsOneRun) {
  StartController();
  AddAgents(1);
  std::vector<std::thread> threads;
  std::vector<std::string> ids(4);
  for (std::string& id : ids) {
    threads.emplace_back([&, address = controller_->control_address()] {
      id = ControlClient(address).Submit(Playbook(1), "the-key").run_id();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(ids[0], "");
  for (const std::string& id : ids) EXPECT_EQ(id, ids[0]);
  client().WaitForEnd(ids[0]);
  StopController();
  StartController();
  const v1::SubmitReply again = client().Submit(Playbook(1), "the-key");
  EXPECT_EQ(again.run_id(), ids[0]);
  EXPECT_TRUE(again.existed());
}

TEST_F(ControllerTest, AWrongPlaybookStartsNothing) {
  StartController();
  AddAgents(1);
  const v1::SubmitReply reply = client().Submit("playbook: x\nstaks: {}\n");
  EXPECT_TRUE(client().last_status().ok());
  EXPECT_EQ(reply.run_id(), "");
  EXPECT_GT(reply.plan().problems_size(), 0);
}

TEST_F(ControllerTest, AnAgentLostForGoodEndsItsTrialsAndKeepsTheOthers) {
  StartController();
  AddAgents(3, [](sim::SimAgentOptions& options) {
    if (options.id == "st-2") options.never_answer = true;
  });
  const std::string run_id = client().Submit(Playbook(2, "lost_after: 1s\n")).run_id();
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return fleet_->history().starts.size() == 2; }));
  fleet_->Vanish("st-2");
  const v1::RunSummary summary = client().WaitForEnd(run_id);
  EXPECT_EQ(summary.state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(summary.exit_code(), 5);
  const v1::RunRecord record = client().Show(run_id);
  EXPECT_EQ(record.trials(0).summary().state(), "lost");
  EXPECT_THAT(record.trials(0).summary().reason(), HasSubstr("host-st-2"));
  EXPECT_THAT(record.trials(3).summary().reason(), HasSubstr("lost in an earlier trial"));
  int kept = 0;
  for (const v1::AssignmentRecord& assignment : record.trials(0).assignments()) {
    if (assignment.has_result()) ++kept;
    if (assignment.agent_id() == "st-2") EXPECT_EQ(assignment.state(), "abandoned");
  }
  EXPECT_EQ(kept, 2) << "what the others delivered is kept";
}

TEST_F(ControllerTest, ARefusalIsTheTrialsReason) {
  StartController();
  AddAgents(1, [](sim::SimAgentOptions& options) { options.refuse = true; });
  const std::string run_id = client().Submit(Playbook(1)).run_id();
  const v1::RunSummary summary = client().WaitForEnd(run_id);
  EXPECT_EQ(summary.exit_code(), 5);
  EXPECT_THAT(client().Show(run_id).trials(0).summary().reason(), HasSubstr("DISK_LOW"));
}

TEST_F(ControllerTest, AHostThatSaysItIsNotCleanIsListedSoAndNotPlannedFor) {
  StartController();
  AddAgents(2, [](sim::SimAgentOptions& options) {
    if (options.id == "st-2") options.dirty = "/mnt/a cannot be unmounted";
  });
  ASSERT_TRUE(WaitUntil(seconds(20), [&] {
    const v1::HostsReply hosts = client().Hosts();
    return hosts.hosts_size() == 2 && hosts.hosts(1).dirty() == "/mnt/a cannot be unmounted";
  }));
  EXPECT_EQ(client().Hosts().hosts(0).dirty(), "");
  const v1::SubmitReply reply = client().Submit(Playbook(1));
  EXPECT_EQ(reply.run_id(), "");
  ASSERT_EQ(reply.plan().problems_size(), 1);
  EXPECT_EQ(reply.plan().problems(0).code(), "LR411");
}

TEST_F(ControllerTest, CancelStopsWhatRuns) {
  StartController();
  AddAgents(2, [](sim::SimAgentOptions& options) { options.step_time = seconds(3600); });
  const std::string run_id = client().Submit(Playbook(3)).run_id();
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return fleet_->history().starts.size() == 2; }));
  ASSERT_TRUE(client().Cancel(run_id).ok());
  const v1::RunSummary summary = client().WaitForEnd(run_id, seconds(20));
  EXPECT_EQ(summary.state(), v1::RUN_STATE_CANCELLED);
  EXPECT_EQ(summary.exit_code(), 7);
  EXPECT_EQ(summary.reason(), "by the test");
  EXPECT_TRUE(client().Cancel(run_id).ok()) << "cancelling twice is no error";
  EXPECT_EQ(client().Cancel("r-none").error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControllerTest, AllHostsMissingTheStartIsTriedAgain) {
  StartController();
  AddAgents(2, [](sim::SimAgentOptions& options) { options.miss_starts = 1; });
  const std::string run_id = client().Submit(Playbook(1)).run_id();
  EXPECT_EQ(client().WaitForEnd(run_id).trials_valid(), 2U);
}

TEST_F(ControllerTest, ATrialWhoseStartOneHostMissedIsBegunAnew) {
  StartController();
  AddAgents(2, [](sim::SimAgentOptions& options) {
    if (options.id == "st-2") options.miss_starts = 1;
    options.step_time = seconds(2);  // long enough for the others to be stopped
  });
  const std::string run_id = client().Submit(Playbook(1)).run_id();
  EXPECT_EQ(client().WaitForEnd(run_id).trials_valid(), 2U);
  const v1::RunRecord run = client().Show(run_id);
  EXPECT_EQ(run.trials(0).summary().attempt(), 2U);
  EXPECT_EQ(run.trials(1).summary().attempt(), 1U);
  ExpectExactlyOnce(run, fleet_->history());
}

TEST_F(ControllerTest, AHostThatMissesEveryStartVoidsTheTrial) {
  StartController();
  AddAgents(2, [](sim::SimAgentOptions& options) {
    if (options.id == "st-2") options.miss_starts = 1000;
    options.step_time = seconds(5);
  });
  const std::string run_id = client().Submit(Playbook(1)).run_id();
  client().WaitForEnd(run_id);
  const v1::TrialSummary trial = client().Show(run_id).trials(0).summary();
  EXPECT_EQ(trial.state(), "invalid");
  EXPECT_EQ(trial.attempt(), 3U);
  EXPECT_THAT(trial.reason(), HasSubstr("missed the common start"));
}

TEST_F(ControllerTest, DroppedSessionsAndRepeatedEventsLoseAndDoubleNothing) {
  StartController();
  AddAgents(4, [](sim::SimAgentOptions& options) {
    options.drop_chance = 0.25;
    options.duplicate_events = true;
    options.reconnect = milliseconds(10);
  });
  const std::string run_id = client().Submit(Playbook(10)).run_id();
  const v1::RunSummary summary = client().WaitForEnd(run_id, seconds(100));
  ASSERT_GE(summary.exit_code(), 0) << "the run did not end";
  EXPECT_EQ(summary.trials_done(), 20U);
  EXPECT_GT(fleet_->history().sessions, 10U) << "the faults did not happen";
  ExpectExactlyOnce(client().Show(run_id), fleet_->history());
}

TEST_F(ControllerTest, ARestartGoesOnWhereItWas) {
  StartController();
  AddAgents(2, [](sim::SimAgentOptions& options) { options.step_time = milliseconds(300); });
  const std::string run_id = client().Submit(Playbook(3)).run_id();
  for (int i = 0; i < 3; ++i) {
    const std::size_t begun = fleet_->history().starts.size();
    ASSERT_TRUE(WaitUntil(seconds(20), [&] { return fleet_->history().starts.size() > begun; }));
    StopController();
    StartController();
  }
  const v1::RunSummary summary = client().WaitForEnd(run_id);
  EXPECT_EQ(summary.trials_valid(), 6U) << summary.reason();
  ExpectExactlyOnce(client().Show(run_id), fleet_->history());
}

TEST_F(ControllerTest, AControllerThatIsOnlyAskedLeavesAnUnfinishedRunAsItIs) {
  StartController();
  AddAgents(2, [](sim::SimAgentOptions& options) { options.step_time = milliseconds(300); });
  const std::string run_id = client().Submit(Playbook(3)).run_id();
  std::this_thread::sleep_for(milliseconds(400));
  StopController();

  StartController(api::OpenRuns::kLeaveAlone);
  const v1::RunRecord before = client().Show(run_id);
  EXPECT_EQ(before.summary().state(), v1::RUN_STATE_RUNNING);
  const auto online = [&] {
    return std::ranges::count_if(client().Hosts().hosts(), [](const v1::HostRecord& host) {
      return host.session_state() == "ONLINE";
    });
  };
  for (int i = 0; i < 200 && online() < 2; ++i) std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(online(), 2);
  std::this_thread::sleep_for(seconds(2));  // the trial in hand ends meanwhile
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(client().Show(run_id), before));
  client().Submit(Playbook(1));
  EXPECT_THAT(client().last_status().error_message(), HasSubstr("takes no runs"));
  StopController();

  StartController();
  const v1::RunSummary summary = client().WaitForEnd(run_id);
  EXPECT_EQ(summary.trials_valid(), 6U) << summary.reason();
  ExpectExactlyOnce(client().Show(run_id), fleet_->history());
}

TEST_F(ControllerTest, TwoMachinesWithOneIdAreAConflict) {
  StartController();
  AddAgents(1);
  sim::SimAgentOptions clone = AgentOptions("st-1");
  clone.machine_id = "another";
  clone.incarnation = 9;
  sim::SimFleet other;
  other.Add(std::move(clone));
  EXPECT_TRUE(WaitUntil(seconds(4), [&] { return other.history().refusals > 0; }));
  EXPECT_THAT(other.history().last_refusal, HasSubstr("CONFLICT"));
  EXPECT_EQ(fleet_->online_count(), 1U) << "the first stays attached";
}

TEST_F(ControllerTest, AnAgentOfANewerProtocolIsRefusedAndTheOthersWork) {
  StartController();
  AddAgents(1);
  sim::SimAgentOptions newer = AgentOptions("st-new");
  newer.protocol = v1::PROTOCOL_VERSION_NEWEST + 1;
  sim::SimFleet other;
  other.Add(std::move(newer));
  EXPECT_TRUE(WaitUntil(seconds(4), [&] { return other.history().refusals >= 2; }))
      << "it comes back, until somebody upgrades";
  EXPECT_THAT(other.history().last_refusal, HasSubstr("upgrade the controller"));
  EXPECT_EQ(other.online_count(), 0U);
  EXPECT_EQ(fleet_->online_count(), 1U);
}

TEST_F(ControllerTest, ANewerIncarnationReplacesTheOldSession) {
  StartController();
  AddAgents(1);
  sim::SimAgentOptions newer = AgentOptions("st-1");
  newer.incarnation = 2;
  sim::SimFleet other;
  other.Add(std::move(newer));
  ASSERT_TRUE(other.WaitForOnline(1, seconds(10)));
  EXPECT_TRUE(WaitUntil(seconds(4), [&] { return fleet_->history().refusals > 0; }));
  EXPECT_THAT(fleet_->history().last_refusal, HasSubstr("newer session"));
}

TEST_F(ControllerTest, TwoHundredAgentsRunTogether) {
  StartController();
  // Long enough for windows to overlap though one thread starts them all.
  AddAgents(200, [](sim::SimAgentOptions& options) { options.step_time = seconds(1); });
  const std::string run_id = client().Submit(Playbook(2)).run_id();
  const v1::RunSummary summary = client().WaitForEnd(run_id, seconds(100));
  EXPECT_EQ(summary.trials_done(), 4U);
  const v1::RunRecord record = client().Show(run_id);
  for (const v1::TrialRecord& trial : record.trials()) {
    EXPECT_EQ(trial.assignments_size(), 200);
    EXPECT_EQ(trial.summary().state(), "valid") << trial.summary().reason();
  }
  ExpectExactlyOnce(record, fleet_->history());
  EXPECT_EQ(client().Hosts().hosts_size(), 200);
}

class HttpTest : public ControllerTest {
 protected:
  HttpTest() { config_.set_http_listen("127.0.0.1:0"); }
  httplib::Result Get(const std::string& path) {
    httplib::Client http("http://" + controller_->http_address());
    http.set_read_timeout(20);
    return http.Get(path);
  }
};

TEST_F(HttpTest, MetricsAgreeWithTheCatalogAndPleasePromtool) {
  StartController();
  AddAgents(2);
  const std::string run_id = client().Submit(Playbook(2)).run_id();
  client().WaitForEnd(run_id);
  const httplib::Result answer = Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->get_header_value("Content-Type"), HasSubstr("version=0.0.4"));
  EXPECT_THAT(answer->body, HasSubstr("labrack_controller_trials_total{outcome=\"valid\"} 4"));
  EXPECT_THAT(answer->body, HasSubstr("labrack_controller_agents{state=\"ONLINE\"} 2"));
  EXPECT_THAT(answer->body, HasSubstr("labrack_controller_events_conflicting_total 0"));
  StopController();
  StartController();
  EXPECT_THAT(Get("/metrics")->body,
              HasSubstr("labrack_controller_trials_total{outcome=\"valid\"} 4"))
      << "counters go on after a restart";

  const std::filesystem::path file = directory_.path() / "metrics.txt";
  std::ofstream(file) << answer->body;
  if (std::system("promtool --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no promtool";
  const std::string log = (directory_.path() / "promtool.txt").string();
  const std::string command = "promtool check metrics < " + file.string() + " > " + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream said(log);
  EXPECT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(said), {});
}

TEST_F(HttpTest, HealthTargetsAndRunsAnswer) {
  StartController();
  EXPECT_EQ(Get("/healthz")->body, "ok\n");
  nlohmann::json targets = nlohmann::json::parse(Get("/sd")->body);
  ASSERT_EQ(targets.size(), 1U);
  EXPECT_EQ(targets[0]["targets"][0], controller_->http_address());
  AddAgents(2, [](sim::SimAgentOptions& options) { options.labels["role"] = "bench"; });
  const httplib::Result sd = Get("/sd");
  EXPECT_EQ(sd->get_header_value("Content-Type"), "application/json");
  targets = nlohmann::json::parse(sd->body);
  ASSERT_EQ(targets.size(), 3U);
  EXPECT_EQ(targets[1]["labels"]["labrack_role"], "agent");
  EXPECT_EQ(targets[1]["labels"]["labrack_agent"], "st-1");
  EXPECT_EQ(targets[1]["labels"]["__meta_labrack_label_role"], "bench");

  const std::string run_id = client().Submit(Playbook(1)).run_id();
  client().WaitForEnd(run_id);
  const nlohmann::json runs = nlohmann::json::parse(Get("/api/v1/runs")->body);
  ASSERT_EQ(runs["runs"].size(), 1U);
  EXPECT_EQ(runs["runs"][0]["run_id"], run_id);
  const nlohmann::json run = nlohmann::json::parse(Get("/api/v1/runs/" + run_id)->body);
  EXPECT_EQ(run["trials"].size(), 2U);
  EXPECT_EQ(run["trials"][0]["assignments"].size(), 2U);
  EXPECT_FALSE(run["trials"][0]["assignments"][0].contains("result"));
  EXPECT_EQ(Get("/api/v1/runs/r-none")->status, 404);
  EXPECT_EQ(Get("/nothing")->status, 404);
  httplib::Client http("http://" + controller_->http_address());
  EXPECT_EQ(http.Post("/api/v1/runs", "", "text/plain")->status, 404);
}

}  // namespace
}  // namespace labrack::e2e
