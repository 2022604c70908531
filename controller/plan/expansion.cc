#include "controller/plan/expansion.h"

#include <limits>
#include <utility>

namespace labrack::plan {

Combination Combination::Restricted(const AxisSet& axes) const {
  Combination part;
  for (const auto& [axis, value] : chosen) {
    if (axes.contains(axis)) part.chosen[axis] = value;
  }
  return part;
}

Combination Combination::With(const Combination& other) const {
  Combination both = *this;
  both.chosen.insert(other.chosen.begin(), other.chosen.end());
  return both;
}

AxisSet Matrix::UsedBy(const config::Node& node) const {
  const std::set<std::string> used = NamesIn(node);
  AxisSet axes;
  for (std::size_t i = 0; i < names_.axes.size(); ++i) {
    if (used.contains(names_.axes[i].name)) axes.insert(i);
  }
  return axes;
}

std::size_t Matrix::CountOf(const AxisSet& axes) const {
  std::size_t count = 1;
  for (std::size_t axis : axes) {
    const std::size_t values = names_.axes[axis].values.size();
    if (count > std::numeric_limits<std::size_t>::max() / values) {
      return std::numeric_limits<std::size_t>::max();
    }
    count *= values;
  }
  return count;
}

std::vector<Combination> Matrix::All(const AxisSet& axes) const {
  std::vector<Combination> all(1);
  for (std::size_t axis : axes) {
    std::vector<Combination> longer;
    for (const Combination& combination : all) {
      for (std::size_t value = 0; value < names_.axes[axis].values.size(); ++value) {
        longer.push_back(combination);
        longer.back().chosen[axis] = value;
      }
    }
    all = std::move(longer);
  }
  return all;
}

Assignment Matrix::AssignmentOf(const Combination& combination) const {
  Assignment assignment;
  for (const auto& [name, value] : names_.vars) assignment[name] = value.text;
  for (std::size_t i = 0; i < names_.axes.size(); ++i) {
    const auto chosen = combination.chosen.find(i);
    const std::size_t value = chosen == combination.chosen.end() ? 0 : chosen->second;
    assignment[names_.axes[i].name] = names_.axes[i].values[value].text;
  }
  return assignment;
}

std::vector<std::pair<std::string, std::string>> Matrix::Parameters(
    const Combination& combination) const {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const auto& [axis, value] : combination.chosen) {
    parameters.emplace_back(names_.axes[axis].name, names_.axes[axis].values[value].text);
  }
  return parameters;
}

std::string Matrix::Text(const Combination& combination) const {
  std::string text;
  for (const auto& [name, value] : Parameters(combination)) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

}  // namespace labrack::plan
