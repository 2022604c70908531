// The real agent and its workers against a controller of a few lines in this process.
#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/e2e/test_controller.h"
#include "tests/e2e/trial_support.h"

namespace labrack::e2e {

constexpr std::uint64_t kEpoch = 1ULL << 40;

class AgentFixture : public testing::Test {
 protected:
  ~AgentFixture() override {
    agent_.reset();
    for (pid_t pid : ProcessesWith(state_.string())) kill(pid, SIGKILL);
  }

  void StartAgent(const std::string& more = "") {
    const std::filesystem::path config = temp_.path() / "agent.yaml";
    std::ofstream(config) << "controller: " << controller_.address()
                          << "\nstate: " << state_.string()
                          << "\nname: st-01\nmetrics_listen: 127.0.0.1:0\n"
                          << more;
    std::vector<std::string> words = launcher_;
    words.insert(words.end(), {Binary("labrack-agent"), "--config", config.string()});
    agent_ = std::make_unique<Process>(std::move(words), temp_.path() / "agent.log");
  }
  std::string Log() const { return ReadText(temp_.path() / "agent.log"); }

  bool WaitForPhase(v1::PhaseKind phase) {
    return controller_.WaitFor(
        [&](const TestController::Heard& heard) { return heard.HasBegun(phase); });
  }
  bool WaitForResult(Nanoseconds longest = std::chrono::seconds(30)) {
    return controller_.WaitFor(
        [](const TestController::Heard& heard) { return heard.result() != nullptr; }, longest);
  }
  v1::CommandAck Assign(const v1::AssignmentSpec& spec, const std::string& command_id) {
    controller_.SendAssign(spec, command_id);
    EXPECT_TRUE(controller_.WaitFor([&](const TestController::Heard& heard) {
      return heard.AckOf(command_id) != nullptr;
    })) << Log();
    const TestController::Heard heard = controller_.heard();
    const v1::CommandAck* ack = heard.AckOf(command_id);
    return ack == nullptr ? v1::CommandAck() : *ack;
  }
  bool WaitForHello(std::size_t count) {
    return controller_.WaitFor(
        [&](const TestController::Heard& heard) { return heard.hellos.size() >= count; });
  }
  bool NothingIsLeft() const {
    return FilesBelow(state_ / "disks").empty() && FilesBelow(state_ / "mounts").empty() &&
           FilesBelow(state_ / "trials").empty();
  }
  // Closes the trial and expects that nothing of it is left.
  void ExpectClosed(const v1::AssignmentSpec& spec) {
    controller_.SendWant(spec, v1::WANT_CLOSED, "closed");
    EXPECT_TRUE(WaitUntil(std::chrono::seconds(10), [&] { return NothingIsLeft(); }))
        << testing::PrintToString(FilesBelow(state_)) << Log();
  }
  // Numbers 1..n, the result last, and none came in two forms.
  void ExpectWholeHistory() {
    const TestController::Heard heard = controller_.heard();
    std::uint64_t expected = 0;
    for (const auto& [seq, record] : heard.events) EXPECT_EQ(seq, ++expected);
    ASSERT_FALSE(heard.events.empty());
    EXPECT_TRUE(heard.events.rbegin()->second.has_result());
    EXPECT_TRUE(heard.conflicts.empty()) << testing::PrintToString(heard.conflicts);
  }
  pid_t WorkerPid() const {
    std::vector<pid_t> workers = ProcessesWith("--lock-fd");
    for (pid_t pid : workers) {
      if (ReadText("/proc/" + std::to_string(pid) + "/cmdline").find(state_.string()) !=
          std::string::npos)
        return pid;
    }
    return -1;
  }

  TempDirectory temp_;
  std::filesystem::path state_ = temp_.path() / "state";
  std::vector<std::string> launcher_;  // words before the agent's own
  TestController controller_;
  std::unique_ptr<Process> agent_;
};

}  // namespace labrack::e2e
