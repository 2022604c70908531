// Goal: the labrack that users run keeps its promises: every mistake is answered, a run ends in a
// table, files and the right exit code, an interrupted run leaves nothing behind, and daemons give
// what the lab on one machine gives. Method: the real binaries, each test in a state directory of
// its own, playbooks of `dir` stacks that take a second or two.
#include <signal.h>
#include <sstream>

#include <fmt/format.h>

#include "tests/e2e/cli_fixture.h"
#include "tests/e2e/xml.h"

namespace labrack {
namespace {

TEST_F(CliTest, SixMistakesGiveSixErrorsAndTouchNothing) {
  Write("bad.yaml", R"(playbook: Bad Name
stakcs: {}
stacks:
  a: {host: {dir: {}}}
  b: {host: {ext5: {}}}
workloads:
  pages: {sync_pages: {size: 4k, file: 1MiB, duration: 200ms}}
  more: {random: {blok: 4KiB}}
trials: 0
)");
  for (const char* verb : {"validate", "run", "plan"}) {
    const exec::Outcome outcome = Run({verb, "bad.yaml"});
    EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kPlaybookInvalid)) << outcome.errors;
    EXPECT_EQ(Count(outcome.errors, "error[LR"), 6U) << outcome.errors;
    EXPECT_EQ(Count(outcome.errors, "--> bad.yaml:"), 6U);
    EXPECT_GE(Count(outcome.errors, "^"), 6U);
    EXPECT_GE(Count(outcome.errors, "= help: "), 6U);
    EXPECT_THAT(outcome.errors, HasSubstr("did you mean `stacks`?"));
    EXPECT_EQ(outcome.output, "");
  }
  EXPECT_FALSE(fs::exists(directory_ / "state"));
}

// Nine texts, and eight lists that each name the one before seven times: fifty million texts for
// whoever expands them.
std::string BillionLaughs() {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    text += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}]\n", c, before);
  }
  return text;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(CliTest, HostileFilesGiveExactlyOneClearErrorEach) {
  struct Hostile {
    std::string name;
    std::string text;
    std::string message;
    std::string place;  // behind the file's name; empty where a file has no line to show
  };
  const std::string tiny = kTiny;
  const std::vector<Hostile> files = {
      {"quote.yaml", Replaced(tiny, "tiny", "\"tiny"), "error[LR106]", ":1:11"},
      {"twice.yaml", tiny + "trials: 5\n", "`trials` is written twice", ":8:1"},
      {"two.yaml", tiny + "---\nplaybook: other\n", "a second document begins", ":8:1"},
      {"deep.yaml", "playbook: " + std::string(600, '[') + "\n", "nested deeper than", ":1:"},
      {"laughs.yaml", BillionLaughs(), "the anchor `&a` is not taken", ":1:4"},
      {"tabs.yaml", Replaced(tiny, "  left", "\tleft"), "a tab is used for indentation", ":3:1"},
      {"empty.yaml", "", "there is nothing in this file", ""},
      {"zeros.yaml", std::string(1000, '\0'), "this file is not text", ":1:1"},
      {"binary.yaml", ReadAll(std::string(LABRACK_BIN_DIR) + "/labrack").substr(0, 100'000),
       "this file is not text", ":1:1"},
      {"utf8.yaml", Replaced(tiny, "tiny", "t\xc3\xa9\xffny"), "the byte 0xff", ":1:13"},
      {"large.yaml", std::string(20 << 20, '#'), "larger than 1048576 bytes", ""},
  };
  const auto check = [&](const Hostile& file) {
    for (const char* verb : {"validate", "run"}) {
      const exec::Outcome outcome = Run({verb, file.name});
      EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kPlaybookInvalid)) << file.name;
      EXPECT_EQ(outcome.output, "");
      EXPECT_EQ(Count(outcome.errors, "error[LR"), 1U) << file.name << outcome.errors;
      EXPECT_THAT(outcome.errors, HasSubstr(file.message));
      EXPECT_THAT(outcome.errors, HasSubstr("--> " + file.name + file.place));
      EXPECT_EQ(Count(outcome.errors, "= help: "), 1U) << outcome.errors;
      EXPECT_EQ(outcome.errors.contains(" | ") && outcome.errors.contains("^"), !file.place.empty())
          << outcome.errors;
      EXPECT_LT(outcome.wall, 5s) << file.name;
      EXPECT_LT(outcome.errors.size(), 2000U) << file.name;
    }
  };
  for (const Hostile& file : files) {
    Write(file.name, file.text);
    check(file);
  }
  fs::create_directory(directory_ / "directory.yaml");
  check({.name = "directory.yaml", .text = "", .message = "Is a directory", .place = ""});
  check({.name = "missing.yaml", .text = "", .message = "No such file", .place = ""});
  EXPECT_FALSE(fs::exists(directory_ / "state"));
}

