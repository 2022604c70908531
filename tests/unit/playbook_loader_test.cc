// Goal: a playbook's text becomes the cells that it says, or all its problems at their places; what
// could be misread is never read.
// Method: one file per problem code with its printed form as a golden file; small texts whose cells
// are listed; hostile texts; and the shipped playbooks.
#include "controller/plan/playbook_loader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/digest.h"
#include "controller/plan/planner.h"
#include "storage/base/clock.h"
#include "storage/base/random.h"
#include "tests/unit/golden.h"

namespace labrack::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::PlaybookSource Source(const std::string& text, std::vector<std::string> set = {},
                          std::uint32_t trials = 0) {
  v1::PlaybookSource source;
  source.set_file("test.yaml");
  source.set_text(text);
  for (std::string& option : set) source.add_set(std::move(option));
  source.set_trials(trials);
  return source;
}

std::string Render(const config::Problems& problems, const std::string& text) {
  return config::RenderAll(problems, text, config::Colour::kNever);
}

LoadedPlaybook LoadRight(const v1::PlaybookSource& source) {
  auto loaded = LoadPlaybook(source);
  EXPECT_TRUE(loaded) << Render(loaded.error(), source.text());
  return loaded ? *loaded : LoadedPlaybook();
}

// "LR301 message", in the order in which they are kept.
std::vector<std::string> Wrong(const v1::PlaybookSource& source) {
  const auto loaded = LoadPlaybook(source);
  std::vector<std::string> found;
  if (loaded) return found;
  for (const config::Problem& problem : loaded.error().list()) {
    found.push_back(problem.code + " " + problem.message);
  }
  return found;
}

// "STACK/WORKLOAD a=1 b=2", one a cell.
std::vector<std::string> CellsOf(const LoadedPlaybook& playbook) {
  std::vector<std::string> names;
  for (const ExpandedCell& cell : playbook.cells) {
    std::string name = cell.stack.name() + "/" + cell.workload.name();
    for (const auto& [axis, value] : cell.parameters) name += " " + axis + "=" + value;
    names.push_back(std::move(name));
  }
  return names;
}

constexpr const char* kStacks =
    "playbook: test\n"
    "stacks: {one: {host: {dir: {}}}, two: {host: {ext4: {}}}}\n";

class LoaderGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(LoaderGolden, ProblemsPrintAsTheirGoldenFile) {
  const std::string name = GetParam();
  v1::PlaybookSource source = Source(ReadText(GoldenPath("plan/" + name + ".yaml")));
  source.set_file(name + ".yaml");
  if (name == "LR303") {
    for (const char* option :
         {"trails=10", "block", "vars.sise=1GiB", "workloads.pagse.copy.file=1GiB", "trials.x=1",
          "gates[3].by=2x", "size=[1GiB"}) {
      source.add_set(option);
    }
  }
  const auto loaded = LoadPlaybook(source);
  ASSERT_FALSE(loaded);
  if (name.starts_with("LR")) {
    for (const config::Problem& problem : loaded.error().list()) EXPECT_EQ(problem.code, name);
  }
  ExpectGolden("plan/" + name + ".txt", Render(loaded.error(), source.text()));
}

INSTANTIATE_TEST_SUITE_P(Codes, LoaderGolden,
                         ::testing::Values("LR301", "LR302", "LR303", "LR304", "LR305", "LR306",
                                           "LR307", "LR308", "LR310", "LR311", "LR312", "LR320",
                                           "LR321", "LR322", "LR323", "LR324", "LR325", "LR330",
                                           "LR331", "LR332", "LR334", "LR335", "LR340", "LR341",
                                           "LR342", "LR343", "LR344", "LR345", "LR346", "LR347",
                                           "LR348", "volumes", "models", "six", "layers"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Loader, SixMistakesAreSixErrors) {
  const auto loaded = LoadPlaybook(Source(ReadText(GoldenPath("plan/six.yaml"))));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().total(), 6U);
}

