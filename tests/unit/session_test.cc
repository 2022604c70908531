// Goal: what the agent's session promises holds without a network: clocks are mapped within the
// bound that is said, gates open only on Arm and Go, the journal never forgets, results of dead
// trials say what happened, and what is sent has no gap. Method: simulated delays, a journal in
// memory-backed files, hand-made spools.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "agent/exec/family.h"
#include "agent/session/agent.h"
#include "agent/session/clock_sync.h"
#include "agent/session/connection.h"
#include "agent/session/ending.h"
#include "agent/session/gate.h"
#include "agent/session/identity.h"
#include "agent/session/journal.h"
#include "agent/session/reconnect.h"
#include "agent/session/spool_tail.h"
#include "agent/session/trial_cleaner.h"
#include "agent/session/trial_clock.h"
#include "agent/session/worker_process.h"
#include "agent/worker/result_size.h"
#include "agent/worker/spool/spool_writer.h"
#include "storage/base/random.h"

namespace labrack::session {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class TempDirectory {
 public:
  TempDirectory() {
    std::filesystem::path parent = "/dev/shm";
    if (access(parent.c_str(), W_OK) != 0) parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / "session-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// --- clocks ---

// A network whose two ways take different random times; the controller's clock is ahead by `offset`
// and runs fast.
class SimulatedNetwork {
 public:
  SimulatedNetwork(Seed seed, Nanoseconds offset, double drift)
      : random_(seed), offset_(offset), drift_(drift) {}

  Nanoseconds OffsetAt(TimePoint at) const {
    return offset_ + Nanoseconds(static_cast<Nanoseconds::rep>(
                         static_cast<double>(at.time_since_epoch().count()) * drift_));
  }
  Nanoseconds ControllerTime(TimePoint at) const { return at.time_since_epoch() + OffsetAt(at); }

  ClockProbe Probe(TimePoint sent) {
    const TimePoint arrived = sent + Delay();
    const TimePoint answered = arrived + microseconds(random_.Below(300));
    const TimePoint received = answered + Delay();
    return {.sent = sent,
            .controller_received = ControllerTime(arrived),
            .controller_sent = ControllerTime(answered),
            .received = received};
  }

 private:
  // Mostly 50 us to 1 ms; every fifth is held up for up to 100 ms, as idle servers of gRPC do.
  Nanoseconds Delay() {
    if (random_.Chance(0.2)) return milliseconds(1 + random_.Below(100));
    return microseconds(50 + random_.Below(950));
  }

  Random random_;
  Nanoseconds offset_;
  double drift_;
};

TEST(ClockSyncTest, TheTrueOffsetLiesWithinTheUncertainty) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SimulatedNetwork network(Seed{seed}, seconds(1'000'000) - seconds(seed * 20'000), 50e-6);
    ClockSync sync;
    EXPECT_FALSE(sync.Best(TimePoint(seconds(5))));
    TimePoint now(seconds(5));
    for (int i = 0; i < 8; ++i) {
      const ClockProbe probe = network.Probe(now);
      sync.Add(probe);
      now = probe.received + milliseconds(5);
    }
    for (const Nanoseconds later :
         {Nanoseconds(0), Nanoseconds(seconds(10)), Nanoseconds(seconds(60))}) {
      const ClockEstimate estimate = *sync.Best(now + later);
      const Nanoseconds error = estimate.offset - network.OffsetAt(now + later);
      EXPECT_LE(std::chrono::abs(error), estimate.uncertainty) << "seed " << seed;
    }
    EXPECT_LT(sync.Best(now)->uncertainty, milliseconds(2)) << "seed " << seed;
  }
}

TEST(ClockSyncTest, ImpossibleAnswersAreDroppedAndResetForgets) {
  ClockSync sync;
  sync.Add({.sent = TimePoint(seconds(2)),
            .controller_received = seconds(9),
            .controller_sent = seconds(8),
            .received = TimePoint(seconds(3))});
  sync.Add({.sent = TimePoint(seconds(3)),
            .controller_received = seconds(9),
            .controller_sent = seconds(9),
            .received = TimePoint(seconds(2))});
  EXPECT_FALSE(sync.Best(TimePoint(seconds(4))));
  sync.Add({.sent = TimePoint(seconds(2)),
            .controller_received = seconds(9),
            .controller_sent = seconds(9),
            .received = TimePoint(seconds(2) + milliseconds(2))});
  EXPECT_TRUE(sync.Best(TimePoint(seconds(4))));
  sync.Reset();
  EXPECT_FALSE(sync.Best(TimePoint(seconds(4))));
}

// --- reconnecting ---

TEST(ReconnectTest, AttemptsFallEvenlyIntoDoublingWindows) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    ReconnectWindows windows(Seed{seed});
    Nanoseconds at{0};
    Nanoseconds window_begin{0};
    Nanoseconds window = ReconnectWindows::kFirst;
    for (int i = 0; i < 10; ++i) {
      at += windows.Next();
      EXPECT_GE(at, window_begin);
      EXPECT_LT(at, window_begin + window);
      window_begin += window;
      window = std::min(window * 2, ReconnectWindows::kLongest);
    }
    windows.Reset(milliseconds(100));
    EXPECT_LT(windows.Next(), milliseconds(100));
  }
}

TEST(ReconnectTest, OnlyLoopbackNeedsNoCertificates) {
  for (const char* address :
       {"127.0.0.1:7481", "localhost:1", "[::1]:7481", "unix:/run/x", "127.9.9.9:1"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address :
       {"10.0.0.1:7481", "lab.example:7481", "0.0.0.0:1", "[::]:1", "127x.example:2",
        "127.example.org:7481", "127.0.0.1.example.org:7481", "128.0.0.1:1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

// --- gates ---

class GateTest : public testing::Test {
 protected:
  static constexpr TimePoint kNow{seconds(100)};
  const ClockEstimate clock_{
      .offset = seconds(50), .uncertainty = milliseconds(1), .round_trip = milliseconds(2)};

  v1::Arm Arm(std::uint64_t arming, Nanoseconds start_controller) const {
    v1::Arm arm;
    arm.set_gate_index(2);
    arm.set_arming(arming);
    arm.set_start_controller_mono_ns(start_controller.count());
    arm.set_uncertainty_max_ns(Nanoseconds(milliseconds(50)).count());
    return arm;
  }
  v1::Go Go(std::uint64_t arming) const {
    v1::Go go;
    go.set_gate_index(2);
    go.set_arming(arming);
    return go;
  }
  Gate gate_;
};

TEST_F(GateTest, StartsAtTheControllersInstantOnOurClock) {
  EXPECT_EQ(gate_.Arm(Arm(1, seconds(150) + milliseconds(200)), clock_, kNow).code, "NOT_AT_GATE");
  gate_.Reached(2);
  EXPECT_EQ(gate_.Arm(Arm(1, seconds(150) + milliseconds(200)), clock_, kNow).result,
            v1::COMMAND_RESULT_OK);
  EXPECT_EQ(gate_.armed_until(), kNow + milliseconds(200));
  EXPECT_EQ(gate_.Go(Go(1), kNow + milliseconds(100)), kNow + milliseconds(200));
  EXPECT_FALSE(gate_.Expire(kNow + seconds(1)));
}

TEST_F(GateTest, WithoutGoBeforeTheInstantItDisarmsOnce) {
  gate_.Reached(2);
  ASSERT_EQ(gate_.Arm(Arm(1, seconds(150) + milliseconds(200)), clock_, kNow).result,
            v1::COMMAND_RESULT_OK);
  EXPECT_FALSE(gate_.Expire(kNow + milliseconds(199)));
  EXPECT_TRUE(gate_.Expire(kNow + milliseconds(200)));
  EXPECT_FALSE(gate_.Expire(kNow + milliseconds(201)));
  EXPECT_FALSE(gate_.Go(Go(1), kNow + milliseconds(201)));
  EXPECT_EQ(gate_.Arm(Arm(2, seconds(151)), clock_, kNow).result, v1::COMMAND_RESULT_OK);
  EXPECT_TRUE(gate_.Go(Go(2), kNow + milliseconds(500)));
}

TEST_F(GateTest, RefusesWhatItCannotKeep) {
  gate_.Reached(2);
  EXPECT_EQ(gate_.Arm(Arm(1, seconds(151)), std::nullopt, kNow).code, "CLOCK_UNCERTAIN");
  ClockEstimate vague = clock_;
  vague.uncertainty = milliseconds(51);
  EXPECT_EQ(gate_.Arm(Arm(1, seconds(151)), vague, kNow).code, "CLOCK_UNCERTAIN");
  EXPECT_EQ(gate_.Arm(Arm(1, seconds(150)), clock_, kNow).code, "TOO_LATE");
  ASSERT_EQ(gate_.Arm(Arm(1, seconds(151)), clock_, kNow).result, v1::COMMAND_RESULT_OK);
  EXPECT_FALSE(gate_.Go(Go(7), kNow)) << "another arming";
  EXPECT_FALSE(gate_.Go(Go(1), kNow + seconds(1))) << "at the instant it is too late";
  gate_.Left();
  EXPECT_FALSE(gate_.Go(Go(1), kNow));
}

// --- journal ---

v1::AssignmentSpec Spec(const std::string& id, std::uint64_t epoch) {
  v1::AssignmentSpec spec;
  spec.set_assignment_id(id);
  spec.set_epoch(epoch);
  spec.set_run_id("run-1");
  return spec;
}

TEST(JournalTest, NeverAcceptsTheSameEpochTwiceNotEvenAfterItIsClosed) {
  TempDirectory temp;
  const std::filesystem::path file = temp.path() / "agent.db";
  {
    Result<Journal> journal = Journal::Open(file);
    ASSERT_TRUE(journal) << journal.error().ToString();
    EXPECT_EQ(*journal->NextIncarnation(), 1U);
    EXPECT_TRUE(journal->Accept(Spec("a", 5)));
    EXPECT_EQ(journal->Accept(Spec("a", 5)).error().code(), Errc::kAlreadyExists);
    EXPECT_EQ(journal->Accept(Spec("a", 4)).error().code(), Errc::kAlreadyExists);
    EXPECT_TRUE(journal->Accept(Spec("b", 4)));
    EXPECT_TRUE(journal->Start(Spec("a", 5), "boot"));
    EXPECT_TRUE(journal->Seal(Spec("a", 5), -7, 9));
    EXPECT_TRUE(journal->SetControllerEpoch(3));
    EXPECT_TRUE(journal->SetAgentId("st-01"));
  }
  Result<Journal> journal = Journal::Open(file);
  ASSERT_TRUE(journal) << journal.error().ToString();
  EXPECT_EQ(*journal->NextIncarnation(), 2U);
  EXPECT_EQ(*journal->ControllerEpoch(), 3U);
  EXPECT_EQ(*journal->AgentId(), "st-01");
  Result<std::vector<JournalRow>> held = journal->Held();
  ASSERT_TRUE(held);
  ASSERT_EQ(held->size(), 2U);
  EXPECT_EQ((*held)[0].spec.assignment_id(), "b");
  EXPECT_EQ((*held)[1].spec.epoch(), 5U);
  EXPECT_EQ((*held)[1].state, HeldState::kSealed);
  EXPECT_EQ((*held)[1].boot_id, "boot");
  EXPECT_EQ((*held)[1].clock_offset_ns, -7);
  EXPECT_EQ((*held)[1].clock_uncertainty_ns, 9);
  EXPECT_TRUE(journal->Close("a", 5));
  EXPECT_EQ(journal->Held()->size(), 1U);
  EXPECT_EQ(journal->Accept(Spec("a", 5)).error().code(), Errc::kAlreadyExists);
  EXPECT_TRUE(journal->Accept(Spec("a", 6)));
  EXPECT_EQ((*journal->Find("a"))->epoch, 6U);
  EXPECT_FALSE(*journal->Find("c"));
}

TEST(JournalTest, AnAgentThatHoldsTrialsDoesNotStartUnderAnotherName) {
  TempDirectory temp;
  Result<Journal> journal = Journal::Open(temp.path() / "agent.db");
  ASSERT_TRUE(journal) << journal.error().ToString();
  const Result<std::string> made = DecideAgentId(*journal, "");
  ASSERT_TRUE(made) << made.error().ToString();
  EXPECT_EQ(*DecideAgentId(*journal, ""), *made) << "made once";
  ASSERT_TRUE(journal->Accept(Spec("run/7/" + *made, 5)));
  const Result<std::string> renamed = DecideAgentId(*journal, "st-04");
  ASSERT_FALSE(renamed);
  EXPECT_NE(renamed.error().ToString().find("`name: " + *made + "`"), std::string::npos)
      << renamed.error().ToString();
  EXPECT_EQ(*DecideAgentId(*journal, *made), *made) << "what is held can still be reported";
  ASSERT_TRUE(journal->Close("run/7/" + *made, 5));
  EXPECT_EQ(*DecideAgentId(*journal, "st-04"), "st-04");
  ASSERT_TRUE(journal->Accept(Spec("run/8/st-04", 6)));
  EXPECT_FALSE(DecideAgentId(*journal, "st-05")) << "names are kept like made ids";
  EXPECT_EQ(*DecideAgentId(*journal, "st-04"), "st-04");
}

TEST(JournalTest, RefusesAFileOfANewerVersion) {
  TempDirectory temp;
  const std::filesystem::path file = temp.path() / "agent.db";
  ASSERT_TRUE(Journal::Open(file));
  ASSERT_EQ(
      std::system(("sqlite3 " + file.string() + " 'PRAGMA user_version=99' > /dev/null").c_str()),
      0);
  EXPECT_EQ(Journal::Open(file).error().code(), Errc::kUnsupported);
}

// --- what is sent ---

const spool::Identity kIdentity{.assignment_id = "run-1/0/st-01", .epoch = 7};

std::string Note(std::uint64_t seq, const std::string& text) {
  v1::EventRecord record;
  record.set_seq(seq);
  record.set_log(text);
  return record.SerializeAsString();
}

void AddResult(spool::SpoolWriter& writer) {
  v1::EventRecord record;
  record.set_seq(writer.next_seq());
  record.mutable_result()->mutable_measurement()->set_outcome(v1::OUTCOME_OK);
  ASSERT_TRUE(writer.Append(spool::RecordType::kResult, spool::Durability::kNow, 1,
                            record.SerializeAsString()));
}

std::vector<v1::EventRecord> Drain(SpoolTail& tail, bool clock_known) {
  std::vector<v1::EventRecord> records;
  EXPECT_TRUE(tail.Look());
  for (;;) {
    Result<std::optional<v1::Events>> batch = tail.Next([&](v1::AssignmentResult& result) {
      result.set_clock_offset_ns(42);
      return clock_known;
    });
    EXPECT_TRUE(batch);
    if (!batch || !*batch) return records;
    EXPECT_LE((*batch)->ByteSizeLong(), kBatchMax.size() + 200'000);
    records.insert(records.end(), (*batch)->records().begin(), (*batch)->records().end());
  }
}

TEST(SpoolTailTest, SendsInOrderAndAgainAfterALostConnection) {
  TempDirectory temp;
  Result<spool::SpoolWriter> writer = spool::SpoolWriter::Create(temp.path() / "s", kIdentity, {});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(writer->Append(spool::RecordType::kDetail, spool::Durability::kWithNext, 0,
                               Note(writer->next_seq(), std::string(100'000, 'x'))));
  }
  SpoolTail tail(temp.path() / "s", kIdentity);
  EXPECT_EQ(Drain(tail, true).size(), 10U);
  AddResult(*writer);
  EXPECT_TRUE(Drain(tail, true).empty()) << "a result that is not sealed is not durable";
  ASSERT_TRUE(writer->Seal());
  EXPECT_TRUE(Drain(tail, false).empty()) << "held back until the clock is known";
  std::vector<v1::EventRecord> last = Drain(tail, true);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].seq(), 11U);
  EXPECT_EQ(last[0].result().clock_offset_ns(), 42);
  EXPECT_TRUE(tail.sealed());

  tail.Acknowledge(4);
  tail.Rewind();
  std::vector<v1::EventRecord> again = Drain(tail, true);
  ASSERT_EQ(again.size(), 7U);
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].seq(), 5 + i);
  EXPECT_FALSE(tail.all_acknowledged());
  tail.Acknowledge(11);
  EXPECT_TRUE(tail.all_acknowledged());
}

TEST(SpoolTailTest, ALostRecordLeavesANoteAndNoGap) {
  TempDirectory temp;
  {
    Result<spool::SpoolWriter> writer =
        spool::SpoolWriter::Create(temp.path() / "s", kIdentity, {});
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(writer->Append(spool::RecordType::kDetail, spool::Durability::kWithNext, 0,
                                 Note(writer->next_seq(), "record " + std::to_string(i))));
    }
    AddResult(*writer);
    ASSERT_TRUE(writer->Seal());
  }
  const std::filesystem::path segment = spool::SegmentPath(temp.path() / "s", 1);
  Result<std::string> text = worker::ReadFile(segment, 1 << 20);
  text->at(text->find("record 2")) = 'R';
  ASSERT_TRUE(worker::WriteFile(segment, *text, false));
  SpoolTail tail(temp.path() / "s", kIdentity);
  const std::vector<v1::EventRecord> records = Drain(tail, true);
  ASSERT_EQ(records.size(), 6U);
  for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].seq(), i + 1);
  EXPECT_EQ(records[1].log(), "record 1");
  EXPECT_TRUE(records[2].log().starts_with("SPOOL_CORRUPT")) << records[2].log();
  EXPECT_TRUE(records[5].has_result());
}

// --- results of the dead ---

std::vector<v1::EventRecord> EventsUpTo(v1::PhaseKind last) {
  std::vector<v1::EventRecord> events;
  for (int phase = v1::PHASE_CLAIM; phase <= last; ++phase) {
    v1::EventRecord begun;
    begun.set_mono_ns(phase * 100);
    begun.set_phase_begun(static_cast<v1::PhaseKind>(phase));
    events.push_back(begun);
    if (phase == last) break;
    v1::EventRecord ended;
    ended.set_mono_ns(phase * 100 + 50);
    ended.mutable_phase()->set_phase(static_cast<v1::PhaseKind>(phase));
    ended.mutable_phase()->set_end(v1::PHASE_END_DONE);
    events.push_back(ended);
  }
  return events;
}

TEST(EndingTest, ACrashInMeasureNamesTheSignalAndKeepsFinishedSteps) {
  std::vector<v1::EventRecord> events = EventsUpTo(v1::PHASE_MEASURE);
  v1::EventRecord step;
  step.mutable_step_done()->set_step("create");
  events.insert(events.begin() + 8, step);
  const v1::AssignmentResult result = ResultOfDeadTrial(
      Spec("a", 1), "st-01", "host", {.how = "signal 9 (Killed)", .stop_reason = {}}, {}, events);
  EXPECT_EQ(result.measurement().outcome(), v1::OUTCOME_CRASHED);
  EXPECT_NE(result.measurement().reason().find("in measure"), std::string::npos)
      << result.measurement().reason();
  EXPECT_NE(result.measurement().reason().find("signal 9"), std::string::npos);
  EXPECT_EQ(result.environment_verdict().outcome(), v1::OUTCOME_OK);
  EXPECT_EQ(result.clean_up().outcome(), v1::OUTCOME_OK);
  ASSERT_EQ(result.steps_size(), 1);
  EXPECT_EQ(result.steps(0).step(), "create");
  ASSERT_EQ(result.phases_size(), 7);
  EXPECT_EQ(result.phases(6).end(), v1::PHASE_END_FAILED);
}

TEST(EndingTest, WhatTheStepsSaidIsCutToTheSizeOfAnyOtherResult) {
  std::vector<v1::EventRecord> events = EventsUpTo(v1::PHASE_MEASURE);
  constexpr int kSteps = 20;
  for (int number = 0; number < kSteps; ++number) {
    v1::StepResult& step = *events.emplace_back().mutable_step_done();
    step.set_step("step " + std::to_string(number));
    step.set_output_tail(std::string(64 << 10, 'x'));
  }
  const v1::AssignmentResult result = ResultOfDeadTrial(
      Spec("a", 1), "st-01", "host", {.how = "signal 9 (Killed)", .stop_reason = {}}, {}, events);
  EXPECT_LE(result.ByteSizeLong(), worker::kResultMax.size());
  EXPECT_EQ(result.steps_size(), kSteps);
  EXPECT_NE(result.measurement().reason().find("signal 9"), std::string::npos);
}

TEST(EndingTest, TheOutcomeSaysWhoWasToBlame) {
  const auto outcome = [](const WorkerEnd& end, v1::PhaseKind phase) {
    return ResultOfDeadTrial(Spec("a", 1), "st-01", "host", end, {.left = "still mounted"},
                             EventsUpTo(phase));
  };
  v1::AssignmentResult result = outcome({.how = "signal 11", .stop_reason = {}}, v1::PHASE_BUILD);
  EXPECT_EQ(result.environment_verdict().outcome(), v1::OUTCOME_CRASHED);
  EXPECT_EQ(result.clean_up().outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(result.clean_up().reason(), "still mounted");
  result = outcome({.how = "signal 9", .stop_reason = "run cancelled"}, v1::PHASE_MEASURE);
  EXPECT_EQ(result.measurement().outcome(), v1::OUTCOME_CANCELLED);
  EXPECT_TRUE(result.measurement().reason().starts_with("run cancelled"));
  result = outcome({.how = "signal 9", .stop_reason = {}, .timed_out = true}, v1::PHASE_VERIFY);
  EXPECT_EQ(result.measurement().outcome(), v1::OUTCOME_TIMED_OUT);
  result = outcome({.how = "x", .stop_reason = {}, .host_rebooted = true}, v1::PHASE_MEASURE);
  EXPECT_EQ(result.environment_verdict().outcome(), v1::OUTCOME_CRASHED);
  EXPECT_NE(result.measurement().reason().find("restarted"), std::string::npos);
  result = ResultOfDeadTrial(Spec("a", 1), "st-01", "host",
                             {.started = false, .how = "no space", .stop_reason = {}}, {}, {});
  EXPECT_EQ(result.measurement().outcome(), v1::OUTCOME_NOT_STARTED);
}

TEST(EndingTest, AResultThatWasWrittenAndNotSealedIsTheOneThatCounts) {
  TempDirectory temp;
  const worker::TrialFiles files(temp.path());
  {
    Result<spool::SpoolWriter> writer = spool::SpoolWriter::Create(files.spool(), kIdentity, {});
    AddResult(*writer);
  }
  const v1::AssignmentSpec spec = Spec(kIdentity.assignment_id, kIdentity.epoch);
  ASSERT_TRUE(
      EndSpool(files, spec, "st-01", "host", {.how = "signal 9 (Killed)", .stop_reason = {}}, {}));
  SpoolTail tail(files.spool(), kIdentity);
  const std::vector<v1::EventRecord> records = Drain(tail, true);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].result().measurement().outcome(), v1::OUTCOME_OK);
  EXPECT_TRUE(tail.sealed());
}

TEST(EndingTest, TheSpoolOfADeadWorkerIsEndedOnceOnly) {
  TempDirectory temp;
  const worker::TrialFiles files(temp.path());
  {
    Result<spool::SpoolWriter> writer = spool::SpoolWriter::Create(files.spool(), kIdentity, {});
    for (const v1::EventRecord& event : EventsUpTo(v1::PHASE_MEASURE)) {
      v1::EventRecord numbered = event;
      numbered.set_seq(writer->next_seq());
      ASSERT_TRUE(writer->Append(spool::RecordType::kState, spool::Durability::kNow,
                                 event.mono_ns(), numbered.SerializeAsString()));
    }
  }
  v1::AssignmentSpec spec = Spec(kIdentity.assignment_id, kIdentity.epoch);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(EndSpool(files, spec, "st-01", "host",
                         {.how = "signal 9 (Killed)", .stop_reason = {}}, {}));
  }
  SpoolTail tail(files.spool(), kIdentity);
  const std::vector<v1::EventRecord> records = Drain(tail, true);
  ASSERT_EQ(records.size(), 14U);
  EXPECT_EQ(records.back().result().measurement().outcome(), v1::OUTCOME_CRASHED);
  EXPECT_TRUE(tail.sealed());
}