TEST_F(CliTest, AForeignPlaybookCannotAttachFilesOfItsReader) {
  Write("secret", "[secret]\nsize=1m\nrw=read\n");
  fs::create_directories(directory_ / "checkout" / "jobs");
  fs::create_symlink(directory_ / "secret", directory_ / "checkout" / "link.fio");
  fs::create_directory_symlink(directory_, directory_ / "checkout" / "up");
  Write("checkout/jobs/own.fio", "[own]\nsize=1m\nrw=read\n");
  fs::create_symlink("jobs/own.fio", directory_ / "checkout" / "inside.fio");
  const auto validate = [&](const std::string& file) {
    Write("checkout/p.yaml", fmt::format("playbook: p\nstacks: {{here: {{host: {{dir: {{}}}}}}}}\n"
                                         "workloads: {{w: {{fio: {{job_file: {}}}}}}}\ntrials: 1\n",
                                         file));
    return Run({"validate", "checkout/p.yaml"});
  };
  for (const std::string& file :
       {(directory_ / "secret").string(), std::string("../secret"),
        std::string("jobs/../../secret"), std::string("link.fio"), std::string("up/secret")}) {
    const exec::Outcome outcome = validate(file);
    EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kPlaybookInvalid)) << file;
    EXPECT_THAT(outcome.errors, HasSubstr("error[LR331]: the job file `" + file +
                                          "` is outside of the playbook's directory"));
    EXPECT_THAT(outcome.errors, HasSubstr("--> checkout/p.yaml:3:"));
  }
  EXPECT_THAT(validate("link.fio").errors,
              HasSubstr("a symbolic link leads to " + (directory_ / "secret").string()));
  for (const char* file : {"jobs/own.fio", "inside.fio", "jobs/../jobs/own.fio"}) {
    EXPECT_EQ(validate(file).exit_code, 0) << validate(file).errors;
  }
}

TEST_F(CliTest, ValidateSpeaksToOtherPrograms) {
  Write("tiny.yaml", kTiny);
  const exec::Outcome right = Run({"validate", "tiny.yaml"});
  EXPECT_EQ(right.exit_code, 0) << right.errors;
  EXPECT_THAT(right.output, HasSubstr("tiny.yaml: valid: 2 cells, 4 trials of each"));

  Write("bad.yaml", std::string(kTiny) + "tirals: 5\n");
  const exec::Outcome json = Run({"validate", "bad.yaml", "--format=json"});
  EXPECT_EQ(json.exit_code, ToInt(ExitCode::kPlaybookInvalid));
  const nlohmann::json parsed = nlohmann::json::parse(json.output, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << json.output;
  EXPECT_EQ(parsed["problem_count"], 1);
  EXPECT_EQ(parsed["problems"][0]["line"], 8);

  const exec::Outcome github = Run({"validate", "bad.yaml", "--format", "github"});
  EXPECT_THAT(github.output, HasSubstr("::error title=LR203,file=bad.yaml,line=8,col=1"));
}

// The types of an NDJSON stream's objects, in their order. Whatever is no object fails the test,
// and so do a stream without its version in front and one that does not end with the exit code.
std::vector<std::string> TypesOf(const std::string& stream, int exit_code) {
  std::vector<std::string> types;
  nlohmann::json last;
  std::istringstream lines(stream);
  for (std::string line; std::getline(lines, line);) {
    last = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(last.is_object() && last.contains("type")) << line;
    types.push_back(last.is_object() ? last.value("type", "") : "");
  }
  EXPECT_TRUE(stream.ends_with('\n'));
  EXPECT_FALSE(types.empty());
  if (types.empty()) return types;
  EXPECT_EQ(types.front(), "version");
  EXPECT_EQ(types.back(), "end") << stream;
  EXPECT_EQ(last.value("exit_code", -1), exit_code);
  return types;
}

TEST_F(CliTest, JsonProgressIsObjectsOnlyWhateverHappens) {
  using ::testing::Contains;
  using ::testing::ElementsAre;
  Write("tiny.yaml", kTiny);
  Write("bad.yaml", Replaced(Replaced(kTiny, "trials: 4", "trials: 0"), "stacks", "stakcs"));
  const auto types = [&](std::vector<std::string> words, ExitCode code) {
    words.push_back("--progress=json");
    const exec::Outcome outcome = Run(words);
    EXPECT_EQ(outcome.exit_code, ToInt(code)) << outcome.errors;
    return TypesOf(outcome.errors, outcome.exit_code);
  };
  const auto run = types({"run", "tiny.yaml", "--trials", "1"}, ExitCode::kPassed);
  EXPECT_THAT(run, Contains("note"));
  EXPECT_THAT(run, Contains("event"));
  EXPECT_THAT(types({"run", "bad.yaml"}, ExitCode::kPlaybookInvalid),
              ElementsAre("version", "problem", "problem", "end"));
  EXPECT_THAT(types({"run", "tiny.yaml", "--state", "tiny.yaml/x"}, ExitCode::kLabFailed),
              ElementsAre("version", "error", "end"));
  EXPECT_THAT(types({"wait", "r-1", "--controller", "127.0.0.1:1", "--timeout", "10ms"},
                    ExitCode::kWaitTimedOut),
              Contains("message"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "tiny.yaml", "--detach"}, {"run", "--trails=1"}, {"rnu"}}) {
    EXPECT_THAT(types(words, ExitCode::kUsage), ElementsAre("version", "error", "end"));
  }
  EXPECT_THAT(types({"wait", NewestRun()}, ExitCode::kPassed), Contains("message"));
  const exec::Outcome watched = Run({"watch", NewestRun(), "--json"});
  EXPECT_THAT(TypesOf(watched.output, 0), Contains("event"));
  EXPECT_EQ(watched.errors, "");

  Write(".labrack.yaml", "progress: json\nstat: x\n");
  EXPECT_THAT(types({"run", "tiny.yaml"}, ExitCode::kUsage),
              ElementsAre("version", "problem", "end"));
}