TEST(Loader, HostileTextsGiveOneErrorEach) {
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    const char before = static_cast<char>(c - 1);
    laughs += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) laughs += (i == 0 ? "*" : ", *") + std::string(1, before);
    laughs += "]\n";
  }
  const std::string rest = std::string(kStacks) + "workloads: {w: {copy: {}}}\n";
  const std::vector<std::pair<std::string, std::string>> texts{
      {"LR106", "playbook: \"test\n" + rest},
      {"LR113", rest + "trials: 4\ntrials: 5\n"},
      {"LR109", rest + "---\nplaybook: second\n"},
      {"LR115", "playbook: " + std::string(600, '[')},
      {"LR110", laughs},
      {"LR104", ""},
      {"LR105", "playbook: a: b\n"},
  };
  for (const auto& [code, text] : texts) {
    const auto loaded = LoadPlaybook(Source(text));
    ASSERT_FALSE(loaded) << code;
    std::vector<std::string> syntax;
    for (const config::Problem& problem : loaded.error().list()) {
      if (problem.code < "LR2") syntax.push_back(problem.code);
    }
    EXPECT_THAT(syntax, ElementsAre(code));
    if (code != "LR110") EXPECT_EQ(loaded.error().total(), 1U) << code;
  }
}

TEST(Loader, CellsAreStacksTimesWorkloads) {
  const LoadedPlaybook playbook = LoadRight(
      Source(std::string(kStacks) + "workloads: {w: {copy: {file: 1MiB}}, v: {files: {}}}\n"));
  EXPECT_THAT(CellsOf(playbook), ElementsAre("one/w", "two/w", "one/v", "two/v"));
  EXPECT_EQ(playbook.playbook.trials(), 6U);
  EXPECT_EQ(playbook.cells.at(0).disks.size(), 1ULL << 30);
  EXPECT_EQ(playbook.cells.at(0).workload.copy().block(), 128U << 10);
}

TEST(Loader, AxesMultiplyOnlyWhatUsesThem) {
  const LoadedPlaybook playbook = LoadRight(
      Source("playbook: test\n"
             "matrix: {disk: [1GiB, 2GiB], block: [4KiB, 1MiB], inode: [\"16384\", \"65536\"]}\n"
             "disks: {size: \"${disk}\"}\n"
             "stacks:\n"
             "  dir: {host: {dir: {}}}\n"
             "  ext4: {host: {ext4: {mkfs_options: [-i, \"${inode}\"]}}}\n"
             "  xfs: {host: {xfs: {}}}\n"
             "workloads:\n"
             "  plain: {copy: {file: 1MiB}}\n"
             "  blocks: {stream: {file: 1MiB, block: \"${block}\"}}\n"));
  EXPECT_THAT(
      CellsOf(playbook),
      ElementsAre("dir/plain", "ext4/plain disk=1GiB inode=16384",
                  "ext4/plain disk=1GiB inode=65536", "ext4/plain disk=2GiB inode=16384",
                  "ext4/plain disk=2GiB inode=65536", "xfs/plain disk=1GiB",
                  "xfs/plain disk=2GiB",  //
                  "dir/blocks block=4KiB", "ext4/blocks disk=1GiB block=4KiB inode=16384",
                  "ext4/blocks disk=1GiB block=4KiB inode=65536",
                  "ext4/blocks disk=2GiB block=4KiB inode=16384",
                  "ext4/blocks disk=2GiB block=4KiB inode=65536", "xfs/blocks disk=1GiB block=4KiB",
                  "xfs/blocks disk=2GiB block=4KiB",  //
                  "dir/blocks block=1MiB", "ext4/blocks disk=1GiB block=1MiB inode=16384",
                  "ext4/blocks disk=1GiB block=1MiB inode=65536",
                  "ext4/blocks disk=2GiB block=1MiB inode=16384",
                  "ext4/blocks disk=2GiB block=1MiB inode=65536", "xfs/blocks disk=1GiB block=1MiB",
                  "xfs/blocks disk=2GiB block=1MiB"));
  EXPECT_EQ(playbook.cells.at(4).disks.size(), 2ULL << 30);
  EXPECT_THAT(playbook.cells.at(4).stack.host().ext4().mkfs_options(), ElementsAre("-i", "65536"));
  EXPECT_EQ(playbook.cells.at(4).stack.name(), "ext4");
  EXPECT_EQ(playbook.cells.back().workload.stream().block(), 1U << 20);
  EXPECT_EQ(playbook.cells.back().conditions, "block=1MiB");
}

