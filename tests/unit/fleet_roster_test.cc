// Goal: who counts as attached, silent or gone, and that the controller's own pauses make nobody
// silent.
// Method: the pure roster with made-up instants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/fleet/roster.h"

namespace labrack::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RosterTest : public testing::Test {
 protected:
  RosterTest() { roster_.Tick(now_); }

  static v1::Hello MakeHello(const std::string& id, std::uint64_t incarnation = 1,
                             std::uint64_t connection = 1, const std::string& machine = "m") {
    v1::Hello hello;
    hello.set_agent_id(id);
    hello.set_incarnation(incarnation);
    hello.set_connection(connection);
    hello.set_machine_id(machine);
    return hello;
  }
  void Attach(std::uint64_t session, const std::string& id) {
    ASSERT_TRUE(roster_.Hello(session, MakeHello(id)).status.ok());
    roster_.Welcomed(session);
  }
  // Lets time pass in the loop's steps.
  std::vector<std::uint64_t> Pass(Nanoseconds time) {
    std::vector<std::uint64_t> dropped;
    const TimePoint until = now_ + time;
    while (now_ < until) {
      now_ += milliseconds(100);
      for (std::uint64_t session : roster_.Tick(now_)) {
        dropped.push_back(session);
        roster_.Closed(session, false);
      }
    }
    return dropped;
  }
  AgentState StateOf(const std::string& id) { return roster_.Find(id)->state; }

  Roster roster_{{.heartbeat = seconds(10), .reconnect_window = seconds(2)}};
  TimePoint now_{seconds(100)};
};

TEST_F(RosterTest, SilenceMakesAnAgentSuspectAndThenOffline) {
  Attach(1, "a");
  EXPECT_EQ(StateOf("a"), AgentState::kOnline);
  EXPECT_TRUE(Pass(seconds(29)).empty());
  EXPECT_EQ(StateOf("a"), AgentState::kOnline);
  Pass(seconds(2));
  EXPECT_EQ(StateOf("a"), AgentState::kSuspect);
  EXPECT_TRUE(roster_.Look("a").connected) << "work goes on with a suspect";
  roster_.Heard(1);
  EXPECT_EQ(StateOf("a"), AgentState::kOnline);
  EXPECT_THAT(Pass(seconds(61)), testing::ElementsAre(1U)) << "a half-open session is dropped";
  Pass(seconds(1));
  EXPECT_EQ(StateOf("a"), AgentState::kOffline);
  EXPECT_FALSE(roster_.Look("a").connected);
  EXPECT_TRUE(roster_.Look("a").away);
}

TEST_F(RosterTest, AClosedStreamIsSuspectForAWhile) {
  Attach(1, "a");
  roster_.Closed(1, /*said_goodbye=*/false);
  EXPECT_EQ(StateOf("a"), AgentState::kSuspect);
  EXPECT_FALSE(roster_.Look("a").connected);
  EXPECT_FALSE(roster_.Look("a").away);
  Pass(seconds(16));
  EXPECT_EQ(StateOf("a"), AgentState::kOffline);
  EXPECT_GE(roster_.Look("a").silent, seconds(16));
}

TEST_F(RosterTest, GoodbyeIsOfflineAtOnce) {
  Attach(1, "a");
  roster_.Closed(1, /*said_goodbye=*/true);
  EXPECT_EQ(StateOf("a"), AgentState::kOffline);
}

TEST_F(RosterTest, APauseOfTheControllerMakesNobodySilent) {
  Attach(1, "a");
  now_ += seconds(3600);  // SIGSTOP
  EXPECT_TRUE(roster_.Tick(now_).empty());
  EXPECT_EQ(StateOf("a"), AgentState::kOnline);
  EXPECT_LE(roster_.Look("a").silent, seconds(1));
}

TEST_F(RosterTest, NobodyIsGivenUpSoonAfterAStart) {
  EXPECT_EQ(roster_.grace(), seconds(60));
  EXPECT_FALSE(roster_.Look("unknown").may_be_lost);
  Pass(seconds(61));
  EXPECT_TRUE(roster_.Look("unknown").may_be_lost);
  EXPECT_GE(roster_.Look("unknown").silent, seconds(60)) << "silent since the start";
}

TEST_F(RosterTest, TheHigherIncarnationOrConnectionReplaces) {
  ASSERT_TRUE(roster_.Hello(1, MakeHello("a", 2, 5)).status.ok());
  EXPECT_FALSE(roster_.Hello(2, MakeHello("a", 2, 5)).status.ok());
  EXPECT_FALSE(roster_.Hello(3, MakeHello("a", 1, 9)).status.ok());
  const Roster::Admission newer = roster_.Hello(4, MakeHello("a", 2, 6));
  EXPECT_TRUE(newer.status.ok());
  EXPECT_EQ(newer.replaced_session, 1U);
  roster_.Closed(1, false);  // the old one's end says nothing about the new one
  EXPECT_EQ(roster_.Find("a")->session_id, 4U);
  EXPECT_EQ(roster_.Hello(5, MakeHello("a", 3, 1)).replaced_session, 4U);
}

TEST_F(RosterTest, AnAgentMadeAnewMayComeOnceTheOldOneIsGone) {
  ASSERT_TRUE(roster_.Hello(1, MakeHello("a", 7, 1)).status.ok());
  EXPECT_FALSE(roster_.Hello(2, MakeHello("a", 1, 1)).status.ok());
  roster_.Closed(1, false);
  EXPECT_TRUE(roster_.Hello(3, MakeHello("a", 1, 1)).status.ok());
}

TEST_F(RosterTest, AnotherMachineWithTheSameIdIsAConflict) {
  ASSERT_TRUE(roster_.Hello(1, MakeHello("a", 1, 1, "m1")).status.ok());
  const Roster::Admission clone = roster_.Hello(2, MakeHello("a", 9, 9, "m2"));
  EXPECT_TRUE(clone.conflict);
  EXPECT_THAT(clone.status.error_message(), testing::HasSubstr("CONFLICT"));
  EXPECT_EQ(roster_.Find("a")->session_id, 1U);
  roster_.Closed(1, false);
  const Roster::Admission moved = roster_.Hello(3, MakeHello("a", 9, 9, "m2"));
  EXPECT_TRUE(moved.status.ok());
  EXPECT_TRUE(moved.machine_changed);
}

TEST_F(RosterTest, IdsAreCheckedAndHeartbeatsStretchWithTheFleet) {
  EXPECT_EQ(roster_.Hello(1, MakeHello("../x")).status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(IsAgentId("st-01.lab"));
  EXPECT_FALSE(IsAgentId(""));
  EXPECT_FALSE(IsAgentId("-a"));
  EXPECT_FALSE(IsAgentId(std::string(64, 'a')));
  for (int number = 0; number < 6000; ++number) {
    Attach(static_cast<std::uint64_t>(number + 10), "n" + std::to_string(number));
  }
  EXPECT_EQ(roster_.heartbeat(), seconds(20));
  EXPECT_EQ(roster_.reconnect_window(), seconds(30));
}

}  // namespace
}  // namespace labrack::fleet