TEST_F(CliTest, ARunThatNeverBeganStillWritesItsFiles) {
  Write("bad.yaml", Replaced(Replaced(kTiny, "trials: 4", "trials: 0"), "stacks", "stakcs"));
  Write("tiny.yaml", kTiny);
  Write("exec.yaml", Replaced(kTiny, "{sync_pages: {size: 4KiB, file: 1MiB, duration: 500ms}}",
                              "{exec: {command: [\"true\"]}}"));
  struct Failing {
    std::vector<std::string> words;
    std::string playbook;
    ExitCode code;
    std::string type;
    std::string reason;
  };
  const std::vector<Failing> calls = {
      {{"bad.yaml"}, "bad", ExitCode::kPlaybookInvalid, "PlaybookInvalid", "bad.yaml:7:9: LR207"},
      {{"tiny.yaml", "--state", "tiny.yaml/x"},
       "tiny",
       ExitCode::kLabFailed,
       "Infra",
       "tiny.yaml/x"},
      {{"exec.yaml"}, "tiny", ExitCode::kLabFailed, "Infra", "allow"}};
  for (const Failing& call : calls) {
    // What the last run wrote must not be taken for the result of this one.
    Write("r.xml", "<testsuites/>");
    std::vector<std::string> words = {"run", "--junit", "r.xml", "--json", "r.json"};
    words.insert(words.end(), call.words.begin(), call.words.end());
    const exec::Outcome outcome = Run(words);
    EXPECT_EQ(outcome.exit_code, ToInt(call.code)) << outcome.errors;
    const nlohmann::json json =
        nlohmann::json::parse(ReadAll(directory_ / "r.json"), nullptr, false);
    ASSERT_FALSE(json.is_discarded());
    EXPECT_EQ(json["schema"], "labrack.report");
    EXPECT_EQ(json["report"]["exit_code"], ToInt(call.code));
    EXPECT_EQ(json["report"]["verdict"], "INVALID");
    EXPECT_EQ(json["report"]["run"]["playbook_name"], call.playbook);
    EXPECT_THAT(json["report"]["skipped"][0]["reason"].get<std::string>(), HasSubstr(call.reason));

    exec::Command xmllint = Labrack({});
    xmllint.words = {"xmllint", "--xpath",
                     "concat(count(//testcase), ' ', count(//error), ' ', //error/@type, ' ', "
                     "/testsuites/@tests, ' ', /testsuites/@errors)",
                     "r.xml"};
    const Result<exec::Outcome> counted = exec::Run(xmllint);
    ASSERT_TRUE(counted && counted->exit_code == 0) << "package libxml2-utils";
    EXPECT_EQ(counted->output, fmt::format("1 1 {} 1 1\n", call.type));
    EXPECT_THAT(ReadAll(directory_ / "r.xml"), HasSubstr(call.reason));
  }
}

