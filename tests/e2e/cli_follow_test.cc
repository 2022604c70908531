// Goal: a verdict that the controller has made reaches the exit code even where its table does not,
// a run that was cancelled is waited for as long as somebody cleans up, no longer and no less, and
// no verb asks for more of a run than one message holds.
// Method: a controller that answers by script, on a free port; the binary `labrack` as a process,
// and Follow() in this one.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "agent/exec/run.h"
#include "agent/session/held_trial.h"
#include "agent/session/trial_cleaner.h"
#include "controller/cli/clean_up.h"
#include "controller/cli/follow.h"
#include "proto/convert/convert.h"
#include "tests/e2e/xml.h"

namespace labrack::cli {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The agents' limits, said twice since controller/ knows nothing of agent/.
static_assert(kStopToTerm == session::kStopToTerm);
static_assert(kTermToKill == session::kTermToKill);
static_assert(kUndoGrace == session::kUndoGrace);
static_assert(CleanUpLimit(10min) >= 2 * 10min, "a tear-down, and the undoing of one that hangs");

constexpr const char* kRun = "r-000001";
constexpr std::uint32_t kTrials = 5;

class ScriptedController final : public v1::Control::Service {
 public:
  ScriptedController() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~ScriptedController() override {
    ending_ = true;
    server_->Shutdown();
  }

  const std::string& address() const { return address_; }

  std::string verdict = "PASSED";
  std::int32_t exit_code = 0;
  std::atomic<bool> runs = false;       // else it has ended
  std::atomic<int> busy_questions = 0;  // so often Hosts says that somebody works on the run
  std::atomic<int> questions = 0;       // of Hosts
  std::atomic<int> cancels = 0;

  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest*,
                      v1::SubmitReply* reply) override {
    reply->set_run_id(kRun);
    reply->mutable_plan()->mutable_plan()->set_playbook_name("tiny");
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest*,
                     grpc::ServerWriter<v1::RunEvent>* writer) override {
    v1::RunEvent event;
    event.mutable_summary()->set_run_id(kRun);
    event.mutable_summary()->set_playbook_name("tiny");
    event.mutable_summary()->set_state(v1::RUN_STATE_RUNNING);
    event.mutable_summary()->set_exit_code(-1);
    writer->Write(event);
    while (runs && !ending_ && !context->IsCancelled()) std::this_thread::sleep_for(5ms);
    if (runs) return grpc::Status::OK;
    event.mutable_summary()->set_state(v1::RUN_STATE_DONE);
    event.mutable_summary()->set_exit_code(exit_code);
    event.mutable_summary()->set_verdict(verdict);
    writer->Write(event);
    return grpc::Status::OK;
  }
  grpc::Status Compare(grpc::ServerContext*, const v1::CompareRequest*, v1::Report*) override {
    return convert::ToStatus(Error(Errc::kExhausted, "the report is too large"));
  }
  // A run that is too large for one message: two trials are a page.
  grpc::Status ShowRun(grpc::ServerContext*, const v1::ShowRunRequest* request,
                       v1::RunRecord* reply) override {
    const bool with_results = request->level() == v1::RECORD_LEVEL_UNSPECIFIED ||
                              request->level() == v1::RECORD_LEVEL_RESULTS;
    const bool paged = request->page_bytes() > 0;
    if (with_results && !paged) {
      return convert::ToStatus(Error(Errc::kExhausted, "the record is too large"));
    }
    reply->mutable_summary()->set_run_id(kRun);
    reply->mutable_summary()->set_trials_total(kTrials);
    if (request->first_trial() == 0) reply->set_playbook_text("playbook: tiny\n");
    const std::uint32_t end = paged ? std::min(request->first_trial() + 2, kTrials) : kTrials;
    for (std::uint32_t index = request->first_trial(); index < end; ++index) {
      v1::TrialRecord& trial = *reply->add_trials();
      trial.mutable_summary()->set_index(index);
      if (with_results) trial.add_assignments()->mutable_result();
    }
    return grpc::Status::OK;
  }
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest*, v1::CancelReply*) override {
    ++cancels;
    return grpc::Status::OK;
  }
  grpc::Status Hosts(grpc::ServerContext*, const v1::HostsRequest*,
                     v1::HostsReply* reply) override {
    v1::HostRecord* host = reply->add_hosts();
    host->set_agent_id("agent-1");
    host->set_session_state("ONLINE");
    if (questions++ < busy_questions) host->set_working_on(std::string(kRun) + "/0/agent-1");
    // Of one that is gone it is not known when it will have cleaned up.
    v1::HostRecord* gone = reply->add_hosts();
    gone->set_agent_id("agent-2");
    gone->set_session_state("OFFLINE");
    gone->set_working_on(std::string(kRun) + "/0/agent-2");
    return grpc::Status::OK;
  }

 private:
  std::atomic<bool> ending_ = false;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

