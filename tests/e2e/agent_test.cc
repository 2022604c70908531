// Goal: an agent keeps what it has promised, whatever happens to the controller, the network, the
// worker or itself: every accepted trial ends in exactly one result, which comes until it is
// acknowledged, and nothing stays behind. Method: the real agent and worker against a controller of
// a few lines in this process.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <httplib.h>

#include "tests/e2e/agent_fixture.h"
#include "tests/e2e/test_controller.h"
#include "tests/e2e/trial_support.h"

namespace labrack::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Heard = TestController::Heard;

// The value of the first line of a scrape that begins so; -1 where there is none.
double MetricOf(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find("\n" + begin);
  if (at == std::string::npos) return -1;
  const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  return std::stod(line.substr(line.rfind(' ')));
}

class AgentTest : public AgentFixture {};

TEST_F(AgentTest, FromAssignToResultToNothing) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  EXPECT_EQ(controller_.heard().hellos[0].agent_id(), "st-01");
  EXPECT_FALSE(controller_.heard().hellos[0].inventory().metrics_address().empty());
  const v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK) << Log();
  ASSERT_TRUE(WaitForResult()) << Log();
  const Heard heard = controller_.heard();
  EXPECT_EQ(heard.result()->measurement().outcome(), v1::OUTCOME_OK)
      << heard.result()->measurement().reason();
  EXPECT_EQ(heard.result()->verified(), v1::VERIFY_OUTCOME_MATCHED);
  EXPECT_EQ(heard.result()->agent_id(), "st-01");
  const Nanoseconds off =
      Nanoseconds(heard.result()->clock_offset_ns()) - TestController::kClockOffset;
  EXPECT_LE(std::chrono::abs(off).count(), heard.result()->clock_uncertainty_ns());
  ExpectWholeHistory();

  // What Prometheus adds up is what the result says.
  httplib::Client client("http://" + heard.hellos[0].inventory().metrics_address());
  const httplib::Result metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(MetricOf(metrics->body, "labrack_io_ops_total{op=\"write\""),
            static_cast<double>(CountOf(*heard.result(), "write")));
  EXPECT_EQ(MetricOf(metrics->body, "labrack_io_service_seconds_count{op=\"write\""),
            static_cast<double>(CountOf(*heard.result(), "write")));
  EXPECT_EQ(MetricOf(metrics->body, "labrack_trials_total{outcome=\"ok\""), 1);
  EXPECT_EQ(MetricOf(metrics->body, "labrack_agent_connected"), 1);
  ExpectClosed(spec);

  // The same again, late: never run a second time.
  EXPECT_EQ(Assign(spec, "c2").result(), v1::COMMAND_RESULT_STALE_EPOCH);
}

TEST_F(AgentTest, TheSameAssignTwiceRunsOnce) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec =
      SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, milliseconds(500));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  EXPECT_EQ(Assign(spec, "c2").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(Assign(spec, "c3").result(), v1::COMMAND_RESULT_OK);
  ExpectWholeHistory();
  const Heard heard = controller_.heard();
  int claims = 0;
  for (const auto& [seq, record] : heard.events) {
    claims += record.body_case() == v1::EventRecord::kPhaseBegun &&
              record.phase_begun() == v1::PHASE_CLAIM;
  }
  EXPECT_EQ(claims, 1);
}

TEST_F(AgentTest, RefusalsSayWhy) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  spec.mutable_workload()->mutable_stream()->set_block(3);
  EXPECT_EQ(Assign(spec, "c1").code(), "BAD_SPEC");
  spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  spec.mutable_workload()->mutable_exec()->add_command("true");
  EXPECT_EQ(Assign(spec, "c2").code(), "BAD_SPEC");  // no time-out
  spec.mutable_workload()->mutable_exec()->set_timeout(1'000'000'000);
  EXPECT_EQ(Assign(spec, "c3").code(), "EXEC_NOT_ALLOWED");
  spec = StreamOnDirectory("run-1/0/st-01", 5);
  EXPECT_EQ(Assign(spec, "c4").result(), v1::COMMAND_RESULT_STALE_EPOCH);
  spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  spec.mutable_stack()->mutable_host()->mutable_ext4();
  spec.mutable_disks()->set_count(60);
  spec.mutable_disks()->set_size(60ULL << 40);
  EXPECT_EQ(Assign(spec, "c5").code(), "DISK_LOW");
  controller_.SendWant(spec, v1::WANT_STOP, "unknown");
  EXPECT_TRUE(controller_.WaitFor([](const Heard& heard) {
    const v1::CommandAck* ack = heard.AckOf("want-unknown");
    return ack != nullptr && ack->code() == "UNKNOWN_ASSIGNMENT";
  }));
}

