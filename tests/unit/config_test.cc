// Goal: whatever could be misread is refused with its place, and nothing else is. Method: one file
// per problem code with its printed form as a golden file; tables of YAML texts; limits from both
// sides.
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/base/config/source.h"
#include "storage/base/config/tree.h"
#include "storage/base/config/utf8.h"
#include "tests/unit/golden.h"

namespace labrack::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Read {
  Document document;
  Problems problems;
  bool ok = false;
};

Read ReadText(std::string text, const Limits& limits = {}) {
  Read read;
  read.ok = ReadYaml("test.yaml", std::move(text), limits, read.document, read.problems);
  EXPECT_EQ(read.ok, read.problems.empty());
  return read;
}

std::vector<std::string> Codes(const Problems& problems) {
  std::vector<std::string> codes;
  for (const Problem& problem : problems.list()) codes.push_back(problem.code);
  return codes;
}

Span At(std::size_t line, std::size_t begin, std::size_t end) {
  return {{line, begin}, {line, end}};
}

class GoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, OneProblemPrintsAsItsGoldenFile) {
  const std::string code = GetParam();
  Read read = ReadText(labrack::ReadText(GoldenPath(code + ".yaml")));
  read.document.file = code + ".yaml";
  for (const Problem& problem : read.problems.list()) EXPECT_EQ(problem.code, code);
  ExpectGolden(code + ".txt", RenderAll(read.problems, read.document.text, Colour::kNever));
}

INSTANTIATE_TEST_SUITE_P(Syntax, GoldenTest,
                         ::testing::Values("LR103", "LR104", "LR105", "LR106", "LR107", "LR108",
                                           "LR109", "LR110", "LR111", "LR112", "LR113", "LR114"),
                         [](const auto& info) { return std::string(info.param); });

TEST(YamlReaderTest, KeepsTextsAndPlaces) {
  const Read read = ReadText(
      "playbook: one\n"
      "list:\n"
      "- a\n"
      "- 'b c'\n"
      "flow: {x: [1, 2], \"y\": no}\n"
      "\xc3\xa9\xc3\xa9: \xe2\x82\xac\n"
      "block: |\n"
      "  [rand]\n"
      "  \trw=read\n"
      "empty:\n"
      "last: ''\n");
  ASSERT_TRUE(read.ok) << RenderAll(read.problems, read.document.text, Colour::kNever);
  EXPECT_TRUE(read.document.checkable);
  const Node& root = read.document.root;
  EXPECT_EQ(root.kind, Node::Kind::kMap);
  EXPECT_EQ(root.Find("playbook")->text, "one");
  EXPECT_EQ(root.Find("playbook")->span, At(1, 11, 14));
  EXPECT_EQ(root.FindEntry("playbook")->key_span, At(1, 1, 9));
  const Node& list = *root.Find("list");
  ASSERT_THAT(list.items, SizeIs(2));
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[1].text, "b c");
  EXPECT_EQ(list.items[1].span, At(4, 3, 8));
  EXPECT_EQ(list.span, (Span{{3, 1}, {4, 8}}));
  const Node& flow = *root.Find("flow");
  EXPECT_EQ(flow.span, At(5, 7, 27));
  EXPECT_EQ(flow.Find("y")->text, "no");
  EXPECT_FALSE(flow.Find("y")->quoted);
  EXPECT_EQ(flow.FindEntry("y")->key_span, At(5, 19, 22));
  EXPECT_EQ(root.Find("\xc3\xa9\xc3\xa9")->span, At(6, 5, 6));  // characters, not bytes
  EXPECT_EQ(root.Find("block")->text, "[rand]\n\trw=read\n");
  EXPECT_TRUE(root.Find("block")->quoted);
  EXPECT_EQ(root.Find("block")->span, (Span{{7, 8}, {9, 11}}));
  EXPECT_EQ(root.Find("empty")->span, At(10, 6, 6));
  EXPECT_FALSE(root.Find("empty")->quoted);
  EXPECT_TRUE(root.Find("last")->quoted);
  EXPECT_EQ(root.Find("nothing"), nullptr);
}

TEST(YamlReaderTest, TakesByteOrderMarkAndCarriageReturns) {
  const Read read = ReadText("\xef\xbb\xbfplaybook: one\r\ntrials: 6\r\n");
  ASSERT_TRUE(read.ok) << RenderAll(read.problems, read.document.text, Colour::kNever);
  EXPECT_EQ(read.document.root.entries[0].key, "playbook");
  EXPECT_EQ(read.document.root.entries[0].key_span, At(1, 1, 9));
  EXPECT_EQ(read.document.root.Find("trials")->span, At(2, 9, 10));
  EXPECT_EQ(read.document.root.Find("trials")->text, "6");
}