TEST(Loader, AnAxisOfStackAndWorkloadHasOneValueInACell) {
  const LoadedPlaybook playbook =
      LoadRight(Source("playbook: test\nmatrix: {size: [\"512\", \"1024\"]}\n"
                       "stacks: {xfs: {host: {xfs: {mkfs_options: [-i, \"size=${size}\"]}}}}\n"
                       "workloads: {w: {files: {size: \"${size}B\"}}}\n"));
  EXPECT_THAT(CellsOf(playbook), ElementsAre("xfs/w size=512", "xfs/w size=1024"));
  EXPECT_EQ(playbook.cells.at(1).workload.files().size(), 1024U);
  EXPECT_EQ(playbook.cells.at(1).stack.host().xfs().mkfs_options(1), "size=1024");
}

TEST(Loader, FiltersTakeCellsOut) {
  const std::string text = std::string(kStacks) +
                           "matrix: {block: [4KiB, 8KiB]}\n"
                           "workloads: {w: {copy: {block: \"${block}\"}}, v: {files: {}}}\n";
  EXPECT_THAT(
      CellsOf(LoadRight(Source(text + "exclude: [{stack: one, with: {block: 8KiB}}]\n"))),
      ElementsAre("one/w block=4KiB", "two/w block=4KiB", "two/w block=8KiB", "one/v", "two/v"));
  EXPECT_THAT(CellsOf(LoadRight(Source(
                  text + "include: [{stack: one}, {workload: v}]\nexclude: [{workload: w}]\n"))),
              ElementsAre("one/v", "two/v"));
}

TEST(Loader, AGateNeedsItsCells) {
  EXPECT_THAT(
      Wrong(Source(std::string(kStacks) +
                   "workloads: {w: {copy: {}}, v: {copy: {}}}\n"
                   "exclude: [{stack: two, workload: w}]\n"
                   "gates: [{faster: two, than: one, on: w}, {same: two, as: one, on: v}]\n")),
      ElementsAre("LR310 `w` is not run on stack `two`"));
}

TEST(Loader, EveryCodeIsExplained) {
  std::set<std::string> explained;
  for (const config::CodeText& code : config::AllCodes()) explained.emplace(code.code);
  const std::regex pattern("\"(LR[0-9]+)\"");
  std::set<std::string> used;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(LABRACK_SOURCE_DIR) / "controller/plan")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = ReadText(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
      used.insert((*at)[1]);
    }
  }
  EXPECT_GT(used.size(), 30U);
  for (const std::string& code : used) EXPECT_TRUE(explained.contains(code)) << code;
}

TEST(Loader, VariablesAreChangedBySet) {
  const std::string text = std::string(kStacks) +
                           "vars: {size: 8MiB, word: a}\n"
                           "workloads: {w: {copy: {file: \"${size}\"}}, "
                           "x: {exec: {command: [tool, \"pre-${word}-$${word}\"]}}}\n";
  EXPECT_EQ(LoadRight(Source(text, {"size=2MiB"})).cells.at(0).workload.copy().file(), 2U << 20);
  EXPECT_EQ(LoadRight(Source(text, {"vars.size=2MiB"})).cells.at(0).workload.copy().file(),
            2U << 20);
  EXPECT_EQ(LoadRight(Source(text, {"word=b"})).cells.at(2).workload.exec().command(1),
            "pre-b-${word}");
}

TEST(Loader, FieldsAreChangedBySet) {
  const std::string text =
      std::string(kStacks) + "workloads: {w.x: {copy: {}}}\ngates: [{verified: all}]\n";
  EXPECT_EQ(LoadRight(Source(text, {"trials=10"})).playbook.trials(), 10U);
  EXPECT_EQ(LoadRight(Source(text, {"trials=10"}, 12)).playbook.trials(), 12U);
  EXPECT_EQ(LoadRight(Source(text, {"hosts.min=3"})).playbook.hosts().min(), 3U);
  EXPECT_EQ(
      LoadRight(Source(text, {"hosts.match={role: bench}"})).playbook.hosts().match().at("role"),
      "bench");
  EXPECT_EQ(
      LoadRight(Source(text, {"workloads.w.x.copy.file=1MiB"})).cells.at(0).workload.copy().file(),
      1U << 20);
  EXPECT_EQ(LoadRight(Source(text, {"gates[0].host=h"})).playbook.gates(0).host(), "h");
}

