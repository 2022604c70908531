// Goal: every code that people meet can be looked up with `labrack explain`, and every code that
// can be looked up is met. Method: the sources are searched for literals of codes.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "storage/base/config/source.h"

namespace labrack::config {
namespace {

// Code -> a file that has it as a literal of its own. The table itself does not count.
std::map<std::string, std::string> CodesInSources() {
  static const std::regex literal("\"(L[RW][0-9]{3})\"");
  std::map<std::string, std::string> found;
  const std::filesystem::path root = LABRACK_SOURCE_DIR;
  for (const char* folder : {"agent", "controller", "proto", "storage"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::filesystem::path& path = entry.path();
      if (path.extension() != ".cc" && path.extension() != ".h") continue;
      if (path.filename() == "codes.cc") continue;
      std::ifstream file(path);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      for (std::sregex_iterator it(text.begin(), text.end(), literal), end; it != end; ++it) {
        found.emplace((*it)[1], std::filesystem::relative(path, root).string());
      }
    }
  }
  return found;
}

TEST(Codes, EachCodeInTheSourcesIsInTheTableAndTheOtherWayRound) {
  const std::map<std::string, std::string> in_sources = CodesInSources();
  EXPECT_GT(in_sources.size(), 40U) << "the search finds nothing";
  std::set<std::string> in_table;
  for (const CodeText& code : AllCodes()) {
    EXPECT_TRUE(in_table.emplace(code.code).second) << code.code << " is in the table twice";
    EXPECT_FALSE(code.text.empty()) << code.code;
    EXPECT_TRUE(in_sources.contains(std::string(code.code)))
        << code.code << " is explained, but nothing says it";
  }
  for (const auto& [code, file] : in_sources) {
    EXPECT_TRUE(in_table.contains(code)) << code << " of " << file << " cannot be looked up";
  }
}

}  // namespace
}  // namespace labrack::config