// A message with a string that is not UTF-8 would not be read, and be sent again for ever.
TEST_F(AgentTest, WhatACommandSaysMayBeAnyBytes) {
  StartAgent("allow_exec: true\n");
  ASSERT_TRUE(WaitForHello(1)) << Log();
  v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  v1::ExecWorkload& command = *spec.mutable_workload()->mutable_exec();
  for (const char* word : {"sh", "-c", "printf 'caf\\351' >&2; exit 1"}) command.add_command(word);
  command.set_timeout(Nanoseconds(seconds(10)).count());
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK) << Log();
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_NE(controller_.heard().result()->measurement().reason().find("caf?"), std::string::npos)
      << controller_.heard().result()->measurement().reason();
  ExpectClosed(spec);
}

TEST_F(AgentTest, WithoutAcknowledgementEverythingComesAgainAfterTheControllersDeath) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  controller_.set_acknowledge(false);
  const v1::AssignmentSpec spec =
      SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, milliseconds(800));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  controller_.Stop();
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return WorkerPid() < 0; })) << Log();
  controller_.Start();
  ASSERT_TRUE(WaitForHello(2)) << Log();
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_GT(controller_.heard().repeated, 0U);
  controller_.Stop();
  controller_.set_acknowledge(true);
  const std::uint64_t before = controller_.heard().repeated;
  controller_.Start();
  ASSERT_TRUE(WaitForHello(3)) << Log();
  ASSERT_TRUE(controller_.WaitFor([&](const Heard& heard) { return heard.repeated > before; }))
      << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK);
  EXPECT_EQ(controller_.heard().hellos.back().held(0).state(), v1::ASSIGNMENT_STATE_SEALED);
  ExpectWholeHistory();
  ExpectClosed(spec);
}

// How the clocks stood is said once: a result that comes again is the same, whoever asks for it and
// whatever clock he has.
TEST_F(AgentTest, TheClocksFiguresOfAResultStayWhenItIsSentAgain) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  controller_.set_acknowledge(false);
  const v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForResult()) << Log();
  const v1::AssignmentResult first = *controller_.heard().result();
  EXPECT_GT(first.clock_uncertainty_ns(), 0);
  EXPECT_LE(std::abs(first.clock_offset_ns() - TestController::kClockOffset.count()),
            first.clock_uncertainty_ns());
  const auto all_comes_again = [&](std::uint64_t times) {
    return controller_.WaitFor(
        [&](const Heard& heard) { return heard.repeated >= times * heard.events.size(); });
  };

  // A controller on another machine has taken over: the clocks are probed anew.
  controller_.Stop();
  controller_.set_epoch(2);
  controller_.set_clock_offset(2 * TestController::kClockOffset);
  controller_.Start();
  ASSERT_TRUE(WaitForHello(2)) << Log();
  ASSERT_TRUE(all_comes_again(1)) << Log();
  ExpectWholeHistory();

  // The agent is killed: what it had said stands in its journal.
  agent_->Signal(SIGKILL);
  ASSERT_TRUE(agent_->Wait(seconds(5)));
  StartAgent();
  ASSERT_TRUE(WaitForHello(3)) << Log();
  ASSERT_TRUE(all_comes_again(2)) << Log();
  ExpectWholeHistory();
  EXPECT_EQ(controller_.heard().result()->clock_offset_ns(), first.clock_offset_ns());
  ExpectClosed(spec);
}

