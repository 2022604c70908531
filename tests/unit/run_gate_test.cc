// Goal: hosts start a step together or not at all, whatever is late.
// Method: the pure gate with made-up instants; no messages, no clock.
#include <gtest/gtest.h>

#include "controller/run/gate.h"

namespace labrack::run {
namespace {

using std::chrono::milliseconds;

class GateTest : public testing::Test {
 protected:
  static TimePoint At(int ms) { return TimePoint(milliseconds(10'000 + ms)); }
  Gate::Decision Decide(int ms) { return gate_.Decide(At(ms), milliseconds(1), ++numbers_); }
  void ReadyBoth(int ms, std::uint32_t gate = 0) {
    gate_.Ready("a", gate, At(ms));
    gate_.Ready("b", gate, At(ms));
  }
  void AnswerBoth(const Gate::Decision& arm) {
    gate_.Answer("a", arm.arming, Gate::Reply::kArmed, "");
    gate_.Answer("b", arm.arming, Gate::Reply::kArmed, "");
  }
  // Up to Go of the first try.
  Gate::Decision Start(int ms, std::uint32_t gate = 0) {
    ReadyBoth(ms, gate);
    const Gate::Decision arm = Decide(ms);
    EXPECT_EQ(arm.step, Gate::Step::kArm);
    AnswerBoth(arm);
    const Gate::Decision go = Decide(ms + 1);
    EXPECT_EQ(go.step, Gate::Step::kGo);
    EXPECT_EQ(go.arming, arm.arming);
    return go;
  }

  Gate gate_{{"a", "b"}, milliseconds(200)};
  std::uint64_t numbers_ = 0;
};

TEST_F(GateTest, NobodyIsArmedBeforeAllStand) {
  gate_.Ready("a", 0, At(0));
  EXPECT_EQ(Decide(0).step, Gate::Step::kNothing);
  gate_.Ready("b", 0, At(5));
  const Gate::Decision arm = Decide(5);
  EXPECT_EQ(arm.step, Gate::Step::kArm);
  EXPECT_EQ(arm.start, At(205));
}

TEST_F(GateTest, LeadIsTenRoundTripsWhenTheyAreLong) {
  ReadyBoth(0);
  EXPECT_EQ(gate_.Decide(At(0), milliseconds(50), 1).start, At(500));
}

TEST_F(GateTest, GoComesOnlyAfterAllAnswered) {
  ReadyBoth(0);
  const Gate::Decision arm = Decide(0);
  gate_.Answer("a", arm.arming, Gate::Reply::kArmed, "");
  EXPECT_EQ(Decide(10).step, Gate::Step::kNothing);
  gate_.Answer("b", arm.arming + 7, Gate::Reply::kArmed, "");  // to another question
  EXPECT_EQ(Decide(11).step, Gate::Step::kNothing);
  gate_.Answer("b", arm.arming, Gate::Reply::kArmed, "");
  EXPECT_EQ(Decide(12).step, Gate::Step::kGo);
  EXPECT_TRUE(gate_.opened());
}

TEST_F(GateTest, AnInstantThatPassedIsArmedAnewWithALongerLead) {
  ReadyBoth(0);
  const Gate::Decision first = Decide(0);
  EXPECT_EQ(gate_.wake(), first.start);
  const Gate::Decision second = Decide(200);
  EXPECT_EQ(second.step, Gate::Step::kArm);
  EXPECT_GT(second.arming, first.arming);
  EXPECT_EQ(second.start, At(200 + 400));
  gate_.Answer("a", first.arming, Gate::Reply::kArmed,
               "");  // too late, does not count for the second
  gate_.Answer("b", second.arming, Gate::Reply::kArmed, "");
  EXPECT_EQ(Decide(210).step, Gate::Step::kNothing);
}

TEST_F(GateTest, ARefusalIsArmedAnewAndGivenUpAfterSomeTries) {
  ReadyBoth(0);
  Gate::Decision decision = Decide(0);
  int tries = 0;
  while (decision.step == Gate::Step::kArm) {
    ++tries;
    gate_.Answer("b", decision.arming, Gate::Reply::kCannot, "CLOCK_UNCERTAIN");
    const TimePoint start = decision.start;
    EXPECT_EQ(gate_.Decide(start - milliseconds(1), {}, ++numbers_).step, Gate::Step::kNothing);
    decision = gate_.Decide(start, {}, ++numbers_);
  }
  EXPECT_EQ(tries, Gate::kTriesMax);
  EXPECT_EQ(decision.step, Gate::Step::kBroken);
  EXPECT_NE(decision.reason.find("CLOCK_UNCERTAIN"), std::string::npos);
}

TEST_F(GateTest, AllMissedIsTriedAgain) {
  const Gate::Decision go = Start(0);
  ReadyBoth(205);
  const Gate::Decision again = Decide(210);
  EXPECT_EQ(again.step, Gate::Step::kArm);
  EXPECT_EQ(again.gate_index, go.gate_index);
}

TEST_F(GateTest, OneMissedBreaksTheTrial) {
  Start(0);
  gate_.Ready("b", 0, At(210));
  EXPECT_EQ(Decide(220).step, Gate::Step::kNothing);  // a may still say so, too
  const Gate::Decision broken = Decide(200 + 1000);
  EXPECT_EQ(broken.step, Gate::Step::kBroken);
  EXPECT_NE(broken.reason.find("b missed"), std::string::npos);
}

TEST_F(GateTest, AnOldGateReadyIsNotAMissedStart) {
  Start(0);
  gate_.Ready("b", 0, At(20));  // was under way since before the arming
  EXPECT_EQ(Decide(1300).step, Gate::Step::kNothing);
  ReadyBoth(1400, 1);
  EXPECT_EQ(Decide(1400).step, Gate::Step::kArm);
}

TEST_F(GateTest, ShortStepsGoOnWithoutWaiting) {
  Start(0);
  ReadyBoth(230, 1);
  const Gate::Decision arm = Decide(230);
  EXPECT_EQ(arm.step, Gate::Step::kArm);
  EXPECT_EQ(arm.gate_index, 1U);
  EXPECT_EQ(arm.start, At(430));  // a new gate begins with the short lead
}

TEST_F(GateTest, AMissedStartThatIsSaidLateStillBreaksTheTrial) {
  Start(0);
  EXPECT_EQ(Decide(1300).step, Gate::Step::kNothing);  // taken for passed by all
  gate_.Ready("b", 0, At(1400));
  EXPECT_EQ(Decide(1400).step, Gate::Step::kBroken);
}

TEST_F(GateTest, AHostThatWasForgottenIsWaitedFor) {
  ReadyBoth(0);
  gate_.Forget("b");
  EXPECT_EQ(Decide(0).step, Gate::Step::kNothing);
  gate_.Ready("b", 0, At(50));
  EXPECT_EQ(Decide(50).step, Gate::Step::kArm);
}

TEST_F(GateTest, GoIsNotSentWhenItMightComeTooLate) {
  ReadyBoth(0);
  const Gate::Decision slow = Decide(0);
  AnswerBoth(slow);
  const Gate::Decision again = Decide(120);  // 80 ms are left, and the answers took 120
  EXPECT_EQ(again.step, Gate::Step::kArm);
  EXPECT_EQ(again.start, At(120 + 400));
  AnswerBoth(again);
  EXPECT_EQ(Decide(240).step, Gate::Step::kGo);
}

TEST_F(GateTest, AHostThatHasStartedAlreadyIsNotArmedAgain) {
  ReadyBoth(0);
  const Gate::Decision arm = Decide(0);
  gate_.Answer("a", arm.arming, Gate::Reply::kNotAtGate, "");
  gate_.Answer("b", arm.arming, Gate::Reply::kNotAtGate, "");
  EXPECT_EQ(Decide(300).step, Gate::Step::kNothing);
  EXPECT_FALSE(gate_.AnyStanding());
  ReadyBoth(500, 1);
  EXPECT_EQ(Decide(500).gate_index, 1U);
}

TEST_F(GateTest, HostsAtDifferentStepsAreBroken) {
  gate_.Ready("a", 0, At(0));
  gate_.Ready("b", 1, At(0));
  EXPECT_EQ(Decide(0).step, Gate::Step::kBroken);
}

}  // namespace
}  // namespace labrack::run
