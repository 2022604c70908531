// Goal: a playbook with any slip in it gives problems at places inside the file, and never a crash
// or a hang. Method: the shipped playbooks, the golden inputs and the fuzzer's corpus, mutated from
// seeds; the property of tests/fuzz/yaml_property.h. A failure names the seed, which replays alone.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/base/random.h"
#include "tests/fuzz/yaml_property.h"
#include "tests/unit/golden.h"

namespace labrack {
namespace {

constexpr std::uint64_t kSeedCount = 1500;

std::vector<std::string> Samples() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"playbooks", "tests/unit/golden", "tests/fuzz/corpus/yaml"}) {
    const std::filesystem::path whole = std::filesystem::path(LABRACK_SOURCE_DIR) / folder;
    for (const auto& entry : std::filesystem::directory_iterator(whole)) {
      if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());  // one seed, one text, on every machine
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths) texts.push_back(ReadText(path));
  return texts;
}

// One slip of the keyboard or of the editor.
void Mutate(Random& random, std::string& text) {
  static const std::vector<std::string> kTokens{
      "\"", "'", "\t", "\n", " ",   "  ",   ":",    ": ",       "- ",   ",",    "{",    "}",
      "[",  "]", "#",  "&a", "*a",  "!t ",  "<<: ", "---\n",    "...",  "%",    "|\n",  ">\n",
      "? ", "0", "4k", "-1", "1e3", "true", "null", "\xc3\xa9", "\xff", "\x01", "\r\n", "${x}"};
  const std::size_t at = random.Below(text.size() + 1);
  const std::size_t length = random.Below(std::min<std::size_t>(text.size() - at, 20) + 1);
  switch (random.Below(5)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, text.substr(at, length));
      break;
    case 2:
      if (at < text.size()) text[at] = static_cast<char>(random.Below(256));
      break;
    case 3:
      text.resize(at);
      break;
    default:
      text.insert(at, kTokens[random.Below(kTokens.size())]);
      break;
  }
}

TEST(ConfigMutationTest, EverySampleHoldsUnchanged) {
  for (const std::string& text : Samples()) EXPECT_EQ(BrokenYamlProperty(text), "") << text;
}

TEST(ConfigMutationTest, PlacesLieInsideTheFileWhateverTheSlip) {
  const std::vector<std::string> samples = Samples();
  ASSERT_GE(samples.size(), 20u);
  for (std::uint64_t seed = 1; seed <= kSeedCount; ++seed) {
    Random random(Seed{seed});
    std::string text = samples[random.Below(samples.size())];
    const std::uint64_t slips = 1 + random.Below(4);
    for (std::uint64_t i = 0; i < slips; ++i) Mutate(random, text);
    ASSERT_EQ(BrokenYamlProperty(text), "") << "seed " << seed << ":\n" << text;
  }
}

}  // namespace
}  // namespace labrack