// What a controller of another version does not take is kept for the one that will.
TEST_F(AgentTest, RefusedForItsProtocolItKeepsItsResultsAndAsksRarely) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  controller_.set_acknowledge(false);
  const v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForResult()) << Log();

  controller_.Stop();
  controller_.set_refusal({grpc::StatusCode::UNIMPLEMENTED, "upgrade the controller"});
  controller_.Start();
  ASSERT_TRUE(WaitForHello(2)) << Log();
  std::this_thread::sleep_for(seconds(3));
  // One more may fall into the beginning of its long window; windows of a second would make more.
  EXPECT_LE(controller_.heard().hellos.size(), 3U);
  EXPECT_NE(Log().find("upgrade the controller"), std::string::npos) << Log();
  EXPECT_FALSE(agent_->Wait(Nanoseconds(0))) << Log();
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(seconds(5)), 0) << Log();

  // Answered in words that it does not know, it says so and goes.
  controller_.set_refusal(grpc::Status::OK);
  controller_.set_protocol(v1::PROTOCOL_VERSION_NEWEST + 1);
  StartAgent();
  EXPECT_TRUE(WaitUntil(seconds(10), [&] {
    return Log().find("(labrack 9.9) answers in protocol 2") != std::string::npos;
  })) << Log();
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(seconds(5)), 0) << Log();

  controller_.set_protocol(v1::PROTOCOL_VERSION_NEWEST);
  controller_.ForgetEvents();
  StartAgent();
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK);
  ExpectWholeHistory();
  ExpectClosed(spec);
}

TEST_F(AgentTest, AWorkerKilledInMeasureIsACrashWithItsSignal) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(60));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  const pid_t worker = WorkerPid();
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  ASSERT_TRUE(WaitForResult()) << Log();
  const Heard heard = controller_.heard();
  EXPECT_EQ(heard.result()->measurement().outcome(), v1::OUTCOME_CRASHED);
  EXPECT_NE(heard.result()->measurement().reason().find("signal 9"), std::string::npos)
      << heard.result()->measurement().reason();
  EXPECT_NE(heard.result()->measurement().reason().find("measure"), std::string::npos);
  EXPECT_EQ(heard.result()->clean_up().outcome(), v1::OUTCOME_OK)
      << heard.result()->clean_up().reason();
  ExpectWholeHistory();
  ExpectClosed(spec);
}

TEST_F(AgentTest, WantStopCancelsAndTheNextTrialRuns) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(60));
  const v1::AssignmentSpec next = StreamOnDirectory("run-1/1/st-01", kEpoch + 2);
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  EXPECT_EQ(Assign(next, "c2").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  controller_.SendWant(spec, v1::WANT_STOP, "run cancelled");
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->assignment_id(), spec.assignment_id());
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_CANCELLED);
  EXPECT_EQ(controller_.heard().result()->measurement().reason().find("run cancelled") !=
                std::string::npos,
            true)
      << controller_.heard().result()->measurement().reason();
  EXPECT_EQ(controller_.heard().result()->clean_up().outcome(), v1::OUTCOME_OK);
  controller_.ForgetEvents();
  controller_.SendWant(spec, v1::WANT_CLOSED, "closed");
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->assignment_id(), next.assignment_id());
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK);
  ExpectClosed(next);
}

TEST_F(AgentTest, AKilledAgentLeavesTheTrialValidAndFindsItAgain) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(4));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  agent_->Signal(SIGKILL);
  ASSERT_TRUE(agent_->Wait(seconds(5)));
  StartAgent();
  ASSERT_TRUE(WaitForHello(2)) << Log();
  EXPECT_EQ(controller_.heard().hellos[1].held_size(), 1);
  EXPECT_GT(controller_.heard().hellos[1].incarnation(),
            controller_.heard().hellos[0].incarnation());
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK)
      << controller_.heard().result()->measurement().reason();
  ExpectWholeHistory();
  ExpectClosed(spec);
}

TEST_F(AgentTest, AgentAndWorkerKilledTogetherEndAsACrash) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(60));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  const pid_t worker = WorkerPid();
  agent_->Signal(SIGKILL);
  ASSERT_TRUE(agent_->Wait(seconds(5)));
  kill(worker, SIGKILL);
  StartAgent();
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_CRASHED);
  EXPECT_EQ(controller_.heard().result()->clean_up().outcome(), v1::OUTCOME_OK);
  ExpectWholeHistory();
  ExpectClosed(spec);
}

TEST_F(AgentTest, SigtermLeavesTheWorkerRunning) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(3));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(seconds(5)), 0) << Log();
  EXPECT_TRUE(
      controller_.WaitFor([](const Heard& heard) { return heard.goodbyes == 1; }, seconds(2)));
  EXPECT_GT(WorkerPid(), 0);
  StartAgent();
  ASSERT_TRUE(WaitForResult()) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_OK);
  ExpectClosed(spec);
}

