// The matrix: which axes a part of the playbook uses, and every combination of their values.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/substitution.h"

namespace labrack::plan {

// A subset of the axes, as indexes into Names::axes, ascending.
using AxisSet = std::set<std::size_t>;

// One value for each axis of a set.
struct Combination {
  std::map<std::size_t, std::size_t> chosen;  // axis -> index of its value

  // The part that concerns `axes`.
  Combination Restricted(const AxisSet& axes) const;
  Combination With(const Combination& other) const;
  friend bool operator<(const Combination& a, const Combination& b) { return a.chosen < b.chosen; }
};

class Matrix {
 public:
  explicit Matrix(const Names& names) : names_(names) {}

  AxisSet UsedBy(const config::Node& node) const;
  // Number of combinations; saturates.
  std::size_t CountOf(const AxisSet& axes) const;
  // Every combination, the last axis running fastest; one empty combination for no axes.
  std::vector<Combination> All(const AxisSet& axes) const;
  // Variables, the combination's values, and the first value of every other axis.
  Assignment AssignmentOf(const Combination& combination) const;
  // "block=4KiB size=1GiB".
  std::string Text(const Combination& combination) const;
  std::vector<std::pair<std::string, std::string>> Parameters(const Combination& combination) const;

 private:
  const Names& names_;
};

}  // namespace labrack::plan
