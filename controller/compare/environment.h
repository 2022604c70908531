// What stood around the figures: a line a host, every difference between hosts, between trials and
// between two runs, and the reasons to read the figures with care.
#pragma once

#include <vector>

#include "controller/compare/series.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// Lines and differences; those of one host carry its name, differences none. `runs` has one run, or
// base and test.
void AddEnvironment(const std::vector<const RunView*>& runs, v1::Report& report);

// Warnings of the workers, each once a cell with the number of trials, and those of the comparison
// itself: LW201 overlap, LW202 skew, LW203 clean-up, LW204 stand-in, LW205 hosts differ, LW206
// rebooted in the run, LW207 virtual time, LW208 too many hosts for rows of their own.
void AddWarnings(const std::vector<const RunView*>& runs, v1::Report& report);

constexpr double kOverlapMin = 0.95;
constexpr std::int64_t kStartSkewMaxNs = 5'000'000;

}  // namespace labrack::compare