TEST(Loader, AnAxisIsNarrowedBySet) {
  const std::string text = std::string(kStacks) +
                           "matrix: {block: [4KiB, 8KiB]}\n"
                           "workloads: {w: {copy: {block: \"${block}\"}}}\n";
  EXPECT_THAT(LoadRight(Source(text, {"block=16KiB"})).cells, SizeIs(2));
  EXPECT_THAT(LoadRight(Source(text, {"block=[4KiB, 8KiB, 16KiB]"})).cells, SizeIs(6));
}

TEST(Loader, ProblemsOfTheCommandLineNameTheOption) {
  const std::string text =
      std::string(kStacks) + "vars: {b: 4KiB}\nworkloads: {w: {copy: {block: \"${b}\"}}}\n";
  const auto loaded =
      LoadPlaybook(Source(text, {"disks.size=4k", "workloads.w.copy.blok=1"}, 5000));
  ASSERT_FALSE(loaded);
  std::set<std::string> files;
  for (const config::Problem& problem : loaded.error().list()) {
    files.insert(problem.file);
    EXPECT_EQ(problem.span, config::Span());
  }
  EXPECT_THAT(files,
              ElementsAre("--set disks.size=4k", "--set workloads.w.copy.blok=1", "--trials 5000"));
}

TEST(Loader, ProblemsOfCellsNameTheirValuesOnce) {
  const auto loaded =
      LoadPlaybook(Source(std::string(kStacks) +
                          "matrix: {block: [4KiB, 4k, 8MiB]}\n"
                          "workloads: {w: {stream: {file: 1MiB, block: \"${block}\"}}}\n"));
  ASSERT_FALSE(loaded);
  ASSERT_EQ(loaded.error().total(), 1U);  // block > file is not looked at while a value is wrong
  EXPECT_THAT(loaded.error().list()[0].notes, ElementsAre("`${block}` is `4k` here"));
}

TEST(Loader, JobFilesComeFromTheAttachments) {
  const std::string text = std::string(kStacks) +
                           "vars: {dir: jobs}\nmatrix: {mode: [read, write]}\n"
                           "workloads: {w: {fio: {job_file: \"${dir}/${mode}.fio\"}}}\n";
  EXPECT_THAT(AttachmentPaths(text), ElementsAre("jobs/read.fio", "jobs/write.fio"));
  EXPECT_THAT(AttachmentPaths(Source(text, {"dir=x"})), ElementsAre("x/read.fio", "x/write.fio"));
  v1::PlaybookSource source = Source(text);
  (*source.mutable_attachments())["jobs/read.fio"] = "[r]\nsize=1m\n";
  EXPECT_THAT(Wrong(source), ElementsAre("LR331 the job file `jobs/write.fio` cannot be read"));
  (*source.mutable_attachments())["jobs/write.fio"] = "[w]\nsize=1m\n";
  const LoadedPlaybook playbook = LoadRight(source);
  EXPECT_EQ(playbook.cells.at(0).workload.fio().job(), "[r]\nsize=1m\n");
  EXPECT_EQ(playbook.cells.at(2).workload.fio().job(), "[w]\nsize=1m\n");
  EXPECT_THAT(AttachmentPaths("{["), IsEmpty());
  EXPECT_THAT(AttachmentPaths("[]"), IsEmpty());
}

TEST(Loader, JobFilesOutsideOfThePlaybooksDirectoryAreRefused) {
  const auto text = [](const std::string& file) {
    return std::string(kStacks) + "workloads: {w: {fio: {job_file: \"" + file + "\"}}}\n";
  };
  // Also where somebody has sent them along.
  for (const std::string file : {"/etc/hosts", "../x.fio", "a/../../x.fio", ".."}) {
    v1::PlaybookSource source = Source(text(file));
    (*source.mutable_attachments())[file] = "[r]\nsize=1m\n";
    EXPECT_THAT(Wrong(source), ElementsAre("LR331 the job file `" + file +
                                           "` is outside of the playbook's directory"));
  }
  v1::PlaybookSource inside = Source(text("a/../x.fio"));
  (*inside.mutable_attachments())["a/../x.fio"] = "[r]\nsize=1m\n";
  EXPECT_EQ(LoadRight(inside).cells.at(0).workload.fio().job(), "[r]\nsize=1m\n");
  const auto linked = LoadPlaybook(inside, {{"a/../x.fio", "a symbolic link leads to /etc"}});
  ASSERT_FALSE(linked);
  EXPECT_THAT(linked.error().list().at(0).notes, ElementsAre("a symbolic link leads to /etc"));
}

