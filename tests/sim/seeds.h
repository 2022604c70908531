// Seeds of simulations: a test runs its body once per seed; LABRACK_SEED=N runs that one alone. A
// failure names the seed and the command that replays it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "storage/base/random.h"

namespace labrack::sim {

template <typename Body>
void ForEachSeed(std::uint64_t count, const Body& body) {
  const char* asked = std::getenv("LABRACK_SEED");
  const std::uint64_t first = asked == nullptr ? 0 : std::strtoull(asked, nullptr, 10);
  const std::uint64_t end = asked == nullptr ? count : first + 1;
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const testing::ScopedTrace trace(__FILE__, __LINE__,
                                     "replay: LABRACK_SEED=" + std::to_string(seed) +
                                         " build/release/tests/" + program_invocation_short_name +
                                         " --gtest_filter=" + test->test_suite_name() + "." +
                                         test->name());
    body(Seed{seed});
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace labrack::sim