TEST_F(AgentTest, WithItsParentItStopsTheTrialAndEnds) {
  StartAgent("exit_with_parent: true\n");
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(60));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  agent_->CloseInput();
  EXPECT_EQ(agent_->Wait(seconds(15)), 0) << Log();
  EXPECT_TRUE(ProcessesWith(state_.string()).empty());
  EXPECT_TRUE(FilesBelow(state_ / "disks").empty());
  ASSERT_NE(controller_.heard().result(), nullptr) << Log();
  EXPECT_EQ(controller_.heard().result()->measurement().outcome(), v1::OUTCOME_CANCELLED);
}

TEST_F(AgentTest, GateOpensAtTheControllersInstantAndClosesAgainWithoutGo) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, milliseconds(300));
  spec.set_barrier(true);
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(controller_.WaitFor([](const Heard& heard) { return heard.gates.size() == 1; }))
      << Log();
  v1::ControllerMessage message;
  v1::Arm& arm = *message.mutable_arm();
  arm.set_command_id("arm-1");
  arm.set_assignment_id(spec.assignment_id());
  arm.set_epoch(spec.epoch());
  arm.set_arming(1);
  arm.set_uncertainty_max_ns(Nanoseconds(milliseconds(50)).count());
  arm.set_start_controller_mono_ns(controller_.ClockNow() + Nanoseconds(milliseconds(300)).count());
  controller_.Send(message);
  ASSERT_TRUE(controller_.WaitFor([](const Heard& heard) { return heard.gates.size() == 2; }))
      << "disarms, says so";
  EXPECT_EQ(controller_.heard().AckOf("arm-1")->result(), v1::COMMAND_RESULT_OK);

  arm.set_command_id("arm-2");
  arm.set_arming(2);
  arm.set_start_controller_mono_ns(controller_.ClockNow() + Nanoseconds(milliseconds(400)).count());
  controller_.Send(message);
  v1::ControllerMessage go;
  go.mutable_go()->set_assignment_id(spec.assignment_id());
  go.mutable_go()->set_epoch(spec.epoch());
  go.mutable_go()->set_arming(2);
  controller_.Send(go);
  ASSERT_TRUE(WaitForResult()) << Log();
  const Heard heard = controller_.heard();
  ASSERT_EQ(heard.result()->steps_size(), 1) << heard.result()->ShortDebugString();
  const v1::StepResult& step = heard.result()->steps(0);
  const Nanoseconds intended(step.intended_start_mono_ns() + heard.result()->clock_offset_ns());
  const Nanoseconds off = intended - Nanoseconds(arm.start_controller_mono_ns());
  EXPECT_LE(std::chrono::abs(off), milliseconds(5));
  EXPECT_GE(step.measure_begin_mono_ns(), step.intended_start_mono_ns());
  ExpectClosed(spec);
}

TEST_F(AgentTest, LiveCountsAreScrapedWhileAStepRuns) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = SyncPagesOnDirectory("run-1/0/st-01", kEpoch + 1, seconds(60));
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForPhase(v1::PHASE_MEASURE)) << Log();
  httplib::Client client("http://" + controller_.heard().hellos[0].inventory().metrics_address());
  EXPECT_TRUE(WaitUntil(seconds(10), [&] {
    const httplib::Result metrics = client.Get("/metrics");
    return metrics && MetricOf(metrics->body, "labrack_io_ops_total{op=\"write\"") > 0;
  }));
  EXPECT_TRUE(controller_.WaitFor([](const Heard& heard) {
    return heard.heartbeat.assignments_size() == 1 &&
           heard.heartbeat.assignments(0).operations_per_second() > 0;
  }));
  controller_.SendWant(spec, v1::WANT_STOP, "enough");
  ASSERT_TRUE(WaitForResult()) << Log();
}