TEST(Loader, TheDigestCoversEverything) {
  std::set<std::string> digests;
  v1::PlaybookSource source = Source("playbook: x\n");
  digests.insert(DigestOf(source));
  source.add_set("a=b");
  digests.insert(DigestOf(source));
  source.set_trials(3);
  digests.insert(DigestOf(source));
  (*source.mutable_attachments())["a"] = "b";
  digests.insert(DigestOf(source));
  EXPECT_EQ(digests.size(), 4U);
  EXPECT_EQ(digests.begin()->size(), 64U);
}

TEST(Loader, AWrongPartMutesWhatBuildsOnIt) {
  // The gate is right but for the workload's own mistake; the stack's block is not judged.
  EXPECT_THAT(Wrong(Source(std::string(kStacks) +
                           "workloads: {w: {stream: {file: 4k, block: 1MiB, direct: true}}}\n"
                           "gates: [{faster: one, than: two, on: w}]\n")),
              ElementsAre("LR206 `4k` can be read in two ways"));
  // What the disks are is not known: neither their number nor their size is judged.
  EXPECT_THAT(Wrong(Source("playbook: test\ndisks: {size: 4k}\n"
                           "stacks: {one: {host: {btrfs: {data: raid5}}}}\n"
                           "workloads: {w: {copy: {}}}\n")),
              ElementsAre("LR206 `4k` can be read in two ways"));
}

std::string ManyCells(int first, int second) {
  const auto list = [](int count) {
    std::string values;
    for (int i = 1; i <= count; ++i) values += (i == 1 ? "" : ", ") + std::to_string(i) + "MiB";
    return "[" + values + "]";
  };
  return "playbook: many\ndisks: {size: 4GiB}\nstacks: {one: {host: {ext4: {}}}}\nmatrix: {a: " +
         list(first) + ", b: " + list(second) +
         "}\nworkloads: {w: {copy: {file: \"1${a}\", block: \"${b}\"}}}\n";
}

TEST(Loader, CellsAreBounded) {
  EXPECT_THAT(LoadRight(Source(ManyCells(30, 10))).cells, SizeIs(300));
  const std::string three =
      std::string(kStacks) +
      "matrix: {a: [1, 2, 3, 4, 5, 6, 7, 8, 9], b: [1, 2, 3, 4, 5, 6, 7, 8, 9], "
      "c: [1, 2, 3, 4, 5, 6, 7, 8, 9], d: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n"
      "workloads: {w: {files: {files: \"${a}\", size: \"${b}KiB\", "
      "clients: \"${c}\", per_directory: \"${d}\"}}}\n";
  EXPECT_THAT(Wrong(Source(three)), ElementsAre("LR306 the playbook has more than 10000 cells"));
}

// Whatever is done to a text, loading it ends, in a plan or in problems within the text.
class LoaderMutations : public ::testing::TestWithParam<std::uint64_t> {};

std::string Mutate(std::string text, Random& random) {
  const std::vector<std::string> pieces{
      "${",     "}",  "${size}",     "[",   "{}",   "\n",      ": ", "- ", "4k", "0", "gates",
      "matrix", "\"", "99999999999", "../", "${a}", "exclude", "#",  "\t", "&a", "é"};
  for (std::uint64_t i = 0, edits = 1 + random.Below(4); i < edits && !text.empty(); ++i) {
    const std::size_t at = random.Below(text.size());
    const std::size_t length = std::min<std::size_t>(random.Below(12), text.size() - at);
    switch (random.Below(3)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, pieces[random.Below(pieces.size())]);
        break;
      default:
        text.insert(random.Below(text.size()), text.substr(at, length));
    }
  }
  return text;
}

