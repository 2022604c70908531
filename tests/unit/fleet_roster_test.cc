// Goal: who counts as attached, silent or gone, and that the controller's own pauses make nobody
// silent.
// Method: the pure roster with made-up instants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/fleet/identity.h"
#include "controller/fleet/roster.h"
#include "storage/base/session_limits.h"
#include "storage/base/version.h"

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
    hello.set_version("0.0.7");
    hello.set_protocol(v1::PROTOCOL_VERSION_NEWEST);
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

TEST_F(RosterTest, AnotherProtocolIsRefusedWithBothVersionsAndWhatToDo) {
  v1::Hello hello = MakeHello("a");
  hello.set_protocol(v1::PROTOCOL_VERSION_NEWEST + 1);
  Roster::Admission admission = roster_.Hello(1, hello);
  EXPECT_EQ(admission.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(admission.status.error_message(),
              testing::AllOf(testing::HasSubstr("`a` (labrack 0.0.7) speaks protocol 2"),
                             testing::HasSubstr("this controller (labrack " +
                                                std::string(Version()) + ") speaks 1"),
                             testing::HasSubstr("upgrade the controller")));
  hello.set_protocol(v1::PROTOCOL_VERSION_OLDEST_SERVED - 1);
  admission = roster_.Hello(2, hello);
  EXPECT_EQ(admission.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(admission.status.error_message(), testing::HasSubstr("upgrade the agent"));
  EXPECT_EQ(roster_.Find("a"), nullptr) << "it has never been here";

  // A refusal does not touch the session that there is.
  Attach(3, "a");
  EXPECT_FALSE(roster_.Hello(4, hello).status.ok());
  EXPECT_EQ(StateOf("a"), AgentState::kOnline);
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

// An agent that was long without a controller tries every 64 s, and may need two of these windows.
TEST_F(RosterTest, WhoWasNotHeardSinceTheStartHasTheLongestBackOffToComeBack) {
  roster_.Remember(
      {.id = "known", .machine_id = "m", .boot_id = "", .version = "", .inventory = {}});
  EXPECT_GE(roster_.grace(), 2 * kReconnectWindowMax + seconds(10));
  Pass(2 * kReconnectWindowMax);
  EXPECT_FALSE(roster_.Look("unknown").may_be_lost);
  EXPECT_FALSE(roster_.Look("known").may_be_lost);
  EXPECT_TRUE(roster_.Look("known").away) << "a cancelled run need not wait";
  Pass(seconds(11));
  EXPECT_TRUE(roster_.Look("unknown").may_be_lost);
  EXPECT_TRUE(roster_.Look("known").may_be_lost);
  EXPECT_GE(roster_.Look("unknown").silent, seconds(60)) << "silent since the start";
}

TEST_F(RosterTest, RightAfterAStartNobodyIsAway) {
  roster_.Remember(
      {.id = "known", .machine_id = "m", .boot_id = "", .version = "", .inventory = {}});
  EXPECT_FALSE(roster_.Look("known").away);
  EXPECT_FALSE(roster_.Look("unknown").away);
}

TEST_F(RosterTest, WhoWasHeardMayBeLostAtAnyTime) {
  Attach(1, "a");
  roster_.Closed(1, false);
  Pass(seconds(20));
  EXPECT_TRUE(roster_.Look("a").may_be_lost);
}

class MassSilence : public RosterTest {
 protected:
  // Agents n1...; all but the last `silent` go on talking while time passes.
  void AttachMany(int count) {
    for (int number = 1; number <= count; ++number) {
      Attach(static_cast<std::uint64_t>(number), "n" + std::to_string(number));
    }
    count_ = count;
  }
  void PassWithSilent(int silent, Nanoseconds time) {
    for (Nanoseconds passed{0}; passed < time; passed += seconds(5)) {
      Pass(seconds(5));
      for (int number = 1; number <= count_ - silent; ++number) {
        roster_.Heard(static_cast<std::uint64_t>(number));
      }
    }
  }
  bool MayBeLost() { return roster_.Look("n" + std::to_string(count_)).may_be_lost; }
  int count_ = 0;
};

TEST_F(MassSilence, NobodyIsLostWhileManyAreSilentTogether) {
  AttachMany(10);
  PassWithSilent(4, seconds(60));
  EXPECT_TRUE(roster_.mass_silence());
  EXPECT_FALSE(MayBeLost());
  PassWithSilent(4, seconds(600));
  EXPECT_FALSE(MayBeLost());
  // Two come back: the rest are few, and get the time that their windows may take.
  for (int number = 7; number <= 8; ++number) {
    const std::string id = "n" + std::to_string(number);
    ASSERT_TRUE(roster_.Hello(static_cast<std::uint64_t>(number), MakeHello(id, 2)).status.ok());
    roster_.Welcomed(static_cast<std::uint64_t>(number));
  }
  PassWithSilent(2, seconds(5));
  EXPECT_FALSE(roster_.mass_silence());
  EXPECT_FALSE(MayBeLost());
  PassWithSilent(2, roster_.grace());
  EXPECT_TRUE(MayBeLost());
}

TEST_F(MassSilence, ItEndsThoughNobodyComesBack) {
  AttachMany(10);
  PassWithSilent(4, Roster::kMassSilenceMax - seconds(60));
  EXPECT_TRUE(roster_.mass_silence());
  PassWithSilent(4, seconds(60) + roster_.grace() + seconds(10));
  EXPECT_FALSE(roster_.mass_silence());
  EXPECT_TRUE(MayBeLost());
}

TEST_F(MassSilence, AFewOrOneAfterAnotherIsNone) {
  AttachMany(10);
  PassWithSilent(3, seconds(120));
  EXPECT_FALSE(roster_.mass_silence()) << "3 of 10 is not more than 30 %";
  EXPECT_TRUE(MayBeLost());
  PassWithSilent(5, seconds(120));
  EXPECT_FALSE(roster_.mass_silence()) << "2 more, minutes later";
}

TEST_F(MassSilence, WhoSaysGoodbyeIsNotSilent) {
  AttachMany(10);
  for (std::uint64_t session = 1; session <= 5; ++session) roster_.Closed(session, true);
  Pass(seconds(5));
  EXPECT_FALSE(roster_.mass_silence());
  for (std::uint64_t session = 6; session <= 8; ++session) roster_.Closed(session, false);
  Pass(seconds(5));
  EXPECT_TRUE(roster_.mass_silence()) << "who only breaks off is";
}

TEST_F(MassSilence, ASmallLabHasNone) {
  AttachMany(3);
  PassWithSilent(2, seconds(120));
  EXPECT_FALSE(roster_.mass_silence());
  EXPECT_TRUE(MayBeLost());
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

TEST_F(RosterTest, AHostIsDirtyAsLongAsItsHeartbeatsSaySo) {
  Attach(1, "a");
  v1::Heartbeat heartbeat;
  heartbeat.set_dirty("/mnt/a cannot be unmounted");
  roster_.TakeHeartbeat(1, heartbeat);
  EXPECT_EQ(roster_.Find("a")->dirty, "/mnt/a cannot be unmounted");
  // A new session has not said yet that it is clean.
  roster_.Closed(1, false);
  ASSERT_TRUE(roster_.Hello(2, MakeHello("a", 1, 2)).status.ok());
  EXPECT_NE(roster_.Find("a")->dirty, "");
  roster_.TakeHeartbeat(2, {});
  EXPECT_EQ(roster_.Find("a")->dirty, "");
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

// What an exporter listens on is not where it can be scraped.
TEST(ReachableAddressTest, LoopbackStaysOnItsMachineAndAnyAddressBecomesThePeers) {
  const auto reach = [](const char* listens_on, const char* peer, bool same = false) {
    return ReachableAddress(listens_on, peer, same).value_or("none");
  };
  EXPECT_EQ(reach("127.0.0.1:7483", "ipv4:10.0.0.7:41234"), "none");
  EXPECT_EQ(reach("127.0.0.1:7483", "ipv4:10.0.0.7:41234", /*same=*/true), "127.0.0.1:7483");
  EXPECT_EQ(reach("127.0.0.1:7483", "ipv4:127.0.0.1:41234"), "127.0.0.1:7483");
  EXPECT_EQ(reach("127.0.0.1:7483", ""), "none");
  EXPECT_EQ(reach("0.0.0.0:7483", "ipv4:10.0.0.7:41234"), "10.0.0.7:7483");
  EXPECT_EQ(reach("[::]:7483", "ipv6:%5Bfd00::7%5D:41234"), "[fd00::7]:7483");
  EXPECT_EQ(reach("0.0.0.0:7483", ""), "none");
  EXPECT_EQ(reach("0.0.0.0:7483", "", /*same=*/true), "127.0.0.1:7483");
  EXPECT_EQ(reach("st-07.lab:7483", ""), "st-07.lab:7483");
  EXPECT_EQ(reach("nonsense", "ipv4:10.0.0.7:41234"), "none");
}

}  // namespace
}  // namespace labrack::fleet
