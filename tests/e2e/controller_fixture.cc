#include "tests/e2e/controller_fixture.h"

#include <chrono>
#include <map>
#include <thread>

#include <spdlog/spdlog.h>

#include "proto/fields/fields.h"

namespace labrack::e2e {
namespace {

std::chrono::system_clock::time_point In(Nanoseconds time) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(time);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "labrack-e2e-XXXXXX").string();
  path_ = mkdtemp(name.data());
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ControlClient::ControlClient(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetMaxReceiveMessageSize(-1);
  stub_ = v1::Control::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

v1::SubmitReply ControlClient::Submit(const std::string& playbook, const std::string& key,
                                      std::int64_t lease_ns) {
  grpc::ClientContext context;
  context.set_deadline(In(std::chrono::seconds(60)));
  context.set_wait_for_ready(true);
  v1::SubmitRequest request;
  request.mutable_source()->set_file("test.yaml");
  request.mutable_source()->set_text(playbook);
  request.set_idempotency_key(key);
  request.set_owner("test");
  request.set_lease_ns(lease_ns);
  v1::SubmitReply reply;
  status_ = stub_->Submit(&context, request, &reply);
  return reply;
}

std::vector<v1::RunEvent> ControlClient::Watch(const std::string& run_id, Nanoseconds limit) {
  grpc::ClientContext context;
  context.set_deadline(In(limit));
  v1::WatchRequest request;
  request.set_run_id(run_id);
  std::unique_ptr<grpc::ClientReader<v1::RunEvent>> reader = stub_->Watch(&context, request);
  std::vector<v1::RunEvent> events;
  v1::RunEvent event;
  while (reader->Read(&event)) events.push_back(event);
  status_ = reader->Finish();
  return events;
}

v1::RunSummary ControlClient::WaitForEnd(const std::string& run_id, Nanoseconds limit) {
  const TimePoint until = MonotonicClock().Now() + limit;
  v1::RunSummary summary;
  while (MonotonicClock().Now() < until) {
    const std::vector<v1::RunEvent> events = Watch(run_id, until - MonotonicClock().Now());
    if (!events.empty()) summary = events.back().summary();
    if (summary.exit_code() >= 0 && !events.empty()) return summary;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return summary;
}

v1::RunRecord ControlClient::Show(const std::string& run_id) {
  v1::ShowRunRequest request;
  request.set_run_id(run_id);
  return Show(request);
}

v1::RunRecord ControlClient::Show(const v1::ShowRunRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(In(std::chrono::seconds(60)));
  context.set_wait_for_ready(true);
  v1::RunRecord record;
  status_ = stub_->ShowRun(&context, request, &record);
  return record;
}

v1::HostsReply ControlClient::Hosts() {
  grpc::ClientContext context;
  context.set_deadline(In(std::chrono::seconds(30)));
  v1::HostsReply reply;
  status_ = stub_->Hosts(&context, {}, &reply);
  return reply;
}

grpc::Status ControlClient::Cancel(const std::string& run_id) {
  grpc::ClientContext context;
  context.set_deadline(In(std::chrono::seconds(30)));
  v1::CancelRequest request;
  request.set_run_id(run_id);
  request.set_reason("by the test");
  v1::CancelReply reply;
  return status_ = stub_->Cancel(&context, request, &reply);
}

std::string Playbook(int trials, const std::string& more) {
  return "playbook: simulated\n"
         "stacks:\n"
         "  plain: {host: {dir: {}}}\n"
         "  ext4: {host: {ext4: {}}}\n"
         "disks: {size: 64MiB}\n"
         "workloads:\n"
         "  pages: {sync_pages: {file: 16MiB, duration: 1s}}\n"
         "trials: " +
         std::to_string(trials) + "\n" + more;
}

ControllerTest::ControllerTest() {
  spdlog::set_level(spdlog::level::warn);
  config_.set_state((directory_.path() / "state").string());
  config_.set_agents_listen("127.0.0.1:0");
  config_.set_control_listen("127.0.0.1:0");
  config_.set_heartbeat(Nanoseconds(std::chrono::milliseconds(200)).count());
  config_.set_reconnect_window(Nanoseconds(std::chrono::milliseconds(100)).count());
  config_.set_start_lead(Nanoseconds(std::chrono::milliseconds(50)).count());
}

void ControllerTest::StartController(api::OpenRuns open_runs) {
  Result<std::unique_ptr<api::Controller>> controller = api::Controller::Start(config_, open_runs);
  ASSERT_TRUE(controller) << controller.error().ToString();
  controller_ = *std::move(controller);
  client_ = std::make_unique<ControlClient>(controller_->control_address());
  // A restart listens where the first start did.
  config_.set_agents_listen(controller_->agents_address());
  if (!fleet_) fleet_ = std::make_unique<sim::SimFleet>();
}

sim::SimAgentOptions ControllerTest::AgentOptions(const std::string& id) const {
  sim::SimAgentOptions options;
  options.controller = config_.agents_listen();
  options.id = id;
  options.seed = Derive(Seed{1}, id);
  return options;
}

void ControllerTest::AddAgents(int count,
                               const std::function<void(sim::SimAgentOptions&)>& change) {
  for (int number = 1; number <= count; ++number) {
    sim::SimAgentOptions options = AgentOptions("st-" + std::to_string(number));
    if (change) change(options);
    fleet_->Add(std::move(options));
  }
  ASSERT_TRUE(fleet_->WaitForOnline(static_cast<std::size_t>(count), std::chrono::seconds(30)));
}

void ExpectExactlyOnce(const v1::RunRecord& record, const sim::SimHistory& history) {
  std::map<std::pair<std::string, std::uint64_t>, int> stored;
  std::map<std::string, std::uint64_t> begun_anew;  // newest token; a record shows its result only
  for (const v1::TrialRecord& trial : record.trials()) {
    for (const v1::AssignmentRecord& assignment : trial.assignments()) {
      if (trial.summary().attempt() > 1)
        begun_anew[assignment.assignment_id()] = assignment.epoch();
      if (!assignment.has_result()) continue;
      ++stored[{assignment.assignment_id(), assignment.result().epoch()}];
    }
  }
  for (const auto& [key, count] : history.starts) EXPECT_EQ(count, 1) << key.first;
  for (const auto& [key, count] : history.results) {
    if (!key.first.starts_with(record.summary().run_id() + "/")) continue;
    EXPECT_EQ(count, 1) << key.first;
    const auto anew = begun_anew.find(key.first);
    if (anew != begun_anew.end() && key.second < anew->second) continue;
    EXPECT_EQ(stored[key], 1) << key.first << " epoch " << key.second;
  }
}

}  // namespace labrack::e2e
