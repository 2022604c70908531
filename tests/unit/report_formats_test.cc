// Goal: every printed form says what the report says, in a shape that its readers accept. Method:
// one made-up run through all forms against golden files; xmllint, promtool and a validator of the
// published JSON schema as readers; hostile names; the empty and the one-sided cases.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "controller/compare/report.h"
#include "controller/report/export.h"
#include "controller/report/json.h"
#include "controller/report/junit.h"
#include "controller/report/markdown.h"
#include "controller/report/row_text.h"
#include "controller/report/terminal.h"
#include "tests/unit/golden.h"
#include "tests/unit/json_schema.h"
#include "tests/unit/noise.h"
#include "tests/unit/run_record_builder.h"

namespace labrack::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

struct Rates {
  double pages = 0;
  double copy = 0;
  double untar = 0;
  double latency_ns = 0;
};

RunRecordBuilder CopyDay(std::uint32_t trials = 6) {
  RunRecordBuilder run("copy-day");
  run.AddHost("st-01");
  run.AddHost("st-02");
  const std::vector<std::pair<std::string, Rates>> stacks = {
      {"ext4", {.pages = 4100, .copy = 9.8e8, .untar = 41.3, .latency_ns = 230'000}},
      {"xfs", {.pages = 5371, .copy = 9.81e8, .untar = 33.0, .latency_ns = 248'000}},
      {"btrfs", {.pages = 1200, .copy = 9.7e8, .untar = 44.0, .latency_ns = 900'000}}};
  for (const auto& [name, rates] : stacks) {
    run.AddCell(name, RunRecordBuilder::SyncPages("pages"), {RunRecordBuilder::PagesStep()},
                "block=4KiB");
    run.AddCell(name, RunRecordBuilder::Copy("copy"), {RunRecordBuilder::CopyStep()});
    run.AddCell(name, RunRecordBuilder::Exec("untar"), {RunRecordBuilder::ExecStep()});
  }
  Random random(Seed{3});
  for (std::uint32_t repeat = 0; repeat < trials; ++repeat) {
    for (std::uint32_t stack = 0; stack < 3; ++stack) {
      const Rates& rates = stacks[stack].second;
      const auto noisy = [&](double rate, double noise) {
        return rate * std::exp(noise * StandardNormal(random));
      };
      run.AddTrial({.cell = 3 * stack,
                    .repeat = repeat,
                    .rate = noisy(rates.pages, 0.02),
                    .latency_ns = noisy(rates.latency_ns, 0.04)});
      run.AddTrial({.cell = 3 * stack + 1, .repeat = repeat, .rate = noisy(rates.copy, 0.008)});
      run.AddTrial({.cell = 3 * stack + 2, .repeat = repeat, .rate = noisy(rates.untar, 0.03)});
    }
  }
  return run;
}

v1::RunRecord WholeRun() {
  RunRecordBuilder run = CopyDay();
  v1::Gate& faster = *run.playbook().add_gates();
  faster.set_faster("xfs");
  faster.set_than("ext4");
  faster.set_on("pages");
  faster.set_by(1.2);
  v1::Gate& latency = *run.playbook().add_gates();
  latency.set_latency("btrfs");
  latency.set_on("pages");
  latency.set_below(2'000'000);
  run.playbook().add_gates()->set_verified(v1::GATE_VERIFIED_ALL);
  v1::TrialRecord& lost = *run.record().mutable_trials(13);
  lost.mutable_assignments(1)->clear_result();
  lost.mutable_assignments(1)->set_reason("st-02 was silent for 15 min");
  v1::Warning& warning =
      *run.record().mutable_trials(0)->mutable_assignments(0)->mutable_result()->add_warnings();
  warning.set_code("LW101");
  warning.set_message("the file is smaller than memory");
  warning.set_cure("a larger `file:`");
  return run.Build();
}

// A finer run: one trial a cell with two steps, figures and a failed operation, for the exports.
v1::RunRecord SmallRun() {
  RunRecordBuilder run("small");
  run.AddHost("st-01");
  const std::uint32_t files = run.AddCell(
      "ext4", RunRecordBuilder::SyncPages("files"),
      {{.step = "create", .operation = "create"}, {.step = "read", .operation = "read"}});
  const std::uint32_t exec =
      run.AddCell("ext4", RunRecordBuilder::Exec("untar"), {RunRecordBuilder::ExecStep()});
  run.AddTrial({.cell = files, .repeat = 0, .rate = 1000});
  v1::TrialRecord& failed = run.AddTrial({.cell = files, .repeat = 1, .rate = 1000});
  v1::StepResult& step = *failed.mutable_assignments(0)->mutable_result()->mutable_steps(0);
  step.mutable_operations(0)->set_error_count(3);
  step.mutable_operations(0)->set_first_error("open \"/t/f\", no space");
  v1::TrialRecord& timed = run.AddTrial({.cell = exec, .repeat = 0, .rate = 12.5});
  v1::Figure& figure =
      *timed.mutable_assignments(0)->mutable_result()->mutable_steps(0)->add_figures();
  figure.set_name("speed");
  figure.set_value(123.5);
  figure.set_unit("MB/s");
  return run.Build();
}

class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text) {
    directory_ = ::testing::TempDir() + "labrack-report-XXXXXX";
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/" + name;
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove_all(directory_); }
  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  std::string path_;
};

bool Installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

std::size_t LongestLine(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, ColumnsOf(line));
  return longest;
}

TEST(ReportFormatsTest, TheTableIsAsLastRead) {
  const v1::Report report = compare::MakeReport(WholeRun(), nullptr);
  const std::string table = FormatReport(report, Style());
  ExpectGolden("report/table.txt", table);
  EXPECT_LE(LongestLine(table), kColumnsMax);
  for (char c : table) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));

  const std::string unicode = FormatReport(report, {.unicode = true});
  ExpectGolden("report/table_unicode.txt", unicode);
  EXPECT_LE(LongestLine(unicode), kColumnsMax);
}

TEST(ReportFormatsTest, TheNextCommandsCanBeCopied) {
  v1::Report report = compare::MakeReport(WholeRun(), nullptr);
  for (v1::ComparisonRow& row : *report.mutable_rows()) row.set_trials_needed(6);
  const NextWords words{.playbook = "dir/a.yaml", .lab = " --controller 127.0.0.1:7480"};
  const std::string table = FormatReport(report, Style(), false, words);
  EXPECT_THAT(table, HasSubstr("\nnext: labrack run dir/a.yaml --trials 6 --controller "
                               "127.0.0.1:7480\n      labrack status r-7f3a --controller "
                               "127.0.0.1:7480\n"));
  // Broken off, it wants the trials that it was to have.
  report.mutable_run()->set_state(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(FormatReport(report, Style(), false, words),
              AllOf(HasSubstr("\nnext: labrack status r-7f3a"), Not(HasSubstr("labrack run"))));
}

TEST(ReportFormatsTest, ColourSaysNothingThatWordsDoNot) {
  const v1::Report report = compare::MakeReport(WholeRun(), nullptr);
  std::string coloured = FormatReport(report, {.colour = true});
  EXPECT_THAT(coloured, HasSubstr("\x1b[32mBETTER"));
  for (const char* sequence :
       {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"}) {
    for (std::size_t at; (at = coloured.find(sequence)) != std::string::npos;) {
      coloured.erase(at, std::strlen(sequence));
    }
  }
  EXPECT_EQ(coloured, FormatReport(report, Style()));
}

TEST(ReportFormatsTest, MarkdownAndJunitAreAsLastRead) {
  const v1::Report report = compare::MakeReport(WholeRun(), nullptr);
  ExpectGolden("report/report.md", FormatMarkdown(report));
  ExpectGolden("report/junit.xml", FormatJunit(report));
}

TEST(ReportFormatsTest, ComparisonOfTwoRunsIsAsLastRead) {
  const v1::RunRecord base = CopyDay().Build();
  RunRecordBuilder changed = CopyDay();
  changed.record().mutable_summary()->set_run_id("r-8000");
  for (v1::TrialRecord& trial : *changed.record().mutable_trials()) {
    if (trial.summary().cell() != 3) continue;  // xfs/pages takes a fifth longer
    for (v1::AssignmentRecord& assignment : *trial.mutable_assignments()) {
      v1::StepResult& step = *assignment.mutable_result()->mutable_steps(0);
      step.set_measure_end_mono_ns(step.measure_end_mono_ns() + 2'000'000'000);
      step.mutable_intervals(1)->set_end_mono_ns(step.measure_end_mono_ns());
      assignment.mutable_result()->mutable_environment()->mutable_host()->set_git_commit("a11ce55");
    }
  }
  const v1::RunRecord test = changed.Build();
  const v1::Report report = compare::MakeReport(base, &test);
  ExpectGolden("report/two_runs.txt", FormatReport(report, Style()));
  EXPECT_EQ(report.exit_code(), 1);
  const std::string junit = FormatJunit(report);
  EXPECT_THAT(junit, HasSubstr("failures=\"1\""));
  EXPECT_THAT(junit, HasSubstr("type=\"PerfRegression\""));
  // Names must be the same in every build, or a CI system has no history of them.
  const std::string untouched = junit;
  for (std::size_t at = 0; (at = untouched.find("<testcase name=", at)) != std::string::npos;
       ++at) {
    const std::string name = untouched.substr(at, untouched.find("classname", at) - at);
    EXPECT_THAT(name, Not(HasSubstr("r-8000")));
    EXPECT_THAT(name, Not(HasSubstr("r-7f3a")));
  }
}

TEST(ReportFormatsTest, EmptyOneTrialAndAllInvalidHaveAForm) {
  const v1::Report empty = compare::MakeReport(v1::RunRecord(), nullptr);
  EXPECT_THAT(FormatReport(empty, Style()), HasSubstr("no result: no trial is valid"));
  EXPECT_THAT(FormatReport(empty, Style()), HasSubstr("exit 9 (nothing ran)"));
  EXPECT_THAT(FormatMarkdown(empty), HasSubstr("No result"));
  EXPECT_THAT(FormatJunit(empty), HasSubstr("tests=\"1\" failures=\"0\" errors=\"1\""));
  EXPECT_EQ(FormatOpenMetrics(v1::RunRecord()), "# EOF\n");

  ExpectGolden("report/one_trial.txt",
               FormatReport(compare::MakeReport(CopyDay(1).Build(), nullptr), Style()));

  RunRecordBuilder lost = CopyDay(2);
  for (v1::TrialRecord& trial : *lost.record().mutable_trials()) {
    trial.mutable_summary()->set_state("lost");
    trial.mutable_summary()->set_reason("st-01: silent for 15 min");
  }
  const v1::Report all_lost = compare::MakeReport(lost.Build(), nullptr);
  ExpectGolden("report/all_lost.txt", FormatReport(all_lost, Style()));
  EXPECT_THAT(FormatJunit(all_lost), HasSubstr("tests=\"18\" failures=\"0\" errors=\"18\""));
}

TEST(ReportFormatsTest, TwoRunsWithoutACommonCellAreNotCalledInvalidTrials) {
  const v1::RunRecord base = CopyDay(1).Build();
  v1::RunRecord test = base;
  for (v1::PlannedCell& cell : *test.mutable_plan()->mutable_cells()) {
    cell.mutable_disks()->set_count(4);
  }
  const v1::Report report = compare::MakeReport(base, &test);
  EXPECT_THAT(FormatReport(report, Style()), HasSubstr("no result: no cell is the same in both"));
  EXPECT_THAT(FormatMarkdown(report), HasSubstr("No result: no cell is the same in both runs."));
}

TEST(ReportFormatsTest, StrictTurnsInconclusiveIntoAFailure) {
  const v1::Report report = compare::MakeReport(CopyDay(3).Build(), nullptr);
  EXPECT_THAT(FormatReport(report, Style()), HasSubstr("PASSED"));
  EXPECT_THAT(FormatReport(report, Style(), true), HasSubstr("exit 4 (inconclusive)"));
  EXPECT_THAT(FormatJunit(report), HasSubstr("failures=\"0\""));
  EXPECT_THAT(FormatJunit(report, true), HasSubstr("type=\"Inconclusive\""));
}

TEST(ReportFormatsTest, LongNamesStayWithinAHundredColumns) {
  RunRecordBuilder run("a-playbook-with-a-name-of-sixty-three-letters-that-goes-on-and-on");
  run.AddHost("a-host-with-a-rather-long-name.example.org");
  for (const char* stack : {"a-stack-with-a-name-that-is-very-long-indeed", "b"}) {
    run.AddCell(
        stack, RunRecordBuilder::SyncPages("a-workload-with-a-long-name"),
        {{.step = "write", .operation = "an-operation-with-a-long-name"}},
        "block=4KiB size=1GiB depth=32 clients=16 mode=sequential-with-random-jumps x=y z=1");
  }
  for (std::uint32_t repeat = 0; repeat < 6; ++repeat) {
    run.AddTrial({.cell = 0, .repeat = repeat, .rate = 1.0 + repeat});
    run.AddTrial({.cell = 1, .repeat = repeat, .rate = 1e9 + repeat});
  }
  const std::string table = FormatReport(compare::MakeReport(run.Build(), nullptr), Style());
  EXPECT_LE(LongestLine(table), kColumnsMax) << table;
}

// XML that a hostile host or command could send: markup, control characters, the end of a CDATA
// section, bytes that are no UTF-8.
TEST(ReportFormatsTest, JunitIsReadByXmllint) {
  ASSERT_TRUE(Installed("xmllint")) << "package libxml2-utils";
  RunRecordBuilder run = CopyDay();
  v1::TrialRecord& trial = *run.record().mutable_trials(2);
  v1::AssignmentResult& result = *trial.mutable_assignments(0)->mutable_result();
  result.mutable_measurement()->set_outcome(v1::OUTCOME_FAILED);
  result.mutable_measurement()->set_reason(
      "<b>\"it's\" & ]]> \x1b[2J \x01 \xff\xfe \xef\xbf\xbf</b>");
  run.playbook().set_playbook("copy<day>&\"");
  run.record().mutable_summary()->set_playbook_name("copy<day>&\"");
  const std::string xml = FormatJunit(compare::MakeReport(run.Build(), nullptr));
  EXPECT_THAT(xml, Not(HasSubstr("]]>")));
  EXPECT_THAT(xml, Not(HasSubstr("\x1b")));
  const TemporaryFile file("junit.xml", xml);
  EXPECT_EQ(std::system(("xmllint --noout " + file.path()).c_str()), 0) << xml;
  // One failed trial: one error, and the counts agree with the cases.
  const std::string count =
      "test \"$(xmllint --xpath 'count(//testcase/error)' " + file.path() +
      ")\" = 1 && test \"$(xmllint --xpath 'count(//testcase)' " + file.path() +
      ")\" = \"$(xmllint --xpath 'string(/testsuites/@tests)' " + file.path() + ")\"";
  EXPECT_EQ(std::system(count.c_str()), 0) << xml;
}

TEST(ReportFormatsTest, ExportsAreAsLastRead) {
  const v1::RunRecord run = SmallRun();
  ExpectGolden("report/small.csv", FormatCsv(run));
  ExpectGolden("report/small.om", FormatOpenMetrics(run));
  ExpectGolden("report/small.fio.json", FormatFioJson(run));
}

TEST(ReportFormatsTest, OpenMetricsIsImportedByPromtool) {
  ASSERT_TRUE(Installed("promtool")) << "package prometheus";
  const TemporaryFile file("run.om", FormatOpenMetrics(SmallRun()));
  const std::string command = "promtool tsdb create-blocks-from openmetrics " + file.path() + " " +
                              file.directory() + "/blocks >" + file.directory() + "/log 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_FALSE(std::filesystem::is_empty(file.directory() + "/blocks"));
}

// promtool's linter reads the older text format only: there counters are declared under their whole
// names, and times of day are milliseconds (left out here).
std::string AsTextFormat(const std::string& open_metrics) {
  std::set<std::string> counters;
  std::string text;
  std::istringstream lines(open_metrics);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) {
      text += line.substr(0, line.rfind(' ')) + "\n";
      continue;
    }
    std::istringstream words(line);
    std::string hash, kind, name, rest;
    words >> hash >> kind >> name;
    std::getline(words, rest);
    if (kind == "TYPE" && rest == " counter") counters.insert(name);
    text +=
        hash + " " + kind + " " + name + (counters.contains(name) ? "_total" : "") + rest + "\n";
  }
  return text;
}

TEST(ReportFormatsTest, OpenMetricsIsCleanByPromtoolsRules) {
  ASSERT_TRUE(Installed("promtool")) << "package prometheus";
  const std::string metrics = FormatOpenMetrics(SmallRun());
  EXPECT_TRUE(metrics.ends_with("\n# EOF\n"));
  const TemporaryFile file("run.prom", AsTextFormat(metrics));
  const std::string log = file.directory() + "/log";
  EXPECT_EQ(std::system(("promtool check metrics <" + file.path() + " >" + log + " 2>&1").c_str()),
            0);
  EXPECT_EQ(ReadText(log), "");
}

TEST(ReportFormatsTest, CsvHasAsManyCellsInEveryLine) {
  const std::string csv = FormatCsv(SmallRun());
  std::size_t cells = 1;
  std::vector<std::size_t> per_line;
  bool quoted = false;
  for (char c : csv) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') ++cells;
    if (c == '\n') {
      per_line.push_back(cells);
      cells = 1;
    }
  }
  // Header; two trials of two steps; one of one step.
  EXPECT_THAT(per_line, ::testing::ElementsAre(30, 30, 30, 30, 30, 30));
}

TEST(ReportFormatsTest, FioNamesAndSums) {
  const json fio = json::parse(FormatFioJson(SmallRun()));
  ASSERT_EQ(fio["client_stats"].size(), 5u);
  const json& read = fio["client_stats"][1]["read"];
  EXPECT_EQ(read["total_ios"], 10'000);
  EXPECT_EQ(read["io_bytes"], 10'000 * 4096);
  EXPECT_DOUBLE_EQ(read["iops"], 1000);
  EXPECT_EQ(read["bw_bytes"], 1000 * 4096);
  EXPECT_TRUE(read["lat_ns"]["percentile"].contains("99.000000"));
  EXPECT_EQ(fio["client_stats"][0]["labrack_operations"]["create"]["total_ios"], 10'000);
  EXPECT_EQ(fio["client_stats"][2]["error"], 1);
  EXPECT_FALSE(fio["client_stats"][0]["read"]["lat_ns"].contains("percentile"));
}

// --- JSON and its schema ---

TEST(ReportJsonTest, PublishedSchemaIsTheGeneratedOneAndReportsFollowIt) {
  const std::filesystem::path path =
      std::filesystem::path(LABRACK_SOURCE_DIR) / "controller/report/report.schema.json";
  if (std::getenv("LABRACK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << ReportSchema();
  }
  EXPECT_EQ(ReadText(path), ReportSchema());
  const JsonSchema schema(json::parse(ReportSchema()), JsonSchema::Unnamed::kWrong);
  const v1::RunRecord base = WholeRun();
  const v1::RunRecord none;
  for (const v1::Report& report :
       {compare::MakeReport(base, nullptr), compare::MakeReport(base, &base),
        compare::MakeReport(none, nullptr), compare::MakeReport(CopyDay(1).Build(), nullptr)}) {
    EXPECT_EQ(schema.FirstFault(json::parse(FormatJson(report))), "");
  }
  json wrong = json::parse(FormatJson(compare::MakeReport(base, nullptr)));
  wrong["report"]["rows"][0]["verdict"] = "GREAT";
  EXPECT_NE(schema.FirstFault(wrong), "");
}

TEST(ReportJsonTest, FiguresThatAreNotThereAreNullAndOrderIsThatOfTheProto) {
  const std::string text = FormatJson(compare::MakeReport(CopyDay(1).Build(), nullptr));
  const json report = json::parse(text)["report"];
  const json& row = report["rows"][report["rows"].size() - 1];
  EXPECT_TRUE(row["ratio_low"].is_null());
  EXPECT_TRUE(row["p_adjusted"].is_null());
  EXPECT_LT(text.find("\"schema\""), text.find("\"schema_version\""));
  EXPECT_LT(text.find("\"workload\""), text.find("\"parameters\""));
  EXPECT_EQ(report["rows"][0]["verdict"], "BASE");
  EXPECT_EQ(report["run"]["state"], "DONE");
  EXPECT_EQ(report["run"]["created_wall_ns"], 1'796'000'000'000'000'000);
}

TEST(ReportJsonTest, AnyMessageAndAnyBytes) {
  v1::ListRunsReply runs;
  runs.add_runs()->set_run_id("r-1\xff\"");
  const json list = json::parse(FormatMessageJson("labrack.runs", runs));
  EXPECT_EQ(list["schema"], "labrack.runs");
  EXPECT_EQ(list["runs"].size(), 1u);
  v1::PlannedCell cell;
  (*cell.mutable_parameters())["b"] = "2";
  (*cell.mutable_parameters())["a"] = "1";
  EXPECT_THAT(FormatMessageJson("x", cell), ::testing::ContainsRegex("\"a\": \"1\",\n *\"b\""));
  const json run = json::parse(FormatRunJson(SmallRun()));
  EXPECT_EQ(run["run"]["trials"].size(), 3u);
}

TEST(ReportRowTextTest, NumbersInWords) {
  EXPECT_EQ(FormatValue(1.3e9, "B/s"), "1.21 GiB/s");
  EXPECT_EQ(FormatValue(512'000, "op/s"), "512 k/s");
  EXPECT_EQ(FormatValue(1'550'000, "ns"), "1.55 ms");
  EXPECT_EQ(FormatValue(33, "s"), "33.0 s");
  EXPECT_EQ(FormatValue(12.3, "MB/s"), "12.3 MB/s");
  EXPECT_EQ(FormatValue(std::numeric_limits<double>::quiet_NaN(), "s"), "-");
  EXPECT_EQ(FormatChange(1.314), "+31 %");
  EXPECT_EQ(FormatChange(0.996), "-0.4 %");
  EXPECT_EQ(FormatChange(0.99999), "0.0 %");
  EXPECT_EQ(FormatChange(0.2), "-80 %");
  EXPECT_EQ(FormatChange(3.21), "3.21x");
  EXPECT_EQ(FormatChange(NAN), "-");
}

}  // namespace
}  // namespace labrack::report