// Prometheus adds up what the two agents have shown.
TEST_F(AgentTest, WhatAnAgentHasCountedIsNotCountedByTheNextOne) {
  StartAgent();
  ASSERT_TRUE(WaitForHello(1)) << Log();
  const v1::AssignmentSpec spec = StreamOnDirectory("run-1/0/st-01", kEpoch + 1);
  EXPECT_EQ(Assign(spec, "c1").result(), v1::COMMAND_RESULT_OK);
  ASSERT_TRUE(WaitForResult()) << Log();
  agent_->Signal(SIGKILL);
  ASSERT_TRUE(agent_->Wait(seconds(5)));
  StartAgent();
  ASSERT_TRUE(WaitForHello(2)) << Log();
  httplib::Client client("http://" + controller_.heard().hellos[1].inventory().metrics_address());
  const httplib::Result metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_LE(MetricOf(metrics->body, "labrack_io_ops_total{op=\"write\""), 0);
  EXPECT_LE(MetricOf(metrics->body, "labrack_trials_total{outcome=\"ok\""), 0);
  ExpectClosed(spec);
}

TEST_F(AgentTest, AWrongConfigurationIsShownWithItsPlace) {
  const std::filesystem::path config = temp_.path() / "bad.yaml";
  std::ofstream(config) << "controller: 192.0.2.1:7481\nstate: " << state_.string() << "\n";
  Process agent({Binary("labrack-agent"), "--config", config.string()}, temp_.path() / "bad.log");
  EXPECT_EQ(agent.Wait(seconds(10)), 3);
  const std::string said = ReadText(temp_.path() / "bad.log");
  EXPECT_NE(said.find("LR350"), std::string::npos) << said;
  EXPECT_NE(said.find("bad.yaml:1:13"), std::string::npos) << said;
}

// Certificates of an authority of its own, made by openssl.
class Certificates {
 public:
  explicit Certificates(const std::filesystem::path& directory) : directory_(directory) {
    Run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca "
        "-keyout ca.key -out ca.pem");
    Sign("controller", "IP:127.0.0.1");
    Sign("agent", "URI:labrack://lab/agent/st-01");
  }
  std::string Text(const std::string& name) const { return ReadText(directory_ / name); }
  std::string Yaml() const {
    const std::string at = directory_.string() + "/";
    return "tls: {ca: " + at + "ca.pem, certificate: " + at + "agent.pem, key: " + at +
           "agent.key}\n";
  }

 private:
  void Run(const std::string& command) const {
    EXPECT_EQ(
        std::system(("cd " + directory_.string() + " && " + command + " 2>> openssl.log").c_str()),
        0)
        << Text("openssl.log");
  }
  void Sign(const std::string& name, const std::string& subject) const {
    std::ofstream(directory_ / (name + ".ext")) << "subjectAltName=" << subject << "\n";
    Run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
        " -keyout " + name + ".key -out " + name + ".csr");
    Run("openssl x509 -req -in " + name +
        ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile " + name + ".ext -out " +
        name + ".pem");
  }
  std::filesystem::path directory_;
};

TEST(AgentTlsTest, BothSidesShowCertificates) {
  TempDirectory temp;
  const Certificates certificates(temp.path());
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = certificates.Text("ca.pem");
  options.pem_key_cert_pairs.push_back(
      {certificates.Text("controller.key"), certificates.Text("controller.pem")});
  TestController controller(grpc::SslServerCredentials(options));
  const std::filesystem::path config = temp.path() / "agent.yaml";
  const auto start = [&](const std::string& tls, const std::string& log) {
    std::ofstream(config) << "controller: " << controller.address()
                          << "\nstate: " << (temp.path() / "state").string()
                          << "\nname: st-01\nmetrics_listen: \"\"\n"
                          << tls;
    return std::make_unique<Process>(
        std::vector<std::string>{Binary("labrack-agent"), "--config", config.string()},
        temp.path() / log);
  };
  {
    const std::unique_ptr<Process> agent = start("", "plain.log");
    EXPECT_TRUE(WaitUntil(seconds(10), [&] {
      return ReadText(temp.path() / "plain.log").find("no session") != std::string::npos;
    }));
    EXPECT_TRUE(controller.heard().hellos.empty());
  }
  const std::unique_ptr<Process> agent = start(certificates.Yaml(), "tls.log");
  EXPECT_TRUE(controller.WaitFor([](const Heard& heard) { return heard.hellos.size() == 1; }))
      << ReadText(temp.path() / "tls.log");
  EXPECT_EQ(controller.heard().peer_uris, std::vector<std::string>{"labrack://lab/agent/st-01"});
}

}  // namespace
}  // namespace labrack::e2e
