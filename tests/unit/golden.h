// Golden files: the printed form of something, kept under tests/unit/golden and compared whole.
// LABRACK_UPDATE_GOLDEN=1 rewrites them; the diff is then for the eye.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace labrack {

inline std::filesystem::path GoldenPath(const std::string& name) {
  return std::filesystem::path(LABRACK_SOURCE_DIR) / "tests/unit/golden" / name;
}

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void ExpectGolden(const std::string& name, const std::string& actual) {
  if (std::getenv("LABRACK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GoldenPath(name), std::ios::binary) << actual;
    return;
  }
  EXPECT_EQ(actual, ReadText(GoldenPath(name))) << "golden file " << name;
}

}  // namespace labrack