TEST_F(CliTest, FieldsAndCodesAreExplained) {
  const exec::Outcome field = Run({"explain", "sync_pages.size"});
  EXPECT_EQ(field.exit_code, 0) << field.errors;
  EXPECT_THAT(field.output, HasSubstr("2KiB"));
  EXPECT_THAT(Run({"explain", "LR203"}).output, HasSubstr("LR203: unknown field"));
  const exec::Outcome wrong = Run({"explain", "LR20x"});
  EXPECT_EQ(wrong.exit_code, ToInt(ExitCode::kUsage));
  EXPECT_THAT(wrong.errors, HasSubstr("did you mean `LR20"));
}

TEST_F(CliTest, TheSchemaIsJson) {
  const exec::Outcome outcome = Run({"schema"});
  const nlohmann::json json = nlohmann::json::parse(outcome.output, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_TRUE(json["properties"].contains("stacks"));
}

TEST_F(CliTest, UsageErrorsExitWithTwoAndSayWhatWouldBeRight) {
  Write("tiny.yaml", kTiny);
  const std::vector<std::pair<std::vector<std::string>, std::string>> calls = {
      {{"rnu", "tiny.yaml"}, "did you mean `run`?"},
      {{"host"}, "write one of: host ls, host show"},
      {{"run"}, "PLAYBOOK is missing"},
      {{"run", "tiny.yaml", "--trails", "3"}, "did you mean `--trials`?"},
      {{"run", "tiny.yaml", "--trials", "0"}, "write 1 to 1000"},
      {{"run", "tiny.yaml", "--detach"}, "--detach needs --controller"},
      {{"run", "tiny.yaml", "--agents", "2", "--controller", "127.0.0.1:1"}, "--agents is for"},
      {{"show", "r-none"}, "r-none"},
      {{}, "labrack run"}};
  for (const auto& [words, expected] : calls) {
    const exec::Outcome outcome = Run(words);
    EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kUsage)) << expected << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(expected));
    EXPECT_EQ(outcome.output, "");
  }
}

TEST_F(CliTest, AWrongSettingIsShownAtItsPlace) {
  Write(".labrack.yaml", "progres: plain\n");
  const exec::Outcome outcome = Run({"version"});
  EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kUsage));
  EXPECT_THAT(outcome.errors, HasSubstr("--> ./.labrack.yaml:1:1"));
  EXPECT_THAT(outcome.errors, HasSubstr("did you mean `progress`?"));
}

TEST_F(CliTest, NoControllerIsALabFailure) {
  const exec::Outcome outcome = Run({"ls", "--controller", "127.0.0.1:1"});
  EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kLabFailed));
  EXPECT_THAT(outcome.errors, HasSubstr("127.0.0.1:1"));
}