TEST(YamlReaderTest, EveryKindOfTextThatIsNotOneCleanDocumentIsRefusedOnce) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"", "LR104"},
      {"\n\n", "LR104"},
      {"---\n", "LR104"},
      {"a: \"abc\nb: 3\n", "LR106"},
      {"a: 'abc\nb: 3\n", "LR106"},
      {"- a\nb: 1\n", "LR105"},
      {"a: 1\nfoo\n", "LR105"},
      {"a: 1\na: 2\n", "LR113"},
      {"a: 1\n--- \nb: 2\n", "LR109"},
      {"a: 1\n...\nb: 2\n", "LR109"},
      {"use: *b\n", "LR110"},
      {"use: &b 1\n", "LR110"},
      {"<<: {a: 1}\n", "LR110"},
      {"a: !t 1\n", "LR111"},
      {"a: !x!t 1\n", "LR111"},
      {"%TAG ! tag:x,2000:\n---\na: 1\n", "LR112"},
      {"a: @b\n", "LR105"},
      {"a: `b`\n", "LR105"},
      {"a: b: c\n", "LR105"},
      {"a: \"\\q\"\n", "LR105"},
      {"a: {b: 1\nc: 2\n", "LR107"},
      {"a: [1, 2\nc: 2\n", "LR107"},
      {"a: {b: ${c}, d: 2}\n", "LR105"},
      {"a:\n\tb: 1\n", "LR108"},
      {"a:\tb\n", "LR108"},
      {"a: b\t# x\n", "LR108"},
      {"a:\n  - 1\n\t- 2\n", "LR108"},
      {"\"\": 1\n", "LR114"},
      {"{a: 1}: 1\n", "LR114"},
      {"a: \xff\n", "LR103"},
      {"a: \xc0\x80\n", "LR103"},
      {"a: 1\rb: 2\n", "LR103"},
      {"a: 1\xe2\x80\xa8"
       "b: 2\n",
       "LR103"},
      {"a: \xe2\x80\xae"
       "b\n",
       "LR103"},
  };
  for (const auto& [text, code] : cases) {
    const Read read = ReadText(text);
    EXPECT_THAT(Codes(read.problems), ElementsAre(code))
        << text << RenderAll(read.problems, read.document.text, Colour::kNever);
  }
}

TEST(YamlReaderTest, TabsInTextsAndCommentsAreHarmless) {
  for (const char* text : {"a: 'x\ty'  #\tcomment\n", "b: x\ty\n", "c: |\n  x\n  \ty\n"}) {
    const Read read = ReadText(text);
    EXPECT_TRUE(read.ok) << RenderAll(read.problems, text, Colour::kNever);
  }
  EXPECT_TRUE(ReadText("#\tcomment\na: b\n").ok);
}

TEST(YamlReaderTest, RefusalsAreCollectedAndTheTreeStaysCheckable) {
  const Read read = ReadText("a: 1\na: 2\nb: !t x\nc: !t y\nd d: 1\n");
  EXPECT_THAT(Codes(read.problems), ElementsAre("LR113", "LR114", "LR111"));
  EXPECT_TRUE(read.document.checkable);
  EXPECT_EQ(read.document.root.Find("a")->text, "1");
  EXPECT_TRUE(read.document.root.Find("b")->refused);
  EXPECT_THAT(read.problems.list()[2].notes, ElementsAre("1 more in this file"));
  for (const char* text : {"a: 'b\n", "a: 1\n---\nb: 2\n", "a: *b\n", "<<: {a: 1}\n"}) {
    EXPECT_FALSE(ReadText(text).document.checkable) << text;
  }
}

TEST(YamlReaderTest, AMissingClosingQuoteIsHintedAtWhereItSwallowedLines) {
  const Read read = ReadText("a: \"abc\nb: \"x\nc: 1\n");
  ASSERT_THAT(read.problems.list(), SizeIs(1));
  EXPECT_THAT(read.problems.list()[0].notes.back(),
              HasSubstr("a quoted text runs from line 1, column 4 to line 2"));
}

TEST(YamlReaderTest, DepthIsLimited) {
  const auto nested = [](std::size_t depth) {
    return "a: " + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "\n";
  };
  EXPECT_TRUE(ReadText(nested(32)).ok);
  const Read deep = ReadText(nested(33));
  EXPECT_THAT(Codes(deep.problems), ElementsAre("LR115"));
  EXPECT_EQ(deep.problems.list()[0].span, At(1, 35, 36));
  const Read brackets = ReadText("a: " + std::string(600, '['));
  EXPECT_THAT(Codes(brackets.problems), ElementsAre("LR115"));
  ExpectGolden("LR115.txt", RenderAll(brackets.problems, brackets.document.text, Colour::kNever));
}