TEST(EndingTest, NothingIsWrittenBesideALivingWorkerUnlessItHangsForGood) {
  TempDirectory temp;
  const worker::TrialFiles files(temp.path());
  std::filesystem::create_directories(files.directory());
  const v1::AssignmentSpec spec = Spec(kIdentity.assignment_id, kIdentity.epoch);
  const Result<Descriptor> worker = files.Lock();
  ASSERT_TRUE(worker);
  WorkerEnd end{.how = "killed", .stop_reason = {}};
  EXPECT_EQ(EndSpool(files, spec, "st-01", "host", end, {}).error().code(), Errc::kBusy);
  EXPECT_FALSE(std::filesystem::exists(files.spool()));
  end.unkillable = true;
  EXPECT_TRUE(EndSpool(files, spec, "st-01", "host", end, {}));
}

// --- what is told ---

TEST(InventoryTest, FreeSpaceIsToldAgainWhenItHasMoved) {
  v1::Inventory told;
  v1::LentDisk& disk = *told.add_disks();
  disk.set_capacity_bytes(1000);
  disk.set_free_bytes(400);
  v1::Inventory found = told;
  EXPECT_FALSE(IsNews(told, found));
  found.mutable_disks(0)->set_free_bytes(390);
  EXPECT_FALSE(IsNews(told, found)) << "a little is no news";
  for (const std::uint64_t free : {300U, 900U, 0U}) {
    found.mutable_disks(0)->set_free_bytes(free);
    EXPECT_TRUE(IsNews(told, found)) << free;
    EXPECT_TRUE(IsNews(found, told)) << free;
  }
  found = told;
  found.set_host_name("other");
  EXPECT_TRUE(IsNews(told, found));
}

