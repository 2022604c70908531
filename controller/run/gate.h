// The common start of one step on several hosts, again and again for each step of a trial.
//
//   kWaiting --all stand at the same gate--> kArming --all have acknowledged--> kStarted --> next
//      ^   Arm(start instant)                   |  Go                              |
//      |------- the instant came first ---------+                                  |
//      |------- every host missed it (GateReady again) ----------------------------+
//                                    some started, some missed: broken, the trial is void
//
// The start is an absolute instant on the controller's clock, at least max(lead_min, 10 round
// trips) ahead; each further try doubles the lead. Go is sent only while as much time is left as
// Arm and its answers took. Pure: no clock, no messages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "storage/base/clock.h"

namespace labrack::run {

class Gate {
 public:
  static constexpr int kTriesMax = 12;
  static constexpr Nanoseconds kLeadMax = std::chrono::seconds(10);
  static constexpr Nanoseconds kDecideAfter = std::chrono::seconds(1);

  enum class Step { kNothing, kArm, kGo, kBroken };
  struct Decision {
    Step step = Step::kNothing;
    std::uint32_t gate_index = 0;
    std::uint64_t arming = 0;
    TimePoint start{};
    std::string reason;  // of kBroken
  };

  Gate(std::set<std::string> hosts, Nanoseconds lead_min)
      : hosts_(std::move(hosts)), lead_min_(lead_min) {}

  void Ready(const std::string& host, std::uint32_t gate_index, TimePoint now);
  // The answer to Arm number `arming`.
  enum class Reply { kArmed, kCannot, kNotAtGate };
  void Answer(const std::string& host, std::uint64_t arming, Reply reply,
              const std::string& detail);
  // The host's session has ended; it will say GateReady again where it still stands.
  void Forget(const std::string& host) { standing_.erase(host); }

  // What is to be done now. `next_arming` is used up when the answer is kArm; numbers must grow.
  Decision Decide(TimePoint now, Nanoseconds round_trip_worst, std::uint64_t next_arming);
  // When to ask again though nothing has been heard.
  std::optional<TimePoint> wake() const;

  bool AnyStanding() const { return !standing_.empty(); }
  bool opened() const { return opened_; }  // Go has been sent at least once
  void AssumeOpened() { opened_ = true; }  // after a restart nobody knows

 private:
  enum class State { kWaiting, kArming, kStarted };

  Decision Arm(TimePoint now, Nanoseconds round_trip_worst, std::uint64_t next_arming);
  Decision AfterStart(TimePoint now);
  Decision Broken(std::string reason) const;
  std::optional<std::string> Mismatch() const;
  std::optional<std::string> Latecomer() const;
  void WaitForNext();

  std::set<std::string> hosts_;
  Nanoseconds lead_min_;
  State state_ = State::kWaiting;
  std::uint32_t gate_index_ = 0;
  std::optional<std::uint32_t> passed_;            // the last gate through which all went
  std::map<std::string, std::uint32_t> standing_;  // host -> the gate where it stands
  std::set<std::string> acknowledged_;
  std::set<std::string> missed_;
  std::uint64_t arming_ = 0;
  TimePoint armed_at_{};
  TimePoint start_{};
  int tries_ = 0;
  bool opened_ = false;
  std::string refusal_;
};

}  // namespace labrack::run
