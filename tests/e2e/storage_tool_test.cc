// Goal: labrack-storage makes, shows, checks, mends and measures sets on files, with disks in any
// order; what it is given wrongly is said once, with the file's name, and changes no disk. Method:
// the real program on small sparse files, whose bytes are compared.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "agent/exec/run.h"

namespace labrack {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StorageToolTest : public testing::Test {
 protected:
  StorageToolTest() {
    std::string name = testing::TempDir() + "labrack-storage-tool.XXXXXX";
    directory_ = fs::canonical(mkdtemp(name.data()));
  }
  ~StorageToolTest() override {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }

  void Make(const std::string& name, std::uintmax_t size = 8 << 20) {
    std::ofstream(directory_ / name).close();
    fs::resize_file(directory_ / name, size);
  }
  std::string Bytes(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(directory_ / name, std::ios::binary).rdbuf();
    return all.str();
  }
  void Damage(const std::string& name, std::streamoff at) {
    std::fstream file(directory_ / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << "damage";
  }

  exec::Outcome Run(std::vector<std::string> words) {
    exec::Command command;
    command.words = {std::string(LABRACK_BIN_DIR) + "/labrack-storage"};
    command.words.insert(command.words.end(), words.begin(), words.end());
    command.directory = directory_;
    command.timeout = std::chrono::seconds(60);
    Result<exec::Outcome> outcome = exec::Run(command);
    EXPECT_TRUE(outcome) << outcome.error().ToString();
    return outcome ? *std::move(outcome) : exec::Outcome();
  }
  // Ends in 0.
  std::string Output(std::vector<std::string> words) {
    const exec::Outcome outcome = Run(std::move(words));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
    return outcome.output;
  }

  fs::path directory_;
};

TEST_F(StorageToolTest, ASetIsMadeShownCheckedAndMeasuredInAnyOrder) {
  for (const char* name : {"a", "b", "c", "d"}) Make(name);
  EXPECT_THAT(Output({"create", "raid5", "a", "b", "c", "d", "--interlace", "16KiB"}),
              HasSubstr("made of 4 disks"));
  const auto info = nlohmann::json::parse(Output({"info", "d", "b", "a", "c", "--json"}));
  EXPECT_EQ(info["volumes"][0]["kind"], "raid5");
  EXPECT_EQ(info["volumes"][0]["interlace"], 16384);
  EXPECT_EQ(info["disks"][1]["path"], "b");
  EXPECT_EQ(info["can_start"], true);
  const auto bench = nlohmann::json::parse(Output(
      {"bench", "c", "d", "a", "b", "--write", "--duration", "200ms", "--depth", "4", "--json"}));
  EXPECT_GT(bench["operations"], 0);
  EXPECT_GT(bench["ios_per_operation"], 4);
  EXPECT_THAT(Output({"check", "d", "c", "b", "a"}), HasSubstr("0 differ"));

  Damage("b", 4 << 20);
  const exec::Outcome damaged = Run({"check", "a", "b", "c", "d"});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.output, HasSubstr("1 differ"));
}

TEST_F(StorageToolTest, AMissingDiskIsReplacedByASpareAndItsReturnChangesNothing) {
  for (const char* name : {"a", "b", "c", "spare"}) Make(name);
  Output({"create", "raid5", "a", "b", "c", "--spare", "spare", "--zeroed"});
  Output({"bench", "a", "b", "c", "spare", "--write", "--duration", "200ms"});
  EXPECT_THAT(Output({"resync", "spare", "c", "a"}), HasSubstr("in sync"));
  const std::string stale = Bytes("b");
  const auto info = nlohmann::json::parse(Output({"info", "a", "b", "c", "spare", "--json"}));
  EXPECT_EQ(info["volumes"][0]["components"][1]["of"], "disk 3");
  EXPECT_EQ(info["disks"][1]["current"], false);
  Output({"check", "b", "a", "c", "spare"});
  EXPECT_EQ(info["spares"].size(), 0u);
}

TEST_F(StorageToolTest, AFailedSubmirrorIsMadeWholeAgain) {
  for (const char* name : {"a", "b", "c", "d"}) Make(name);
  Output({"create", "mirror", "a", "b", "c", "d", "--of", "stripe", "--interlace", "16KiB"});
  Output({"resync", "a", "b", "c", "d"});
  Output({"bench", "a", "b", "c", "--write", "--duration", "200ms"});
  const exec::Outcome stale = Run({"check", "a", "b", "c", "d"});
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.output, HasSubstr("1 components are not okay"));
  Output({"resync", "a", "b", "c", "d"});
  EXPECT_THAT(Output({"check", "a", "b", "c", "d"}), HasSubstr("0 differ"));
}

TEST_F(StorageToolTest, WhatIsGivenWronglyIsSaidOnceAndChangesNoDisk) {
  for (const char* name : {"a", "b", "c", "d", "new"}) Make(name);
  Make("small", 64 << 10);
  Make("odd", (8 << 20) + 100);
  Output({"create", "mirror", "a", "b"});
  Output({"create", "stripe", "c", "d"});
  const struct {
    std::vector<std::string> words;
    int code;
    const char* says;
  } cases[] = {
      {{"create", "mirror", "new", "small"}, 2, "is too small"},
      {{"create", "raid5", "new", "a"}, 2, "it takes 3 to"},
      {{"create", "stripe", "new"}, 2, "at least two"},
      {{"create", "stripe", "new", "a", "--interlace", "1000B"}, 2, "multiple"},
      {{"create", "mirror", "new", "odd"}, 2, "odd"},
      {{"create", "mirror", "new", "new"}, 5, "new"},
      {{"create", "mirror", "new", "missing"}, 5, "missing"},
      {{"create", "mirror", "new", "a"}, 5, "a: belongs to set"},
      {{"create", "mirror", "a", "b", "c", "new", "small", "--of", "stripe"}, 2, "shared equally"},
      {{"create", "stripes", "new", "small"}, 2, "stripes"},
      {{"check", "a", "c"}, 2, "c: belongs to set"},
      {{"check", "c"}, 5, "1 of 2 disks"},
      {{"check", "new"}, 5, "new: belongs to no set"},
      {{"info", "/dev/null"}, 2, "/dev/null"},
      {{"bench", "a", "b", "--block", "100B"}, 2, "multiples"},
      {{"resync"}, 2, "disk"},
      {{}, 2, "subcommand"},
  };
  std::vector<std::string> before;
  for (const char* name : {"a", "b", "c", "d", "new", "small"}) before.push_back(Bytes(name));
  for (const auto& wrong : cases) {
    const exec::Outcome outcome = Run(wrong.words);
    EXPECT_EQ(outcome.exit_code, wrong.code) << wrong.says << ": " << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(wrong.says));
    std::size_t i = 0;
    for (const char* name : {"a", "b", "c", "d", "new", "small"}) {
      // A mirror that is assembled says so in its record; what is refused is not assembled.
      const bool assembled = !wrong.words.empty() && wrong.words[0] == "bench";
      EXPECT_TRUE(assembled || Bytes(name) == before[i]) << wrong.says << ": " << name;
      before[i++] = Bytes(name);
    }
  }
}

}  // namespace
}  // namespace labrack
