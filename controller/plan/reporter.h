// Collects the problems of one playbook: each once, however many cells show it, and none about what
// is known to be wrong already.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "controller/plan/problem.h"
#include "storage/base/config/source.h"

namespace labrack::plan {

class Reporter {
 public:
  void Add(config::Problem problem) {
    const config::Position& at = problem.span.begin;
    if (!seen_.emplace(problem.code, problem.message, problem.file, at.line, at.column).second) {
      return;
    }
    problems_.Add(std::move(problem));
  }
  void Add(const Place& place, Finding finding) { Add(At(place, std::move(finding))); }

  const config::Problems& problems() const { return problems_; }
  config::Problems Take() { return std::move(problems_); }

 private:
  std::set<std::tuple<std::string, std::string, std::string, std::size_t, std::size_t>> seen_;
  config::Problems problems_;
};

}  // namespace labrack::plan