TEST(YamlReaderTest, NodesAreLimited) {
  std::string items;
  for (int i = 0; i < 50'000; ++i) items += "- {}\n";
  EXPECT_TRUE(ReadText(items).ok);
  std::string many = "a: [";
  for (int i = 0; i < 100'000; ++i) many += "1,\n";
  const Read read = ReadText(many + "]\n");
  EXPECT_THAT(Codes(read.problems), ElementsAre("LR116"));
  ExpectGolden("LR116.txt", RenderAll(read.problems, read.document.text, Colour::kNever));
}

TEST(YamlReaderTest, SizeIsLimited) {
  const std::string line = "# a comment of sixty-four characters, so that lines make a MiB..\n";
  std::string text = "a: 1\n";
  while (text.size() + line.size() <= (1 << 20)) text += line;
  EXPECT_TRUE(ReadText(text).ok);
  const Read read = ReadText(text + line);
  EXPECT_THAT(Codes(read.problems), ElementsAre("LR102"));
  ExpectGolden("LR102.txt", RenderAll(read.problems, read.document.text, Colour::kNever));
}

// The work per place must not grow with the length of its line or of its mapping.
TEST(YamlReaderTest, LargestFilesTakeNoTime) {
  std::string line = "a: [";
  for (int i = 0; i < 99'000; ++i) line += "1234567, ";
  EXPECT_TRUE(ReadText(line + "]\n").ok);
  std::string twice;
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 25'000; ++i) twice += "k" + std::to_string(i) + ": 1\n";
  }
  EXPECT_EQ(ReadText(twice).problems.total(), 25'000u);
}

TEST(YamlReaderTest, BillionLaughsIsOneProblem) {
  std::string text = "a: &a [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    text += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) text += std::string(i == 0 ? "*" : ",*") + static_cast<char>(c - 1);
    text += "]\n";
  }
  const Read read = ReadText(text);
  EXPECT_THAT(Codes(read.problems), ElementsAre("LR110"));
  EXPECT_THAT(read.problems.list()[0].notes, ElementsAre("80 more in this file"));
  EXPECT_FALSE(read.document.checkable);
}

TEST(YamlReaderTest, AFileThatCannotBeReadIsAProblem) {
  Document document;
  Problems problems;
  EXPECT_FALSE(ReadYamlFile("no/such/file.yaml", {}, document, problems));
  ExpectGolden("LR101.txt", RenderAll(problems, "", Colour::kNever));
  EXPECT_FALSE(ReadYamlFile("/", {}, document, problems));
  EXPECT_THAT(problems.list().back().message, HasSubstr("directory"));
}

TEST(RenderTest, FollowsThePublishedForm) {
  Problem problem;
  problem.code = "LR203";
  problem.message = "unknown field `blok_size`";
  problem.file = "playbooks/varmail.yaml";
  problem.span = At(14, 7, 16);
  problem.label = "`block_rw` has no such field";
  problem.helps = {"did you mean `block_size`?"};
  std::string text(11, '\n');
  text += "rest:\n    workload: block_rw\n      blok_size: 4k\n";
  EXPECT_EQ(Render(problem, text, Colour::kNever),
            "error[LR203]: unknown field `blok_size`\n"
            "  --> playbooks/varmail.yaml:14:7\n"
            "13 |     workload: block_rw\n"
            "14 |       blok_size: 4k\n"
            "   |       ^^^^^^^^^ `block_rw` has no such field\n"
            "   = help: did you mean `block_size`?\n");
  EXPECT_THAT(Render(problem, text, Colour::kAlways), HasSubstr("\x1b[1;31merror[LR203]\x1b[0m"));
  EXPECT_EQ(Render(problem, "", Colour::kNever),
            "error[LR203]: unknown field `blok_size`\n"
            " --> playbooks/varmail.yaml:14:7\n"
            "  = help: did you mean `block_size`?\n");
}

TEST(RenderTest, LongLinesAreCutAroundTheCaret) {
  Problem problem;
  problem.span = At(1, 501, 504);
  const std::string text = std::string(500, 'a') + "XYZ" + std::string(500, 'b') + "\n";
  const std::string shown = Render(problem, text, Colour::kNever);
  const std::size_t row = shown.find("1 | ");
  const std::size_t marks = shown.find("  | ");
  ASSERT_NE(row, std::string::npos);
  EXPECT_LT(shown.size(), 300u);
  EXPECT_EQ(shown.find("XYZ") - row, shown.find("^^^") - marks);
}

TEST(RenderTest, ControlCharactersDoNotReachTheTerminal) {
  const std::string text = "a: \x1b[31m\xff\tb\n";
  const Read read = ReadText(text);
  const std::string shown = RenderAll(read.problems, text, Colour::kNever);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_EQ(shown.find('\xff'), std::string::npos);
  EXPECT_EQ(Quote("a\x1b\nb"), "`a? b`");
  EXPECT_EQ(Quote(std::string(100, 'x')), "`" + std::string(60, 'x') + "...`");
}

TEST(RenderTest, AllAreSortedByPlaceAndCounted) {
  Problems problems;
  for (std::size_t line : {0u, 3u, 1u, 2u}) {
    Problem problem;
    problem.code = "LR20" + std::to_string(line);
    problem.file = "f";
    problem.span = At(line, 1, 2);
    problems.Add(problem);
  }
  const std::string shown = RenderAll(problems, "a\nb\nc\n", Colour::kNever);
  EXPECT_LT(shown.find("LR201"), shown.find("LR202"));
  EXPECT_LT(shown.find("LR203"), shown.find("LR200"));
  EXPECT_THAT(shown, HasSubstr("\n4 errors; nothing was started.  More: labrack explain LR201\n"));
  EXPECT_EQ(RenderAll(Problems(), "", Colour::kNever), "");
}

TEST(ProblemsTest, KeepsAtMostFiftyAndCountsAll) {
  Problems problems;
  for (int i = 0; i < 73; ++i) problems.Add(Problem());
  EXPECT_EQ(problems.total(), 73u);
  EXPECT_THAT(problems.list(), SizeIs(Problems::kKeptMax));
  EXPECT_THAT(RenderAll(problems, "", Colour::kNever),
              HasSubstr("73 errors (the first 50 shown); nothing was started."));
}

TEST(Utf8Test, BytesThatAreNoTextBecomeQuestionMarks) {
  EXPECT_EQ(AsUtf8(""), "");
  EXPECT_EQ(AsUtf8("caf\xc3\xa9 \xe2\x82\xac\n"), "caf\xc3\xa9 \xe2\x82\xac\n");
  EXPECT_EQ(AsUtf8("caf\xe9!"), "caf?!");
  EXPECT_EQ(AsUtf8("\xa9 cut off \xe2\x82"), "? cut off ??");
}

TEST(NearestTest, FindsSlipsAndNothingElse) {
  const std::vector<std::string> names{"stream", "random", "sync_pages", "block", "file"};
  EXPECT_EQ(Nearest("blok", names), "block");
  EXPECT_EQ(Nearest("bolck", names), "block");  // a swap is one step
  EXPECT_EQ(Nearest("Stream", names), "stream");
  EXPECT_EQ(Nearest("syncpages", names), "sync_pages");
  EXPECT_EQ(Nearest("radnmo", names), "random");
  EXPECT_EQ(Nearest("fi", names), "");
  EXPECT_EQ(Nearest("write", names), "");
  EXPECT_EQ(Nearest("", names), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'a'), names), "");
}

TEST(CodesTest, AreUniqueAscendingAndExplained) {
  std::string_view before;
  for (const CodeText& code : AllCodes()) {
    EXPECT_THAT(std::string(code.code), ::testing::AnyOf(StartsWith("LR"), StartsWith("LW")));
    EXPECT_LT(before, code.code);
    EXPECT_FALSE(code.title.empty());
    EXPECT_FALSE(code.text.empty());
    before = code.code;
  }
}

TEST(CodesTest, EveryCodeInTheSourcesIsExplained) {
  std::set<std::string> explained;
  for (const CodeText& code : AllCodes()) explained.emplace(code.code);
  const std::regex quoted("\"(LR[0-9]{3})\"");
  std::size_t used = 0;
  for (const char* folder : {"storage", "proto", "agent", "controller"}) {
    const std::filesystem::path top = std::filesystem::path(LABRACK_SOURCE_DIR) / folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      if (entry.path().extension() != ".cc") continue;
      const std::string text = labrack::ReadText(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it) {
        EXPECT_TRUE(explained.contains((*it)[1].str())) << (*it)[1] << " in " << entry.path();
        ++used;
      }
    }
  }
  EXPECT_GT(used, 40u);
}

}  // namespace
}  // namespace labrack::config
