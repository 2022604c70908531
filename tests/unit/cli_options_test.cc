// Goal: a value comes from the strongest source that has it, whatever the others say, and every
// mistake on the command line is answered by what would be right. Method: one table of options of
// every kind, read from command lines, environments and files that disagree.
#include <filesystem>
#include <fstream>
#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/cli/options.h"
#include "controller/cli/settings.h"

namespace labrack::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Option>& Table() {
  static const std::vector<Option> table = {
      {.name = "strict", .help = "a flag", .sources = Sources::kAll},
      {.name = "trials",
       .kind = ValueKind::kInteger,
       .value = "N",
       .help = "an integer",
       .sources = Sources::kAll,
       .min = 1,
       .max = 1000},
      {.name = "progress",
       .kind = ValueKind::kChoice,
       .value = "HOW",
       .help = "a choice",
       .sources = Sources::kAll,
       .choices = {"auto", "plain", "none"}},
      {.name = "timeout", .kind = ValueKind::kDuration, .value = "TIME", .help = "a duration"},
      {.name = "allow-exec", .help = "no file may set it", .sources = Sources::kEnvironment},
      {.name = "set",
       .kind = ValueKind::kText,
       .value = "KEY=VALUE",
       .help = "repeatable",
       .repeated = true}};
  return table;
}

Result<Arguments> Read(const std::vector<std::string>& words, const Environment& environment = {},
                       const SettingMap& settings = {}) {
  return ReadArguments({{"PLAYBOOK", false}}, Table(), words, environment, settings);
}

std::string ErrorOf(const std::vector<std::string>& words, const Environment& environment = {},
                    const SettingMap& settings = {}) {
  const Result<Arguments> read = Read(words, environment, settings);
  if (read) return "no error";
  EXPECT_EQ(read.error().code(), Errc::kInvalidArgument);
  return read.error().note();
}

TEST(CliOptionsTest, CommandLineBeatsEnvironmentBeatsFiles) {
  const Environment environment = {{"LABRACK_TRIALS", "7"}};
  const SettingMap settings = {{"trials", {.text = "9", .origin = "f:1:1"}}};

  EXPECT_EQ(Read({"--trials", "3"}, environment, settings)->Integer("trials"), 3);
  EXPECT_EQ(Read({}, environment, settings)->Integer("trials"), 7);
  EXPECT_EQ(Read({}, {}, settings)->Integer("trials"), 9);
  EXPECT_EQ(Read({})->Integer("trials"), std::nullopt);
}

TEST(CliOptionsTest, OriginSaysWhereAValueCameFrom) {
  const SettingMap settings = {{"trials", {.text = "9", .origin = "f:1:9"}}};
  EXPECT_EQ(Read({"--trials=3"})->Origin("trials"), "command line");
  EXPECT_EQ(Read({}, {{"LABRACK_TRIALS", "7"}}, settings)->Origin("trials"), "LABRACK_TRIALS");
  EXPECT_EQ(Read({}, {}, settings)->Origin("trials"), "f:1:9");
  EXPECT_EQ(Read({})->Origin("trials"), "");
}

TEST(CliOptionsTest, AFlagCanBeTakenBackWhereTheEnvironmentSetsIt) {
  const Environment environment = {{"LABRACK_STRICT", "true"}};
  EXPECT_TRUE(Read({}, environment)->Flag("strict"));
  EXPECT_FALSE(Read({"--strict=false"}, environment)->Flag("strict"));
  EXPECT_TRUE(Read({"--strict"})->Flag("strict"));
}

TEST(CliOptionsTest, AnEmptyVariableIsNotSet) {
  EXPECT_EQ(Read({}, {{"LABRACK_TRIALS", ""}})->Integer("trials"), std::nullopt);
}

TEST(CliOptionsTest, SourcesThatAnOptionDoesNotTakeAreIgnored) {
  const SettingMap settings = {{"allow-exec", {.text = "true", .origin = "f:1:1"}},
                               {"set", {.text = "a=b", .origin = "f:2:1"}}};
  const Environment environment = {{"LABRACK_SET", "a=b"}};
  EXPECT_FALSE(Read({}, environment, settings)->Flag("allow-exec"));
  EXPECT_TRUE(Read({}, {{"LABRACK_ALLOW_EXEC", "true"}})->Flag("allow-exec"));
  EXPECT_THAT(Read({}, environment, settings)->All("set"), ElementsAre());
}

TEST(CliOptionsTest, RepeatedOptionsKeepTheirOrderAndDoNotEatOperands) {
  const Result<Arguments> read = Read({"--set", "a=1", "x.yaml", "--set=b=2"});
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_THAT(read->All("set"), ElementsAre("a=1", "b=2"));
  EXPECT_EQ(read->Operand(0), "x.yaml");
}

TEST(CliOptionsTest, AfterTwoDashesEverythingIsAnOperand) {
  EXPECT_EQ(Read({"--", "--trials"})->Operand(0), "--trials");
  EXPECT_EQ(Read({"-"})->Operand(0), "-");
}

