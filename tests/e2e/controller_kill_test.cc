// Goal: a controller that is killed (-9) at any moment of a run loses no result and doubles none.
// Method: labrack-controller as a process of its own, simulated agents in this one; a seed chooses
// when it is killed; it is started again on the same state directory and ports.
#include <csignal>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "storage/base/random.h"
#include "tests/e2e/controller_fixture.h"
#include "tests/e2e/wait_until.h"
#include "tests/sim/free_port.h"

namespace labrack::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ControllerProcess {
 public:
  explicit ControllerProcess(const std::filesystem::path& directory)
      : config_file_((directory / "controller.yaml").string()),
        log_file_((directory / "controller.log").string()),
        agents_("127.0.0.1:" + std::to_string(sim::FreePort())),
        control_("127.0.0.1:" + std::to_string(sim::FreePort())) {
    std::ofstream(config_file_) << "state: " << (directory / "state").string()
                                << "\nagents_listen: \"" << agents_ << "\"\ncontrol_listen: \""
                                << control_ << "\"\nhttp_listen: \"\"\nheartbeat: 200ms\n"
                                << "reconnect_window: 100ms\nstart_lead: 50ms\n";
  }
  ~ControllerProcess() { Kill(SIGKILL); }

  void Start() {
    pid_ = fork();
    ASSERT_GE(pid_, 0);
    if (pid_ != 0) return;
    if (std::freopen(log_file_.c_str(), "a", stderr) == nullptr) _exit(126);
    const std::string program = std::string(LABRACK_BIN_DIR) + "/labrack-controller";
    execl(program.c_str(), program.c_str(), "--config", config_file_.c_str(), nullptr);
    _exit(127);
  }
  // Answers with the wait status; 0 when it was not running.
  int Kill(int signal) {
    if (pid_ <= 0) return 0;
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  std::string Log() const {
    std::ifstream file(log_file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string& agents() const { return agents_; }
  const std::string& control() const { return control_; }

 private:
  std::string config_file_;
  std::string log_file_;
  std::string agents_;
  std::string control_;
  pid_t pid_ = -1;
};

// The first request after a kill may still go to the dead process.
std::string SubmitUntilAnswered(ControlClient& client) {
  std::string run_id;
  for (int tries = 0; tries < 100 && run_id.empty(); ++tries) {
    run_id = client.Submit(Playbook(8), "once").run_id();
    if (run_id.empty()) std::this_thread::sleep_for(milliseconds(50));
  }
  return run_id;
}

class ControllerKillTest : public testing::TestWithParam<int> {};

TEST_P(ControllerKillTest, EveryResultIsRecordedOnce) {
  SCOPED_TRACE("replay: build/release/tests/controller_kill_test --gtest_filter='*/" +
               std::to_string(GetParam() - 1) + "' (the machine's timing differs each time)");
  TemporaryDirectory directory;
  ControllerProcess controller(directory.path());
  controller.Start();
  Random random(Seed{static_cast<std::uint64_t>(GetParam())});
  sim::SimFleet fleet;
  for (int number = 1; number <= 3; ++number) {
    sim::SimAgentOptions options;
    options.controller = controller.agents();
    options.id = "st-" + std::to_string(number);
    options.step_time = milliseconds(20);
    options.seed = Seed{random.Next()};
    fleet.Add(std::move(options));
  }
  ControlClient client(controller.control());
  ASSERT_TRUE(fleet.WaitForOnline(3, seconds(30))) << controller.Log();
  const v1::SubmitReply submitted = client.Submit(Playbook(8), "once");
  ASSERT_NE(submitted.run_id(), "") << client.last_status().error_message() << controller.Log();

  for (int kills = 0; kills < 6; ++kills) {
    std::this_thread::sleep_for(milliseconds(random.Below(400)));
    ASSERT_TRUE(WIFSIGNALED(controller.Kill(SIGKILL))) << controller.Log();
    controller.Start();
    // A client that does not know whether its request arrived repeats it.
    EXPECT_EQ(SubmitUntilAnswered(client), submitted.run_id());
  }
  const v1::RunSummary summary = client.WaitForEnd(submitted.run_id(), seconds(60));
  EXPECT_EQ(summary.trials_done(), 16U) << controller.Log();
  EXPECT_EQ(summary.trials_valid(), 16U) << summary.reason() << "\n" << controller.Log();
  ExpectExactlyOnce(client.Show(submitted.run_id()), fleet.history());
  EXPECT_TRUE(WaitUntil(std::chrono::seconds(10), [&] { return fleet.held_count() == 0; }))
      << "an agent was not told that all is durable";
  const int status = controller.Kill(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << controller.Log();
}
INSTANTIATE_TEST_SUITE_P(Seeds, ControllerKillTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace labrack::e2e
