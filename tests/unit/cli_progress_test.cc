// Goal: the live view shows what matters in a fixed height and never more than the width, and never
// a figure that was not measured; the plain view has one line a change and nothing that moves a
// cursor. Method: fleets made by hand at fixed instants; the pictures as golden files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/cli/client.h"
#include "controller/cli/json_lines.h"
#include "controller/cli/live_view.h"
#include "controller/cli/plain_view.h"
#include "controller/cli/progress.h"
#include "tests/unit/golden.h"

namespace labrack::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

const TimePoint kStart = TimePoint(1000s);

v1::RunEvent RunningEvent() {
  v1::RunEvent event;
  event.set_wall_ns(1'796'040'301'000'000'000);
  v1::RunSummary& run = *event.mutable_summary();
  run.set_run_id("r-7f3a");
  run.set_playbook_name("pool-vs-xfs");
  run.set_state(v1::RUN_STATE_RUNNING);
  run.set_trials_total(12);
  run.set_trials_done(5);
  run.set_trials_valid(4);
  run.set_current_trial(5);
  run.set_current_cell("pool/pages");
  run.set_eta_ns(21LL * 60 * 1'000'000'000);
  run.set_exit_code(-1);
  return event;
}

v1::HostProgress* AddHost(v1::RunEvent& event, const std::string& id, double operations,
                          std::int64_t p99_ns) {
  v1::HostProgress* host = event.add_hosts();
  host->set_agent_id(id);
  host->set_host_name(id);
  host->set_session_state("ONLINE");
  host->set_age_ns(400'000'000);
  v1::AssignmentProgress& progress = *host->mutable_progress();
  progress.set_phase(v1::PHASE_MEASURE);
  progress.set_fraction(0.63);
  progress.set_operations_per_second(operations);
  progress.set_bytes_per_second(operations * 4096);
  progress.set_p50_ns(p99_ns / 4);
  progress.set_p99_ns(p99_ns);
  progress.set_phase_elapsed_ns(38'000'000'000);
  progress.set_phase_total_ns(60'000'000'000);
  return host;
}

void AddTrial(v1::RunEvent& event, std::uint32_t index, const std::string& cell,
              const std::string& state) {
  v1::TrialSummary* trial = event.add_trials();
  trial->set_index(index);
  trial->set_cell_name(cell);
  trial->set_state(state);
  trial->set_host_count(8);
  if (state == "valid") {
    trial->set_start_skew_ns(1'800'000);
    trial->set_overlap(0.996);
  }
  if (state == "lost") trial->set_reason("st-04 went away");
}

void AddTrials(v1::RunEvent& event) {
  const char* states[] = {"valid", "valid", "valid", "lost", "valid", "running"};
  for (std::uint32_t i = 0; i < 12; ++i) {
    AddTrial(event, i, i % 2 == 0 ? "xfs/pages" : "pool/pages", i < 6 ? states[i] : "planned");
  }
}

// Eight hosts of which one is slow, one still lays out, one is silent and one has old data.
RunState EightHosts() {
  v1::RunEvent event = RunningEvent();
  AddTrials(event);
  for (int i = 1; i <= 8; ++i) {
    AddHost(event, fmt::format("st-{:02}", i), 96'000 + i * 300, 1'500'000 + i * 1000);
  }
  event.mutable_hosts(3)->mutable_progress()->set_p99_ns(4'812'000);
  event.mutable_hosts(3)->mutable_progress()->set_operations_per_second(71'204);
  event.mutable_hosts(6)->mutable_progress()->Clear();
  event.mutable_hosts(6)->mutable_progress()->set_phase(v1::PHASE_LAY_OUT);
  event.mutable_hosts(6)->mutable_progress()->set_fraction(-1);
  event.mutable_hosts(1)->set_session_state("OFFLINE");
  event.mutable_hosts(1)->set_age_ns(65'000'000'000);
  event.mutable_hosts(4)->set_age_ns(7'000'000'000);
  RunState state;
  for (int second = 60; second >= 0; second -= 3) {
    event.mutable_hosts(3)->mutable_progress()->set_p99_ns(second % 18 == 0 ? 4'812'000
                                                                            : 1'900'000);
    state.Apply(event, kStart - std::chrono::seconds(second));
  }
  return state;
}

std::string Picture(const RunState& state, std::size_t columns, std::size_t rows,
                    bool utf8 = false) {
  return Paint(LiveLines(state, kStart,
                         {.size = {.columns = columns, .rows = rows},
                          .utf8 = utf8,
                          .hint = "Ctrl-C cancels and cleans up"}),
               false);
}

std::vector<std::string> LinesOf(const std::string& picture) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = picture.find('\n'); end != std::string::npos;
       end = picture.find('\n', begin)) {
    lines.push_back(picture.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST(CliLiveViewTest, EightHostsAt100Columns) {
  ExpectGolden("live_8_hosts_100.txt", Picture(EightHosts(), 120, 30));
}

TEST(CliLiveViewTest, EightHostsAt80Columns) {
  ExpectGolden("live_8_hosts_80.txt", Picture(EightHosts(), 80, 30));
}

TEST(CliLiveViewTest, BlockCharactersOnlyWhereTheLocaleHasThem) {
  ExpectGolden("live_8_hosts_utf8.txt", Picture(EightHosts(), 100, 30, true));
}

TEST(CliLiveViewTest, WithoutHosts) {
  RunState state;
  v1::RunEvent event = RunningEvent();
  event.mutable_summary()->set_state(v1::RUN_STATE_PENDING);
  event.mutable_summary()->clear_eta_ns();
  state.Apply(event, kStart);
  ExpectGolden("live_no_hosts.txt", Picture(state, 100, 30));
}

TEST(CliLiveViewTest, AnEndedRunShowsNoHostsAnyMore) {
  v1::RunEvent event = RunningEvent();
  AddTrials(event);
  AddHost(event, "st-01", 1000, 1'000'000);
  event.mutable_summary()->set_state(v1::RUN_STATE_CANCELLED);
  event.mutable_summary()->clear_eta_ns();
  RunState state;
  state.Apply(event, kStart);
  EXPECT_EQ(Picture(state, 100, 30),
            "r-7f3a pool-vs-xfs  cancelled\n"
            "TRIALS  xfs ###  pool #x>   left 7 of 12   last: trial 5 xfs/pages valid\n"
            "Ctrl-C cancels and cleans up\n");
}

TEST(CliLiveViewTest, WhatWasMeasuredBeforeIsNoSampleOfLaterPhases) {
  v1::RunEvent event = RunningEvent();
  AddHost(event, "st-01", 0, 1'000'000)->mutable_progress()->set_phase(v1::PHASE_TEAR_DOWN);
  RunState state;
  state.Apply(event, kStart);
  EXPECT_FALSE(state.hosts().at("st-01").has_sample());
}

TEST(CliLiveViewTest, FiveHundredHostsAreNoHigherThanEight) {
  v1::RunEvent event = RunningEvent();
  AddTrials(event);
  for (int i = 1; i <= 500; ++i) {
    AddHost(event, fmt::format("st-{:03}", i), 96'000 + i, 1'500'000 + i * 100);
  }
  RunState state;
  state.Apply(event, kStart);
  ExpectGolden("live_500_hosts.txt", Picture(state, 100, 30));
}

TEST(CliLiveViewTest, NeverWiderOrHigherThanTheTerminal) {
  v1::RunEvent event = RunningEvent();
  event.mutable_summary()->set_playbook_name(std::string(200, 'x'));
  AddTrials(event);
  for (int i = 1; i <= 60; ++i) {
    AddHost(event, fmt::format("a-very-long-host-name-{:03}", i), 96'000, 1'500'000)
        ->set_session_state("OFFLINE");
  }
  RunState state;
  state.Apply(event, kStart);
  for (const std::size_t columns : {20U, 79U, 80U, 100U, 250U}) {
    for (const std::size_t rows : {2U, 5U, 8U, 24U, 100U}) {
      const std::vector<std::string> lines = LinesOf(Picture(state, columns, rows));
      EXPECT_LT(lines.size(), rows);
      EXPECT_LE(lines.size(), 14U);
      for (const std::string& line : lines) {
        EXPECT_LE(line.size(), std::min<std::size_t>(columns, 100)) << line;
      }
    }
  }
}

TEST(CliLiveViewTest, NamesFromOtherMachinesCannotMoveTheCursor) {
  v1::RunEvent event = RunningEvent();
  AddHost(event, "evil\033[2J", 1, 1000);
  RunState state;
  state.Apply(event, kStart);
  EXPECT_THAT(Picture(state, 100, 30), Not(HasSubstr("\033")));
}

TEST(CliLiveViewTest, WithoutASampleThereIsADashAndNoZero) {
  v1::RunEvent event = RunningEvent();
  AddHost(event, "st-01", 0, 0)->mutable_progress()->set_bytes_per_second(0);
  RunState state;
  state.Apply(event, kStart);
  const std::vector<std::string> lines = LinesOf(Picture(state, 100, 30));
  ASSERT_GE(lines.size(), 4U);
  EXPECT_THAT(lines[3], ::testing::MatchesRegex("st-01  measure +- +- +- +-"));
  EXPECT_THAT(lines[1], Not(HasSubstr("op/s")));
}

TEST(CliPlainViewTest, OneLinePerChangeAndNothingElse) {
  RunState before;
  RunState after;
  v1::RunEvent event = RunningEvent();
  AddTrial(event, 0, "xfs/pages", "planned");
  AddTrial(event, 1, "pool/pages", "running");
  after.Apply(event, kStart);
  EXPECT_THAT(PlainLines(before, after, event, "12:05:01"),
              ElementsAre("12:05:01 r-7f3a trial=2 cell=pool/pages state=running",
                          "12:05:01 r-7f3a state=running trials=5/12 valid=4"));

  before = after;
  after.Apply(event, kStart);
  EXPECT_THAT(PlainLines(before, after, event, "12:05:02"), IsEmpty());

  before = after;
  event.clear_trials();
  AddTrial(event, 1, "pool/pages", "valid");
  AddHost(event, "st-01", 100, 1'900'000)->set_session_state("SUSPECT");
  event.set_note("trial 2 done\rfaked line\nanother note\n");
  after.Apply(event, kStart);
  EXPECT_THAT(PlainLines(before, after, event, "12:05:03"),
              ElementsAre("12:05:03 r-7f3a note=\"trial 2 done?faked line\"",
                          "12:05:03 r-7f3a note=\"another note\"",
                          "12:05:03 r-7f3a trial=2 cell=pool/pages state=valid skew_ms=1.80 "
                          "overlap=0.9960",
                          "12:05:03 r-7f3a host=st-01 session=SUSPECT"));
}

TEST(CliPlainViewTest, AStreamThatBeginsAgainIsNoNews) {
  RunState state;
  v1::RunEvent event = RunningEvent();
  AddTrial(event, 1, "pool/pages", "valid");
  state.Apply(event, kStart);
  v1::RunEvent again = RunningEvent();
  AddTrial(again, 1, "pool/pages", "running");
  EXPECT_THAT(PlainLines(state, state, again, "12:05:01"), IsEmpty());
  state.Apply(again, kStart);
  EXPECT_EQ(state.trials().at(1).state(), "valid");
}

TEST(CliPlainViewTest, TheHeartbeatHasTheWorstP99AndOnlyFreshSamples) {
  v1::RunEvent event = RunningEvent();
  AddHost(event, "st-01", 1000, 1'900'000);
  AddHost(event, "st-02", 2000, 1'000'000);
  AddHost(event, "st-03", 4000, 9'000'000)->set_age_ns(60'000'000'000);
  RunState state;
  state.Apply(event, kStart);
  EXPECT_EQ(PlainHeartbeat(state, kStart, "12:05:01"),
            "12:05:01 r-7f3a progress trial=6/12 pct=41 cell=pool/pages ops=3000 p99_ms=1.9 "
            "hosts=3/3 eta_s=1260");
}

TEST(CliJsonViewTest, AHostWithoutASampleHasNoFigures) {
  v1::RunEvent event = RunningEvent();
  AddHost(event, "st-01", 0, 0);
  const std::string line = JsonEventLine(event);
  EXPECT_THAT(line, Not(HasSubstr("operations_per_second")));
  EXPECT_THAT(line, HasSubstr("\"phase\":\"measure\""));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  EXPECT_THAT(JsonVersionLine(), HasSubstr("\"type\":\"version\""));
}

TEST(CliJsonViewTest, EveryObjectSaysItsType) {
  EXPECT_EQ(JsonTextLine("note", "a \"word\"\n"), R"({"text":"a \"word\"\n","type":"note"})");
  EXPECT_EQ(JsonErrorLine(Error(Errc::kBusy, "/x", "held"), "/x: held", ExitCode::kLabFailed, ""),
            R"({"error":"busy","exit_code":5,"subject":"/x","text":"/x: held","type":"error"})");
  config::Problem problem;
  problem.code = "LR203";
  problem.message = "unknown field `\xff`";  // bytes that are no UTF-8 are shown as such
  problem.file = "bad.yaml";
  problem.span = {.begin = {2, 1}, .end = {2, 7}};
  problem.helps = {"remove it"};
  EXPECT_EQ(
      JsonProblemLine(problem),
      "{\"code\":\"LR203\",\"column\":1,\"end_column\":7,\"end_line\":2,\"file\":\"bad.yaml\","
      "\"helps\":[\"remove it\"],\"line\":2,\"message\":\"unknown field `\xef\xbf\xbd`\","
      "\"type\":\"problem\"}");
  EXPECT_EQ(JsonEndLine(ExitCode::kPlaybookInvalid),
            R"({"exit_code":3,"meaning":"playbook invalid","type":"end"})");
}

TEST(CliTerminalTest, NoColorBeatsForceColorAndOptionBeatsBoth) {
  EXPECT_TRUE(ChooseColour({}, "auto", true));
  EXPECT_FALSE(ChooseColour({}, "auto", false));
  EXPECT_FALSE(ChooseColour({{"NO_COLOR", "1"}, {"FORCE_COLOR", "1"}}, "auto", true));
  EXPECT_TRUE(ChooseColour({{"NO_COLOR", ""}}, "auto", true));
  EXPECT_TRUE(ChooseColour({{"CLICOLOR_FORCE", "1"}, {"CLICOLOR", "0"}}, "auto", false));
  EXPECT_FALSE(ChooseColour({{"CLICOLOR", "0"}}, "auto", true));
  EXPECT_FALSE(ChooseColour({{"TERM", "dumb"}}, "auto", true));
  EXPECT_TRUE(ChooseColour({{"NO_COLOR", "1"}}, "always", false));
  EXPECT_FALSE(ChooseColour({{"FORCE_COLOR", "1"}}, "never", true));
}

TEST(CliTerminalTest, TheLiveViewNeedsATerminalThatMovesItsCursor) {
  EXPECT_EQ(ChooseProgress("auto", {.error = true}), ProgressKind::kLive);
  EXPECT_EQ(ChooseProgress("auto", {.error = true, .dumb = true}), ProgressKind::kPlain);
  EXPECT_EQ(ChooseProgress("auto", {}), ProgressKind::kPlain);
  EXPECT_EQ(ChooseProgress("live", {}), ProgressKind::kLive);
  EXPECT_EQ(ChooseProgress("none", {.error = true}), ProgressKind::kNone);
}

TEST(CliExitCodeTest, EveryErrorHasItsCode) {
  EXPECT_EQ(ExitCodeOf(Error(Errc::kNotFound)), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kInvalidArgument)), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kPermissionDenied)), ExitCode::kNotAuthorised);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kRefusedBySafety)), ExitCode::kRefusedBySafety);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kCancelled)), ExitCode::kCancelled);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kUnavailable)), ExitCode::kLabFailed);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kBusy)), ExitCode::kLabFailed);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kTimedOut)), ExitCode::kLabFailed);
  EXPECT_EQ(ExitCodeOf(Error(Errc::kInternal)), ExitCode::kLabFailed);
}

}  // namespace
}  // namespace labrack::cli