TEST_P(LoaderMutations, EndInAPlanOrInProblemsWithinTheText) {
  Random random(Seed{GetParam()});
  std::vector<std::string> texts;
  for (const char* name : {"layers", "LR301", "LR305", "LR307", "LR310", "LR311", "LR320"}) {
    texts.push_back(ReadText(GoldenPath("plan/" + std::string(name) + ".yaml")));
  }
  texts.push_back(ReadText(std::filesystem::path(LABRACK_SOURCE_DIR) / "playbooks/copy.yaml"));
  for (int i = 0; i < 20; ++i) {
    v1::PlaybookSource source = Source(Mutate(texts[random.Below(texts.size())], random));
    if (random.Chance(0.5)) source.add_set(Mutate("workloads.w.copy.file=1MiB", random));
    const auto loaded = LoadPlaybook(source);
    if (loaded) {
      EXPECT_FALSE(loaded->cells.empty()) << source.text();
      const auto plan = MakePlan(*loaded, {}, Seed{1});
      EXPECT_FALSE(plan);  // no hosts
      continue;
    }
    const auto lines = static_cast<std::size_t>(std::ranges::count(source.text(), '\n')) + 1;
    for (const config::Problem& problem : loaded.error().list()) {
      EXPECT_LE(problem.span.begin.line, lines) << source.text();
      EXPECT_LE(problem.span.end.line, lines) << source.text();
      EXPECT_TRUE(problem.file == "test.yaml" || problem.file.starts_with("--")) << problem.file;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, LoaderMutations, ::testing::Range<std::uint64_t>(1, 41));

std::vector<std::string> ShippedPlaybooks() {
  std::vector<std::string> names;
  const auto folder = std::filesystem::path(LABRACK_SOURCE_DIR) / "playbooks";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    names.push_back(std::filesystem::relative(entry.path(), folder));
  }
  std::ranges::sort(names);
  return names;
}

TEST(ShippedPlaybooks, LoadAndAreWhatTheySay) {
  EXPECT_THAT(ShippedPlaybooks(), ElementsAre("copy.yaml", "posts/post0-raid5-writes.yaml",
                                              "quickstart.yaml", "volumes.yaml"));
  for (const std::string& name : ShippedPlaybooks()) {
    const std::string text =
        ReadText(std::filesystem::path(LABRACK_SOURCE_DIR) / "playbooks" / name);
    const std::string schema = name.contains('/') ? "../schema.json" : "schema.json";
    EXPECT_THAT(text, ::testing::StartsWith("# yaml-language-server: $schema=" + schema + "\n"));
    EXPECT_THAT(LoadRight(Source(text)).cells, ::testing::Not(IsEmpty())) << name;
  }
}

TEST(ShippedPlaybooks, QuickstartIsQuick) {
  const std::string text =
      ReadText(std::filesystem::path(LABRACK_SOURCE_DIR) / "playbooks/quickstart.yaml");
  const LoadedPlaybook playbook = LoadRight(Source(text));
  FleetView fleet;
  for (const char* id : {"agent-1", "agent-2"}) {
    FleetHost host{id, true, {}};
    v1::LentDisk& disk = *host.inventory.add_disks();  // neither root nor any tool
    disk.set_kind("file");
    disk.set_capacity_bytes(10ULL << 30);
    disk.set_free_bytes(10ULL << 30);
    fleet.push_back(std::move(host));
  }
  const auto plan = MakePlan(playbook, fleet, Seed{0});
  ASSERT_TRUE(plan) << Render(plan.error().problems, text);
  EXPECT_EQ(plan->trials_size(), 54);
  EXPECT_LT(Nanoseconds(plan->duration_ns()), std::chrono::seconds(100));
  EXPECT_EQ(plan->cells(0).stand_ins_size(), 2);
}

TEST(ShippedPlaybooks, CopyShrinks) {
  const std::string text =
      ReadText(std::filesystem::path(LABRACK_SOURCE_DIR) / "playbooks/copy.yaml");
  const LoadedPlaybook small = LoadRight(Source(text, {"size=32MiB", "disk=512MiB"}, 4));
  EXPECT_EQ(small.cells.at(0).workload.stream().file(), 32U << 20);
  EXPECT_EQ(small.cells.at(0).disks.size(), 512U << 20);
}

}  // namespace
}  // namespace labrack::plan
