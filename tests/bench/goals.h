// What all benches share: rows of goals, medians of interleaved runs, the table and its JSON.
//
//   Goals goals("engine");
//   Samples samples = Interleave(5, {OursOnce, PeerOnce});   // A B B A A B ...
//   goals.AddRatio("random 4 KiB", "op/s", samples.at(0), samples.at(1), 0.95);
//   return goals.Finish(argc, argv);                          // prints, writes --json FILE
//
// A goal that is missed is a row that says so; the exit code is 1 only when something could not be
// measured, so that a slow machine does not look like a broken build.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/result.h"

namespace labrack::bench {

// One measurement: a figure in the row's unit, or why there is none.
using Measure = std::function<Result<double>()>;

// The figures of one measure over all rounds.
struct Series {
  std::vector<double> values = {};
  std::optional<Error> error = {};  // of the first run that failed; the measure is not run again
  double Median() const;
};

// Runs all measures `rounds` times, in turns, every other round backwards: drift hits all alike.
std::vector<Series> Interleave(int rounds, const std::vector<Measure>& measures);

enum class Direction { kAtLeast, kAtMost };

class Goals {
 public:
  explicit Goals(std::string bench) : bench_(std::move(bench)) {}

  // A goal on a figure of ours alone.
  void AddAbsolute(std::string name, std::string unit, const Series& ours, Direction direction,
                   double goal);
  // A goal on ours / peer's.
  void AddRatio(std::string name, std::string unit, const Series& ours, const Series& peer,
                Direction direction, double goal);

  // Prints the table, writes `--json FILE`, and gives main's exit code (2 for wrong arguments).
  int Finish(int argc, char** argv) const;

 private:
  struct Row {
    std::string name;
    std::string unit;
    Series ours;
    std::optional<Series> peer;
    Direction direction = Direction::kAtLeast;
    double goal = 0;

    const Error* error() const;
    std::optional<double> Ratio() const;
    bool Held() const;
  };
  void PrintTable() const;
  bool WriteJson(const std::string& path) const;

  std::string bench_;
  std::vector<Row> rows_;
};

}  // namespace labrack::bench