class WithoutTableTest : public ::testing::Test {
 protected:
  WithoutTableTest() {
    std::string pattern = fs::temp_directory_path() / "labrack-follow-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    std::ofstream(directory_ / "tiny.yaml")
        << "playbook: tiny\nstacks: {here: {host: {dir: {}}}}\n"
           "workloads: {w: {sync_pages: {size: 4KiB, file: 1MiB, duration: 1s}}}\ntrials: 1\n";
  }
  ~WithoutTableTest() override { fs::remove_all(directory_); }

  exec::Outcome Labrack(std::vector<std::string> words) const {
    exec::Command command;
    command.words = {std::string(LABRACK_BIN_DIR) + "/labrack"};
    command.words.insert(command.words.end(), words.begin(), words.end());
    command.words.insert(command.words.end(), {"--controller", controller_.address()});
    command.directory = directory_;
    command.environment = {{"HOME", directory_}};
    command.timeout = 30s;
    const Result<exec::Outcome> outcome = exec::Run(command);
    EXPECT_TRUE(outcome) << outcome.error().ToString();
    return outcome.value_or(exec::Outcome{});
  }

  ScriptedController controller_;
  fs::path directory_;
};

using LargeRunTest = WithoutTableTest;

TEST_F(LargeRunTest, ExportTakesItPageByPage) {
  const exec::Outcome outcome = Labrack({"export", kRun});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  for (std::uint32_t index = 0; index < kTrials; ++index) {
    EXPECT_THAT(outcome.output, HasSubstr("\"index\": " + std::to_string(index)));
  }
  EXPECT_THAT(outcome.output, HasSubstr("playbook: tiny"));
}

TEST_F(LargeRunTest, StatusAsksForNoResults) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"status", kRun}, {"status", kRun, "--json"}}) {
    const exec::Outcome outcome = Labrack(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr(std::to_string(kTrials)));
  }
}

TEST_F(WithoutTableTest, TheVerdictOfTheRunIsTheExitCode) {
  struct Case {
    std::string verdict;
    std::int32_t exit_code;
  };
  for (const Case& one : {Case{"PASSED", 0}, Case{"FAILED", 1}, Case{"INVALID", 9}}) {
    controller_.verdict = one.verdict;
    controller_.exit_code = one.exit_code;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"run", "tiny.yaml", "--junit", "r.xml"}, {"wait", kRun}}) {
      const exec::Outcome outcome = Labrack(words);
      EXPECT_EQ(outcome.exit_code, one.exit_code) << outcome.errors;
      EXPECT_THAT(outcome.errors, HasSubstr("the table could not be made"));
      EXPECT_THAT(outcome.errors, HasSubstr("labrack show r-000001"));
      EXPECT_THAT(outcome.errors, HasSubstr("r-000001: " + one.verdict));
    }
    std::ifstream file(directory_ / "r.xml");
    const std::string junit(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(junit, HasSubstr("the table could not be made"));
    EXPECT_THAT(junit, HasSubstr("name=\"verdict\" value=\"" + one.verdict + "\""));
  }
}

TEST_F(WithoutTableTest, WhatStrictAsksIsNotPassedUnseen) {
  EXPECT_EQ(Labrack({"wait", kRun, "--strict"}).exit_code, ToInt(ExitCode::kLabFailed));
  EXPECT_EQ(Labrack({"run", "tiny.yaml", "--strict"}).exit_code, ToInt(ExitCode::kLabFailed));
  controller_.verdict = "FAILED";
  controller_.exit_code = 1;
  EXPECT_EQ(Labrack({"wait", kRun, "--strict"}).exit_code, ToInt(ExitCode::kFailed));
}

class FailedLabTest : public ::testing::Test {
 protected:
  FollowResult FollowFailing(Nanoseconds clean_up_limit) {
    Client client(controller_.address());
    Interrupts interrupts;
    const std::unique_ptr<ProgressView> view =
        MakeProgressView(ProgressKind::kNone, STDERR_FILENO, {}, "");
    const FollowOptions options = {
        .run_id = kRun, .clean_up_limit = clean_up_limit, .tend = []() -> Result<std::string> {
          return Fail(Errc::kUnavailable, "agent-2", "gone");
        }};
    return Follow(client, options, *view, interrupts);
  }

  ScriptedController controller_;
};

TEST_F(FailedLabTest, WhoStillCleansUpIsWaitedFor) {
  controller_.runs = true;
  controller_.busy_questions = 3;
  const FollowResult result = FollowFailing(60s);
  EXPECT_EQ(result.end, FollowEnd::kFailed);
  EXPECT_EQ(result.error->note(), "gone");
  EXPECT_EQ(controller_.cancels, 1);
  EXPECT_EQ(controller_.questions, 4);
}

TEST_F(FailedLabTest, TheLimitEndsTheWaiting) {
  controller_.runs = true;
  controller_.busy_questions = 1'000'000;
  const TimePoint began = MonotonicClock().Now();
  EXPECT_EQ(FollowFailing(500ms).end, FollowEnd::kFailed);
  EXPECT_GE(MonotonicClock().Now() - began, 500ms);
  EXPECT_LT(MonotonicClock().Now() - began, 10s);
}

}  // namespace
}  // namespace labrack::cli
