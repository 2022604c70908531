// Which seeds a test runs, and how to run one of them again: LABRACK_SEED=N, and nothing else.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/base/random.h"

namespace labrack {

inline std::vector<Seed> SeedsToRun(std::uint64_t count) {
  if (const char* one = std::getenv("LABRACK_SEED")) return {Seed{std::strtoull(one, nullptr, 10)}};
  std::vector<Seed> seeds;
  for (std::uint64_t i = 0; i < count; ++i) seeds.push_back(Seed{i});
  return seeds;
}

// "replay: LABRACK_SEED=7 ctest -R ..." for SCOPED_TRACE.
inline std::string Replay(Seed seed, const std::string& program) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return "replay: LABRACK_SEED=" + std::to_string(seed.value) + " build/release/tests/" + program +
         " --gtest_filter=" + test.test_suite_name() + "." + test.name();
}

}  // namespace labrack
