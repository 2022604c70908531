#include "tests/bench/goals.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "storage/base/units.h"

namespace labrack::bench {
namespace {

std::string Figure(double value, const std::string& unit) {
  if (unit == "s") return fmt::format("{:.3g} s", value);
  return FormatCount(value) + (unit.empty() ? "" : " " + unit);
}

}  // namespace

double Series::Median() const {
  if (values.empty()) return 0;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::vector<Series> Interleave(int rounds, const std::vector<Measure>& measures) {
  std::vector<Series> all(measures.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < measures.size(); ++turn) {
      const std::size_t index = round % 2 == 0 ? turn : measures.size() - 1 - turn;
      Series& series = all[index];
      if (series.error) continue;
      const Result<double> value = measures[index]();
      if (value) {
        series.values.push_back(*value);
      } else {
        series.error = value.error();
      }
    }
  }
  return all;
}

const Error* Goals::Row::error() const {
  if (ours.error) return &*ours.error;
  if (peer && peer->error) return &*peer->error;
  return nullptr;
}

std::optional<double> Goals::Row::Ratio() const {
  if (!peer || error() != nullptr || peer->Median() == 0) return std::nullopt;
  return ours.Median() / peer->Median();
}

bool Goals::Row::Held() const {
  if (error() != nullptr) return false;
  const double figure = peer ? Ratio().value_or(0) : ours.Median();
  return direction == Direction::kAtLeast ? figure >= goal : figure <= goal;
}

void Goals::AddAbsolute(std::string name, std::string unit, const Series& ours, Direction direction,
                        double goal) {
  rows_.push_back({std::move(name), std::move(unit), ours, std::nullopt, direction, goal});
}

void Goals::AddRatio(std::string name, std::string unit, const Series& ours, const Series& peer,
                     Direction direction, double goal) {
  rows_.push_back({std::move(name), std::move(unit), ours, peer, direction, goal});
}

void Goals::PrintTable() const {
  constexpr const char* kLine = "{:<44} {:>16} {:>16} {:>7} {:>18}  {}\n";
  fmt::print(kLine, bench_, "ours", "peer", "ratio", "goal", "held");
  for (const Row& row : rows_) {
    const std::string sign = row.direction == Direction::kAtLeast ? ">= " : "<= ";
    const std::string goal =
        sign + (row.peer ? fmt::format("{:.3g}x", row.goal) : Figure(row.goal, row.unit));
    if (const Error* error = row.error()) {
      fmt::print("{:<44} not measured: {}\n", row.name, error->ToString());
      continue;
    }
    const std::optional<double> ratio = row.Ratio();
    fmt::print(kLine, row.name, Figure(row.ours.Median(), row.unit),
               row.peer ? Figure(row.peer->Median(), row.unit) : "-",
               ratio ? fmt::format("{:.3f}", *ratio) : "-", goal, row.Held() ? "yes" : "NO");
  }
}

bool Goals::WriteJson(const std::string& path) const {
  nlohmann::json document = {{"bench", bench_}, {"rows", nlohmann::json::array()}};
  for (const Row& row : rows_) {
    nlohmann::json entry = {
        {"name", row.name},
        {"unit", row.unit},
        {"ours", row.ours.Median()},
        {"ours_samples", row.ours.values},
        {"peer", nullptr},
        {"ratio", nullptr},
        {"goal", row.goal},
        {"goal_is", std::string(row.direction == Direction::kAtLeast ? "at_least" : "at_most") +
                        (row.peer ? "_ratio" : "")},
        {"held", row.Held()},
    };
    if (row.peer) {
      entry["peer"] = row.peer->Median();
      entry["peer_samples"] = row.peer->values;
    }
    if (const std::optional<double> ratio = row.Ratio()) entry["ratio"] = *ratio;
    if (const Error* error = row.error()) {
      entry["ours"] = nullptr;
      entry["error"] = error->ToString();
    }
    document["rows"].push_back(std::move(entry));
  }
  std::ofstream file(path, std::ios::trunc);
  file << document.dump(2) << '\n';
  file.close();
  return static_cast<bool>(file);
}

int Goals::Finish(int argc, char** argv) const {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && (words.size() != 2 || words[0] != "--json")) {
    fmt::print(stderr, "usage: bench_{} [--json FILE]\n", bench_);
    return 2;
  }
  PrintTable();
  if (!words.empty() && !WriteJson(words[1])) {
    fmt::print(stderr, "{}: cannot be written\n", words[1]);
    return 1;
  }
  const bool all_measured = std::all_of(rows_.begin(), rows_.end(),
                                        [](const Row& row) { return row.error() == nullptr; });
  return all_measured ? 0 : 1;
}

}  // namespace labrack::bench