TEST_F(CliTest, PlanNamesHostsAndWritesNoDisk) {
  Write("tiny.yaml", kTiny);
  const exec::Outcome outcome = Run({"plan", "tiny.yaml", "--agents", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("agent-1"));
  EXPECT_THAT(outcome.output, HasSubstr("agent-2"));
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
  const exec::Outcome again = Run({"plan", "tiny.yaml", "--agents", "2"});
  EXPECT_EQ(again.output, outcome.output);
}

TEST_F(CliTest, ARunWithOneAgentEndsInTableFilesAndCatalog) {
  Write("tiny.yaml", kTiny);
  const exec::Outcome outcome =
      Run({"run", "tiny.yaml", "--json", "r.json", "--junit", "r.xml", "--markdown", "r.md"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("right"));
  EXPECT_THAT(outcome.output, HasSubstr("pages"));
  EXPECT_THAT(outcome.errors, HasSubstr("state=running"));
  EXPECT_THAT(outcome.errors, HasSubstr("trial=8 "));
  EXPECT_THAT(outcome.errors, HasSubstr("state=done"));
  EXPECT_THAT(outcome.errors, Not(HasSubstr("\r")));
  EXPECT_THAT(outcome.errors, Not(HasSubstr("\033")));
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());

  const nlohmann::json report =
      nlohmann::json::parse(ReadAll(directory_ / "r.json"), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report["report"]["trials_valid"], 8);
  EXPECT_EQ(report["report"]["exit_code"], 0);
  EXPECT_TRUE(XmlIsWellFormed(ReadAll(directory_ / "r.xml"))) << ReadAll(directory_ / "r.xml");
  EXPECT_THAT(ReadAll(directory_ / "r.xml"), HasSubstr("<testsuites"));
  EXPECT_THAT(ReadAll(directory_ / "r.md"), HasSubstr("| "));

  const std::string run = NewestRun();
  const exec::Outcome shown = Run({"show", run});
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  // Only `run` knows the playbook's file, where it suggests more trials.
  std::string table = outcome.output;
  if (table.contains("labrack run tiny")) table = Replaced(table, "run tiny.yaml", "run PLAYBOOK");
  EXPECT_EQ(shown.output, table);
  EXPECT_THAT(Run({"status", run}).output, HasSubstr(run));
  EXPECT_THAT(Run({"ls"}).output, HasSubstr(run));
  EXPECT_EQ(Run({"wait", run}).exit_code, 0);
  EXPECT_EQ(Run({"watch", run}).exit_code, 0);
  EXPECT_THAT(Run({"export", run, "--as", "openmetrics"}).output, ::testing::EndsWith("# EOF\n"));
  EXPECT_THAT(Run({"export", run, "--as", "csv"}).output, HasSubstr(","));
  for (const char* form : {"json", "fio"}) {
    const exec::Outcome exported = Run({"export", run, "--as", form});
    EXPECT_EQ(exported.exit_code, 0) << exported.errors;
    EXPECT_FALSE(nlohmann::json::parse(exported.output, nullptr, false).is_discarded()) << form;
  }

  const exec::Outcome second = Run({"run", "tiny.yaml", "--progress=none"});
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_EQ(second.errors, "");
  const exec::Outcome compared = Run({"compare", run, NewestRun()});
  EXPECT_THAT(compared.exit_code, ::testing::AnyOf(0, 1)) << compared.errors;
  EXPECT_THAT(compared.output, HasSubstr("pages"));
}

TEST_F(CliTest, ThreeAgentsStartTogether) {
  // A busy disk may take a good part of a second for the syncs of three at once.
  Write("tiny.yaml", Replaced(kTiny, "duration: 500ms", "duration: 1500ms"));
  const exec::Outcome outcome = Run({"run", "tiny.yaml", "--agents", "3", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
  const nlohmann::json report = nlohmann::json::parse(outcome.output, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << outcome.output;
  EXPECT_EQ(report["report"]["hosts_count"], 3);
  EXPECT_EQ(report["report"]["trials_valid"], 8);
  EXPECT_GT(report["report"]["overlap_min"], 0.5);
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
}

TEST_F(CliTest, WhenTheReportCannotBeWrittenTheRunDoesNotPass) {
  Write("tiny.yaml", kTiny);
  const exec::Outcome outcome = Run({"run", "tiny.yaml", "--trials", "1", "--json", "/dev/full"});
  EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kLabFailed)) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("/dev/full"));
  EXPECT_THAT(outcome.output, HasSubstr("pages"));
}

// Whoever copies it gets the same run with more trials, not another one.
TEST_F(CliTest, TheNextCommandHasTheOptionsOfTheRun) {
  Write("tiny.yaml", std::string("vars: {size: 1MiB}\n") + kTiny);
  const exec::Outcome outcome = Run({"run", "tiny.yaml", "--trials", "1", "--set", "size=2MiB",
                                     "--set", "summary=it's small", "--seed", "7"});
  const std::string wanted =
      "tiny.yaml --set size=2MiB --set 'summary=it'\\''s small' --seed 7 --trials ";
  EXPECT_THAT(outcome.output, HasSubstr(wanted)) << outcome.errors;
}

TEST_F(CliTest, AReportThatHasNoPlaceIsSaidBeforeTheRun) {
  Write("tiny.yaml", kTiny);
  const struct {
    std::vector<std::string> words;
    const char* says;
  } cases[] = {{{"--json", "missing/r.json"}, "missing"},
               {{"--junit", "."}, "is a directory"},
               {{"--json", "-", "--junit", "-"}, "--json - and --junit -"}};
  for (const auto& wrong : cases) {
    std::vector<std::string> words = {"run", "tiny.yaml"};
    words.insert(words.end(), wrong.words.begin(), wrong.words.end());
    const exec::Outcome outcome = Run(words);
    EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kUsage)) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(wrong.says));
    EXPECT_FALSE(fs::exists(directory_ / "state"));
  }
}

