// Goal: a stream that does not keep the protocol does not stay, and a controller that is told to
// stop does not first do what others have asked for.
// Method: a whole controller in this process, raw streams of the agents' port, a queue of plans.
#include <chrono>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <httplib.h>

#include "controller/fleet/session.h"
#include "labrack/v1/fleet.grpc.pb.h"
#include "tests/e2e/controller_fixture.h"
#include "tests/e2e/wait_until.h"

namespace labrack::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class SessionTest : public ControllerTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ControllerMessage>;
  struct Peer {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::Fleet::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
    ~Peer() { context.TryCancel(); }
  };

  SessionTest() { config_.set_http_listen("127.0.0.1:0"); }
  std::unique_ptr<Peer> Open() {
    auto peer = std::make_unique<Peer>();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    peer->channel = grpc::CreateCustomChannel(config_.agents_listen(),
                                              grpc::InsecureChannelCredentials(), arguments);
    peer->stub = v1::Fleet::NewStub(peer->channel);
    peer->stream = peer->stub->Session(&peer->context);
    return peer;
  }
  int OpenSessions() {
    httplib::Client http("http://" + controller_->http_address());
    const httplib::Result answer = http.Get("/metrics");
    const std::string name = "\nlabrack_controller_sessions_open ";
    const std::size_t at = answer ? answer->body.find(name) : std::string::npos;
    return at == std::string::npos ? -1 : std::stoi(answer->body.substr(at + name.size()));
  }
  bool WaitForSessions(int count, Nanoseconds limit) {
    return WaitUntil(limit, [&] { return OpenSessions() == count; });
  }
};

TEST_F(SessionTest, AStreamThatDoesNotSayHelloIsEnded) {
  StartController();
  const std::unique_ptr<Peer> peer = Open();
  EXPECT_TRUE(WaitForSessions(1, seconds(5)));
  EXPECT_TRUE(WaitForSessions(0, fleet::Session::kHelloWithin + seconds(5)));
}

TEST_F(SessionTest, StopAnswersWhatWaitsInsteadOfDoingIt) {
  StartController();
  std::string axis;
  for (int value = 1; value <= 90; ++value) axis += (value > 1 ? ", " : "") + std::to_string(value);
  v1::PlanRequest request;
  request.mutable_source()->set_file("large.yaml");
  request.mutable_source()->set_text(
      "playbook: large\nstacks: {plain: {host: {dir: {}}}}\ndisks: {size: 64MiB}\n"
      "matrix: {a: [" +
      axis + "], b: [" + axis +
      "]}\n"
      "workloads: {pages: {sync_pages: {file: 16MiB, duration: \"${a}${b}s\"}}}\n");
  const auto plan = [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(60));
    v1::PlanReply reply;
    return client().stub().PlanRun(&context, request, &reply);
  };
  const auto one_began = Clock::now();
  ASSERT_TRUE(plan().ok());
  const auto one = Clock::now() - one_began;
  std::vector<std::future<grpc::Status>> waiting;
  for (int count = 0; count < 30; ++count) waiting.push_back(std::async(std::launch::async, plan));
  std::this_thread::sleep_for(one);
  const auto began = Clock::now();
  controller_->Stop(milliseconds(200));
  const auto took = Clock::now() - began;
  EXPECT_LT(took, seconds(1) + 5 * one) << "30 plans wait";
  int unavailable = 0;
  for (std::future<grpc::Status>& status : waiting) {
    if (!status.get().ok()) ++unavailable;
  }
  EXPECT_GE(unavailable, 20);
}

}  // namespace
}  // namespace labrack::e2e
