// What stood around the figures: a line a host, every difference between hosts, between trials and
// between two runs, and the reasons to read the figures with care.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "labrack/v1/control.pb.h"

namespace labrack::compare {

// Name and value, in the order of print.
using Facts = std::vector<std::pair<std::string, std::string>>;

// Gathered trial by trial; nothing of a trial is needed afterwards.
class Surroundings {
 public:
  struct Host {
    std::string name;
    Facts facts;  // of the first result that has any
  };

  void Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial);

  std::vector<Host> Hosts() const;                  // by name
  void AppendWarningsTo(v1::Report& report) const;  // what one trial alone is the reason for

 private:
  // The first of a code and cell, and how many more trials had it.
  struct OfWorkers {
    v1::Warning warning;
    std::string cell;
    int trials = 0;
  };
  void AddOfWorkers(const v1::PlannedCell& cell, const v1::TrialRecord& trial);
  void AddOfTrial(const v1::PlannedCell& cell, const v1::AssignmentRecord& assignment);
  void WarnOnce(const char* code, const std::string& message, const char* cure);

  std::vector<Host> hosts_;                   // in the order of their first results
  std::set<std::string> agents_;              // that are among them
  std::map<std::string, std::string> boots_;  // by host
  std::vector<v1::Warning> warnings_;
  std::set<std::string> said_;
  std::vector<OfWorkers> of_workers_;
  std::map<std::pair<std::string, std::string>, std::size_t> places_;  // by cell and code
};

// Lines and differences; those of one host carry its name, differences none. `runs` has one run, or
// base and test.
void AddEnvironment(const std::vector<const Surroundings*>& runs, v1::Report& report);

// Warnings of the workers, each once a cell with the number of trials, and those of the comparison
// itself: LW201 overlap, LW202 skew, LW203 clean-up, LW204 stand-in, LW205 hosts differ, LW206
// rebooted in the run, LW207 virtual time, LW208 too many hosts for rows of their own.
void AddWarnings(const std::vector<const Surroundings*>& runs, v1::Report& report);

constexpr double kOverlapMin = 0.95;
constexpr std::int64_t kStartSkewMaxNs = 5'000'000;

}  // namespace labrack::compare
