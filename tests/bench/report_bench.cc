// Goal: the report of a large run takes seconds at most, since a controller makes it between other
// answers. Method: made-up runs of 2 stacks on one host, 6 trials a cell; a third of the cells,
// then 3,000, so that a loop over pairs of cells shows as a ratio of 9 instead of 3.
#include <chrono>

#include "controller/compare/report.h"
#include "controller/report/terminal.h"
#include "tests/bench/goals.h"
#include "tests/unit/run_record_builder.h"

namespace labrack::bench {
namespace {

constexpr std::uint32_t kTrials = 6;

v1::RunRecord MakeRun(std::uint32_t cells) {
  RunRecordBuilder run("large");
  run.AddHost("st-01");
  for (std::uint32_t i = 0; i < cells; ++i) {
    run.AddCell(i % 2 == 0 ? "ext4" : "xfs", RunRecordBuilder::SyncPages("pages"),
                {RunRecordBuilder::PagesStep()}, "n=" + std::to_string(i / 2));
  }
  for (std::uint32_t repeat = 0; repeat < kTrials; ++repeat) {
    for (std::uint32_t i = 0; i < cells; ++i) {
      run.AddTrial({.cell = i, .repeat = repeat, .rate = 1000.0 + 7.0 * ((i + 3 * repeat) % 11)});
    }
  }
  return run.Build();
}

Result<double> SecondsOf(const v1::RunRecord& run) {
  const auto begin = std::chrono::steady_clock::now();
  const v1::Report report = compare::MakeReport(run, nullptr);
  const std::string table = report::FormatReport(report, report::Style());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (report.rows_size() != 2 * run.plan().cells_size() || table.empty()) {
    return Fail(Errc::kCorrupt, "the report", "it lacks rows");
  }
  return seconds.count();
}

int Main(int argc, char** argv) {
  const v1::RunRecord small = MakeRun(1000);
  const v1::RunRecord large = MakeRun(3000);
  const std::vector<Series> series =
      Interleave(3, {[&] { return SecondsOf(large); }, [&] { return SecondsOf(small); }});
  Goals goals("report");
  goals.AddAbsolute("report of 3,000 cells", "s", series[0], Direction::kAtMost, 10);
  goals.AddRatio("three times the cells", "s", series[0], series[1], Direction::kAtMost, 4.5);
  return goals.Finish(argc, argv);
}

}  // namespace
}  // namespace labrack::bench

int main(int argc, char** argv) { return labrack::bench::Main(argc, argv); }