TEST(TrialClockTest, CoversEveryStepAndIsThereForTheNextAgent) {
  TempDirectory temp;
  TrialClock clock(temp.path() / "clock");
  clock.Load();
  EXPECT_FALSE(clock.figures());
  clock.Take({.offset = Nanoseconds(1000), .uncertainty = Nanoseconds(50), .round_trip = {}}, 7);
  EXPECT_EQ(clock.figures()->offset, Nanoseconds(1000));
  EXPECT_EQ(clock.figures()->uncertainty, Nanoseconds(50));
  clock.Take({.offset = Nanoseconds(1300), .uncertainty = Nanoseconds(20), .round_trip = {}}, 7);
  TrialClock next(temp.path() / "clock");
  next.Load();
  EXPECT_EQ(next.figures()->offset, Nanoseconds(1300));
  EXPECT_EQ(next.figures()->uncertainty, Nanoseconds(350)) << "300 away, known within 50";
  next.Take({.offset = Nanoseconds(1), .uncertainty = Nanoseconds(1), .round_trip = {}}, 8);
  EXPECT_EQ(next.figures()->uncertainty, kUncertaintyUnknown) << "another controller's clock";
}

// --- processes ---

// A process that does nothing for a minute.
class Sleeper {
 public:
  explicit Sleeper(const std::string& mark = "") {
    exec::Command command;
    command.words = {"/bin/sleep", "60"};
    if (!mark.empty()) command.environment[exec::kTrialMark] = mark;
    child_ = exec::Child::Spawn(command, {.new_session = true}).value();
  }
  ~Sleeper() {
    std::ignore = child_->KillGroup();
    std::ignore = child_->WaitUntil(MonotonicClock().Now() + seconds(5));
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t pid() const { return child_->pid(); }
  bool lives() const { return !child_->HasEnded(); }

 private:
  std::optional<exec::Child> child_;
};

using Holder = WorkerProcess::Holder;

TEST(WorkerProcessTest, WhoUndoesIsNotTakenForTheWorker) {
  TempDirectory temp;
  const worker::TrialFiles files(temp.path());
  EXPECT_EQ(WorkerProcess::FindHolder(files).value(), Holder::kNobody);
  const Result<Descriptor> lock = files.Lock();
  EXPECT_EQ(WorkerProcess::FindHolder(files).value(), Holder::kWorker) << "it has not said yet";
  ASSERT_TRUE(files.WriteHolder(/*undoes=*/true));
  EXPECT_EQ(WorkerProcess::FindHolder(files).value(), Holder::kUndo);
  EXPECT_TRUE(WorkerProcess::Found(files).Poll()) << "the worker has ended";
  ASSERT_TRUE(files.WriteHolder(/*undoes=*/false));
  EXPECT_EQ(WorkerProcess::FindHolder(files).value(), Holder::kWorker);
  EXPECT_FALSE(WorkerProcess::Found(files).Poll());
}

TEST(WorkerProcessTest, WhoHasGotTheNumberOfADeadWorkerIsNeverSignalled) {
  TempDirectory temp;
  const worker::TrialFiles files(temp.path());
  const Sleeper stranger;
  const Result<Descriptor> lock = files.Lock();
  const std::string number = std::to_string(stranger.pid());
  ASSERT_TRUE(worker::WriteFile(files.pid(), number + " 1 worker\n", false));
  WorkerProcess found = WorkerProcess::Found(files);
  EXPECT_FALSE(found.Poll());
  found.Terminate();
  found.Kill();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(stranger.lives());
  const std::uint64_t ticks = exec::ReadProcess(stranger.pid())->start_ticks;
  ASSERT_TRUE(
      worker::WriteFile(files.pid(), number + " " + std::to_string(ticks) + " worker\n", false));
  WorkerProcess same = WorkerProcess::Found(files);
  EXPECT_FALSE(same.Poll());
  same.Kill();
  for (int i = 0; i < 200 && stranger.lives(); ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(stranger.lives()) << "the one that it is";
}

TEST(WorkerProcessTest, ALockThatCannotBeLookedAtIsNoDeath) {
  TempDirectory temp;
  const worker::TrialFiles files(temp.path());
  std::filesystem::create_directory(files.lock());
  EXPECT_FALSE(WorkerProcess::FindHolder(files));
  EXPECT_FALSE(WorkerProcess::Found(files).Poll());
}

// Two agents of one host may have a trial of the same name.
TEST(WorkerProcessTest, KillingATrialDoesNotReachAnotherAgentsOfTheSameName) {
  TempDirectory temp;
  std::ofstream(temp.path() / "worker") << "#!/bin/sh\nexec env -i sleep 60\n";
  std::filesystem::permissions(temp.path() / "worker", std::filesystem::perms::owner_all);
  std::vector<worker::TrialFiles> trials;
  std::vector<WorkerProcess> processes;
  for (const char* state : {"a", "b"}) {
    trials.emplace_back(temp.path() / state / "trial.1");
    std::filesystem::create_directories(trials.back().directory());
    processes.push_back(WorkerProcess::Start(temp.path() / "worker", trials.back(), true).value());
  }
  KillTrial(trials[0]);
  const bool has_cgroup = std::filesystem::exists(trials[0].cgroup());
  if (has_cgroup) {
    std::optional<WorkerProcess::End> end;
    for (int i = 0; i < 500 && !end; ++i) {
      end = processes[0].Poll();
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_TRUE(end);
  }
  EXPECT_FALSE(processes[1].Poll());
  for (std::size_t i = 0; i < 2; ++i) {
    processes[i].Kill();
    for (int wait = 0; wait < 500 && !processes[i].Poll(); ++wait) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    RemoveCgroup(trials[i]);
  }
}

class TrialCleanerTest : public testing::Test {
 protected:
  // What undoes: a script that succeeds once `cured` is there.
  TrialCleanerTest() {
    std::ofstream(program_) << "#!/bin/sh\necho x >> " << (temp_.path() / "undone").string()
                            << "\n[ -e " << cured_.string() << " ] || exit 1\n: > $2/undo.log\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
    std::filesystem::create_directory(files_.directory());
    std::ofstream(files_.undo_log()) << "a step\n";
  }
  // Until it waits for its next attempt, or is clean.
  void StepThrough(TrialCleaner& cleaner) {
    const std::uintmax_t before = Undone();
    for (int i = 0; i < 500 && !cleaner.clean(); ++i) {
      cleaner.Step(now_);
      if (Undone() > before && cleaner.poll_fd() < 0) return;
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  std::uintmax_t Undone() const {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(temp_.path() / "undone", error);
    return error ? 0 : size / 2;
  }

  TempDirectory temp_;
  const std::filesystem::path program_ = temp_.path() / "undo";
  const std::filesystem::path cured_ = temp_.path() / "cured";
  const worker::TrialFiles files_{temp_.path() / "trial.1"};
  TimePoint now_ = TimePoint(seconds(1000));
};

TEST_F(TrialCleanerTest, TriesUntilItIsCleanAndKeepsTheUndoLogUntilThen) {
  TrialCleaner cleaner(files_, program_, seconds(10));
  cleaner.Begin(now_, TrialCleaner::Processes::kMaybe);
  for (int attempt = 1; attempt <= kCleanAttemptsMax + 2; ++attempt) {
    StepThrough(cleaner);
    EXPECT_EQ(Undone(), static_cast<std::uintmax_t>(attempt));
    EXPECT_EQ(cleaner.given_up(), attempt >= kCleanAttemptsMax);
    EXPECT_NE(cleaner.left().find("exit code 1"), std::string::npos) << cleaner.left();
    EXPECT_GT(cleaner.next_step(), now_) << "not at every wake-up";
    EXPECT_GT(std::filesystem::file_size(files_.undo_log()), 0U);
    now_ = cleaner.next_step();
  }
  std::ofstream(cured_) << "";
  StepThrough(cleaner);
  EXPECT_TRUE(cleaner.clean());
  EXPECT_FALSE(cleaner.given_up());
  EXPECT_EQ(cleaner.left(), "");
}

TEST_F(TrialCleanerTest, WhatTheTrialLeftRunningIsKilledBeforeAnythingIsUndone) {
  std::ofstream(cured_) << "";
  const Sleeper daemon(files_.mark());
  const Sleeper other(files_.mark() + "0");
  TrialCleaner cleaner(files_, program_, seconds(10));
  cleaner.Begin(now_, TrialCleaner::Processes::kMaybe);
  StepThrough(cleaner);
  EXPECT_TRUE(cleaner.clean());
  EXPECT_FALSE(daemon.lives());
  EXPECT_TRUE(other.lives()) << "another trial's";
}

TEST_F(TrialCleanerTest, NothingIsUndoneUnderALivingWorker) {
  std::ofstream(cured_) << "";
  const Sleeper child(files_.mark());
  Result<Descriptor> lock = files_.Lock();
  TrialCleaner cleaner(files_, program_, seconds(10));
  cleaner.Begin(now_, TrialCleaner::Processes::kMaybe);
  cleaner.Step(now_);
  EXPECT_FALSE(cleaner.clean());
  EXPECT_TRUE(child.lives());
  EXPECT_EQ(Undone(), 0U);
  lock->Close();
  now_ = cleaner.next_step();
  StepThrough(cleaner);
  EXPECT_TRUE(cleaner.clean());
}

TEST_F(TrialCleanerTest, AnUndoThatHangsIsKilledAtItsLimit) {
  std::ofstream(program_) << "#!/bin/sh\nexec sleep 60\n";
  TrialCleaner cleaner(files_, program_, seconds(10));
  cleaner.Begin(now_, TrialCleaner::Processes::kMaybe);
  cleaner.Step(now_);
  ASSERT_GE(cleaner.poll_fd(), 0);
  now_ += seconds(10) + kUndoGrace;
  for (int i = 0; i < 500 && cleaner.poll_fd() >= 0; ++i) {
    cleaner.Step(now_);
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_LT(cleaner.poll_fd(), 0);
  EXPECT_NE(cleaner.left().find("signal 9"), std::string::npos) << cleaner.left();
}

}  // namespace
}  // namespace labrack::session