// In virtual time, so the figures are always the same: six I/Os in three stages, two of them behind
// the acknowledgement, against one.
TEST_F(CliTest, WhySaysWhatAnOperationCostOnEachVolume) {
  Write("volumes.yaml", R"(playbook: volumes
disks: {model: e450-7200, count: 4, size: 16MiB}
stacks:
  stripe: {volume: {stripe: {}}}
  raid5: {volume: {raid5: {}}}
workloads:
  pages: {sync_pages: {size: 2KiB, file: 4MiB, duration: 5s}}
trials: 4
)");
  const exec::Outcome outcome = Run({"run", "volumes.yaml", "--json", "r.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("clock: virtual"));
  const auto report = nlohmann::json::parse(ReadAll(directory_ / "r.json"))["report"];
  const auto& stacks = report["reasons"][0]["stacks"];
  EXPECT_NEAR(stacks[0]["ios"], 1, 0.01);
  EXPECT_NEAR(stacks[0]["chain"], 1, 0.01);
  EXPECT_NEAR(stacks[1]["ios"], 6, 0.5);  // and now and then the log's own
  EXPECT_NEAR(stacks[1]["ios_behind"], 2, 0.5);
  EXPECT_NEAR(stacks[1]["chain"], 2, 0.01);
  const exec::Outcome why = Run({"why", NewestRun()});
  EXPECT_EQ(why.exit_code, 0) << why.errors;
  EXPECT_THAT(why.output, HasSubstr("stage 3: parity"));
  EXPECT_THAT(why.output, HasSubstr("raid5 waits for 2.0 I/Os one after the other"));
  const auto json = nlohmann::json::parse(Run({"why", NewestRun(), "--json"}).output);
  EXPECT_EQ(json["reasons"], report["reasons"]);
  EXPECT_EQ(Run({"why", "r-000000"}).exit_code, ToInt(ExitCode::kUsage));

  Run({"run", "volumes.yaml", "--json", "again.json"});
  const auto again = nlohmann::json::parse(ReadAll(directory_ / "again.json"))["report"];
  EXPECT_EQ(again["reasons"], report["reasons"]);
  EXPECT_EQ(again["rows"], report["rows"]);
}

TEST_F(CliTest, TheModelledDisksAreListed) {
  const exec::Outcome models = Run({"disk", "models"});
  EXPECT_EQ(models.exit_code, 0) << models.errors;
  EXPECT_THAT(models.output, HasSubstr("e450-7200"));
  const auto json = nlohmann::json::parse(Run({"disk", "models", "--json"}).output);
  EXPECT_EQ(json["modelled_disks"][0]["name"], "e450-7200");
}

TEST_F(CliTest, StrictExitsWithFourWhenTheTrialsDoNotDecide) {
  Write("tiny.yaml", kTiny);
  const exec::Outcome outcome = Run({"run", "tiny.yaml", "--trials", "1", "--strict"});
  EXPECT_EQ(outcome.exit_code, ToInt(ExitCode::kInconclusive)) << outcome.errors;
}

TEST_F(CliTest, CommandsNeedPermission) {
  Write("exec.yaml", R"(playbook: commands
stacks: {here: {host: {dir: {}}}}
workloads: {nothing: {exec: {command: ["true"]}}}
trials: 1
)");
  const exec::Outcome refused = Run({"run", "exec.yaml"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.errors, HasSubstr("allow"));
  const exec::Outcome allowed = Run({"run", "exec.yaml", "--allow-exec"});
  EXPECT_EQ(allowed.exit_code, 0) << allowed.errors;
}

TEST_F(CliTest, TheFleetOfThisMachineIsListed) {
  const exec::Outcome hosts = Run({"host", "ls"});
  EXPECT_EQ(hosts.exit_code, 0) << hosts.errors;
  EXPECT_THAT(hosts.output, HasSubstr("agent-1"));
  EXPECT_THAT(Run({"host", "show", "agent-1"}).output, HasSubstr("ext4"));
  EXPECT_THAT(Run({"disk", "ls"}).output, HasSubstr("file:"));
  EXPECT_EQ(Run({"host", "show", "agent-9"}).exit_code, ToInt(ExitCode::kUsage));
}

TEST_F(InterruptTest, CtrlCCleansUpAndExitsWith130) {
  Background run = StartLong("run");
  ASSERT_TRUE(run.child.Signal(SIGINT));
  EXPECT_EQ(ExitCodeOf(run, 60s), ToInt(ExitCode::kInterrupted)) << ReadAll(run.errors);
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
  EXPECT_THAT(ReadAll(run.errors), HasSubstr("cancelling the run"));
  const nlohmann::json report =
      nlohmann::json::parse(ReadAll(directory_ / "r.json"), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report["report"]["exit_code"], ToInt(ExitCode::kCancelled));
  TypesOf(ReadAll(run.errors), ToInt(ExitCode::kInterrupted));
}

// As nohup starts it, and a shell a job in the background.
TEST_F(CliTest, ASignalThatItWasStartedToIgnoreDoesNotEndARun) {
  Write("tiny.yaml", kTiny);
  exec::Command command = Labrack({"run", "tiny.yaml", "--progress=json"});
  const std::vector<std::string> ignoring = {"sh", "-c", "trap '' HUP INT; exec \"$0\" \"$@\""};
  command.words.insert(command.words.begin(), ignoring.begin(), ignoring.end());
  Background run = Start("run", command);
  ASSERT_TRUE(WaitUntil(60s, [&] { return ReadAll(run.errors).contains("\"type\":\"event\""); }));
  ASSERT_TRUE(run.child.Signal(SIGHUP));
  ASSERT_TRUE(run.child.Signal(SIGINT));
  EXPECT_EQ(ExitCodeOf(run), 0) << ReadAll(run.errors);
}

TEST_F(InterruptTest, ASecondCtrlCEndsAtOnceAndTheAgentsCleanUp) {
  Background run = StartLong("run");
  ASSERT_TRUE(run.child.Signal(SIGINT));
  ASSERT_TRUE(WaitUntil(10s, [&] { return ReadAll(run.errors).contains("cancelling the run"); }));
  ASSERT_TRUE(run.child.Signal(SIGINT));
  EXPECT_EQ(ExitCodeOf(run, 60s), ToInt(ExitCode::kInterrupted)) << ReadAll(run.errors);
  TypesOf(ReadAll(run.errors), ToInt(ExitCode::kInterrupted));
  // What the agents could not tell their controller any more stays until there is one again.
  const auto only_trials = [&] {
    return std::ranges::all_of(Leftovers(),
                               [](const std::string& left) { return left.contains("/trials/"); });
  };
  EXPECT_TRUE(WaitUntil(60s, only_trials)) << ::testing::PrintToString(Leftovers());
  Write("tiny.yaml", kTiny);
  EXPECT_EQ(Run({"run", "tiny.yaml", "--agents", "2", "--trials", "1"}).exit_code, 0);
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
}

TEST_F(InterruptTest, SigtermCleansUpAndExitsWith143) {
  Background run = StartLong("run");
  ASSERT_TRUE(run.child.Signal(SIGTERM));
  EXPECT_EQ(ExitCodeOf(run, 60s), ToInt(ExitCode::kTerminated)) << ReadAll(run.errors);
  EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
}

// A controller and two agents as daemons, on free ports.
class DaemonTest : public CliTest {
 protected:
  void SetUp() override {
    Write("controller.yaml",
          fmt::format("state: {}\nagents_listen: 127.0.0.1:{}\ncontrol_listen: 127.0.0.1:{}\n"
                      "http_listen: \"\"\nheartbeat: 500ms\n",
                      (directory_ / "daemon").string(), Port(0), Port(1)));
    exec::Command controller = Labrack({});
    controller.words = {std::string(LABRACK_BIN_DIR) + "/labrack-controller", "--config",
                        directory_ / "controller.yaml"};
    daemons_.push_back(Start("controller", controller));
    for (const std::string name : {"st-01", "st-02"}) {
      Write(name + ".yaml",
            fmt::format("controller: 127.0.0.1:{}\nstate: {}\nname: {}\nmetrics_listen: \"\"\n"
                        "labels: {{role: bench}}\n",
                        Port(0), (directory_ / name).string(), name));
      exec::Command agent = Labrack({});
      agent.words = {std::string(LABRACK_BIN_DIR) + "/labrack-agent", "--config",
                     directory_ / (name + ".yaml")};
      daemons_.push_back(Start(name, agent));
    }
    ASSERT_TRUE(WaitUntil(
        60s,
        [&] {
          return Count(Run({"host", "ls", "--controller", Address(), "--json"}).output, "ONLINE") ==
                 2;
        }))
        << ReadAll(directory_ / "controller.err") << ReadAll(directory_ / "st-01.err");
  }
  void TearDown() override {
    std::ranges::reverse(daemons_);
    for (Background& daemon : daemons_) {
      EXPECT_TRUE(daemon.child.Signal(SIGTERM));
      ExitCodeOf(daemon, 60s);
    }
  }

  // Of the dynamic range, so that tests that run side by side rarely meet; the bind would say so.
  static int Port(int offset) { return 20'000 + getpid() % 10'000 * 2 + offset; }
  static std::string Address() { return fmt::format("127.0.0.1:{}", Port(1)); }

  std::vector<Background> daemons_;
};

TEST_F(DaemonTest, DaemonsGiveTheSameTableAndExitCodes) {
  Write("tiny.yaml", kTiny);
  const exec::Outcome outcome = Run({"run", "tiny.yaml", "--controller", Address()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("right"));
  EXPECT_FALSE(fs::exists(directory_ / "state"));

  Write("long.yaml", kLong);
  const exec::Outcome detached = Run({"run", "long.yaml", "--controller", Address(), "--detach"});
  ASSERT_EQ(detached.exit_code, 0) << detached.errors;
  const std::string id = detached.output.substr(0, detached.output.find('\n'));
  EXPECT_EQ(Run({"wait", id, "--controller", Address(), "--timeout=300ms"}).exit_code,
            ToInt(ExitCode::kWaitTimedOut));
  EXPECT_EQ(Run({"cancel", id, "--controller", Address(), "--reason", "enough"}).exit_code, 0);
  EXPECT_EQ(Run({"wait", id, "--controller", Address(), "--timeout=60s"}).exit_code,
            ToInt(ExitCode::kCancelled));
  EXPECT_THAT(Run({"show", id, "--controller", Address()}).output, HasSubstr("enough"));
}

TEST_F(DaemonTest, ItsCatalogIsReadBesideIt) {
  fs::create_directories(StateDirectory());
  fs::create_directory_symlink(directory_ / "daemon", StateDirectory() / "controller");
  Write("long.yaml", kLong);
  const exec::Outcome detached = Run({"run", "long.yaml", "--controller", Address(), "--detach"});
  ASSERT_EQ(detached.exit_code, 0) << detached.errors;
  const std::string id = detached.output.substr(0, detached.output.find('\n'));
  const exec::Outcome listed = Run({"ls"});
  EXPECT_THAT(listed.output, HasSubstr(id));
  EXPECT_THAT(listed.output, Not(HasSubstr("unfinished"))) << "somebody carries it on";
  const exec::Outcome waited = Run({"wait", id});
  EXPECT_EQ(waited.exit_code, ToInt(ExitCode::kLabFailed));
  EXPECT_THAT(waited.errors, HasSubstr("name it with --controller"));
  EXPECT_THAT(Run({"host", "ls"}).errors, HasSubstr("another controller works on this catalog"));
  EXPECT_EQ(Run({"cancel", id, "--controller", Address()}).exit_code, 0);
  EXPECT_EQ(Run({"wait", id, "--controller", Address(), "--timeout=60s"}).exit_code,
            ToInt(ExitCode::kCancelled));
}

TEST_F(DaemonTest, AControllerThatComesBackIsFoundAgain) {
  Write("tiny.yaml", kTiny);
  Background run =
      Start("run", Labrack({"run", "tiny.yaml", "--trials", "8", "--controller", Address()}));
  ASSERT_TRUE(WaitUntil(60s, [&] { return ReadAll(run.errors).contains("state=valid"); }));
  ASSERT_TRUE(daemons_[0].child.Signal(SIGKILL));
  ExitCodeOf(daemons_[0], 10s);
  exec::Command controller = Labrack({});
  controller.words = {std::string(LABRACK_BIN_DIR) + "/labrack-controller", "--config",
                      directory_ / "controller.yaml"};
  daemons_[0] = Start("controller", controller);
  EXPECT_EQ(ExitCodeOf(run, 90s), 0) << ReadAll(run.errors);
  EXPECT_THAT(ReadAll(run.errors), HasSubstr("lost; trying again"));
  // Nothing is told twice.
  EXPECT_EQ(Count(ReadAll(run.errors), "trial=1 cell=left/pages state=valid"), 1U)
      << ReadAll(run.errors);
}

}  // namespace
}  // namespace labrack