TEST(CliOptionsTest, UnknownOptionsGetTheNearestName) {
  EXPECT_EQ(ErrorOf({"--trails", "3"}), "unknown option `--trails`; did you mean `--trials`?");
  EXPECT_EQ(ErrorOf({"--trails=3"}), "unknown option `--trails`; did you mean `--trials`?");
  EXPECT_EQ(ErrorOf({"-trials"}), "unknown option `-trials`; did you mean `--trials`?");
  EXPECT_EQ(ErrorOf({"--frobnicate"}), "unknown option `--frobnicate`; --help lists the options");
}

TEST(CliOptionsTest, NamesAreNotAbbreviated) {
  EXPECT_THAT(ErrorOf({"--trial", "3"}), HasSubstr("unknown option `--trial`"));
}

TEST(CliOptionsTest, ValuesAreHeldToTheirDeclaration) {
  EXPECT_EQ(ErrorOf({"--trials", "0"}), "--trials: `0` is out of range; write 1 to 1000");
  EXPECT_THAT(ErrorOf({"--trials", "many"}), HasSubstr("--trials: "));
  EXPECT_EQ(ErrorOf({"--trials"}), "--trials has no value; write --trials N");
  EXPECT_EQ(ErrorOf({"--trials", "1", "--trials", "2"}), "--trials is given 2 times; give it once");
  EXPECT_EQ(ErrorOf({"--progress", "plan"}),
            "--progress: `plan` is none of auto, plain, none; did you mean `plain`?");
  EXPECT_THAT(ErrorOf({"--timeout", "5"}), HasSubstr("--timeout: "));
  EXPECT_THAT(ErrorOf({"--strict=perhaps"}), HasSubstr("--strict"));
  EXPECT_EQ(ErrorOf({"a.yaml", "b.yaml"}),
            "`b.yaml` is one word too many; quote words that belong together");
}

TEST(CliOptionsTest, AWrongVariableOrSettingIsNamed) {
  EXPECT_THAT(ErrorOf({}, {{"LABRACK_TRIALS", "x"}}), HasSubstr("trials (LABRACK_TRIALS): "));
  EXPECT_THAT(ErrorOf({}, {}, {{"trials", {.text = "x", .origin = "f:1:9"}}}),
              HasSubstr("trials (f:1:9): "));
  // A weaker source that is wrong does not matter when a stronger one is right.
  EXPECT_EQ(Read({"--trials", "3"}, {{"LABRACK_TRIALS", "x"}})->Integer("trials"), 3);
}

TEST(CliOptionsTest, AMissingOperandIsNamed) {
  const Result<Arguments> read = ReadArguments({{"RUN"}}, Table(), {}, {}, {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().note(), "RUN is missing; --help shows how it is called");
}

TEST(CliOptionsTest, HelpNamesTheVariable) {
  const std::string help = OptionsHelp(Table());
  EXPECT_THAT(help, HasSubstr("  --trials N              an integer [LABRACK_TRIALS]\n"));
  EXPECT_THAT(help, HasSubstr("[LABRACK_ALLOW_EXEC]"));
  EXPECT_THAT(help, HasSubstr("  --timeout TIME          a duration\n"));
}

class SettingFilesTest : public ::testing::Test {
 protected:
  SettingFilesTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "labrack-settings-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~SettingFilesTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  std::filesystem::path directory_;
};

TEST_F(SettingFilesTest, TheFirstFileThatHasAKeyDecides) {
  const std::string project = Write("project.yaml", "trials: 3\n");
  const std::string user = Write("user.yaml", "trials: 4\nprogress: plain\n");
  SettingMap settings;
  config::Problems problems;
  for (const std::string& file : {project, user}) {
    config::Document document;
    ASSERT_TRUE(ReadSettings(file, Table(), document, settings, problems));
  }
  EXPECT_EQ(settings["trials"].text, "3");
  EXPECT_EQ(settings["trials"].origin, project + ":1:9");
  EXPECT_EQ(settings["progress"].text, "plain");
}

TEST_F(SettingFilesTest, EveryMistakeOfAFileIsFound) {
  const std::string file = Write("a.yaml",
                                 "trails: 3\nprogress: fast\nallow-exec: true\n"
                                 "strict: [true]\ntrials: 5\n");
  SettingMap settings;
  config::Problems problems;
  config::Document document;
  EXPECT_FALSE(ReadSettings(file, Table(), document, settings, problems));
  ASSERT_EQ(problems.total(), 4U);
  EXPECT_THAT(problems.list()[0].helps, ElementsAre("did you mean `trials`?"));
  EXPECT_THAT(problems.list()[1].message, HasSubstr("`fast` is none of"));
  EXPECT_THAT(problems.list()[2].helps, ElementsAre("write --allow-exec on the command line"));
  EXPECT_EQ(problems.list()[3].span.begin.line, 4U);
  EXPECT_EQ(settings["trials"].text, "5");
}

TEST_F(SettingFilesTest, FilesAreLookedForWhereXdgSays) {
  const std::string user = Write("config/labrack/config.yaml", "trials: 3\n");
  const auto files = SettingFiles({{"XDG_CONFIG_HOME", directory_ / "config"}, {"HOME", "/none"}});
  EXPECT_THAT(files, ::testing::Contains(user));
  const std::string home = Write(".config/labrack/config.yaml", "trials: 3\n");
  EXPECT_THAT(SettingFiles({{"HOME", directory_}}), ::testing::Contains(home));
}

}  // namespace
}  // namespace labrack::cli
