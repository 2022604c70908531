// Reports of runs that the catalog has, made trial by trial: memory holds one trial with the
// results of all its hosts, and some numbers a metric and host of those before it.
//
// Making one reads every result, which takes minutes for the largest runs, and the same question
// comes again and again: the verdict, `run` and `wait` at the end, `show` from CI. So finished
// reports are kept, each with what it was made from: the state of every trial and assignment,
// which is small. It is read for each question and must be the same, so that a result that came
// late, or a trial of a run that goes on, makes a new report. What else a report takes from a run
// (its state) is set anew each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "controller/catalog/reader.h"
#include "labrack/v1/control.pb.h"
#include "storage/base/result.h"

namespace labrack::api {

// One thread at a time, but for bytes().
class Reports {
 public:
  static constexpr std::size_t kKeptMax = 32;
  static constexpr std::size_t kKeptBytesMax = 64 << 20;

  // `test_run` empty: the stacks of one run (controller/compare/report.h).
  Result<v1::Report> Of(catalog::Reader& reader, const std::string& base_run,
                        const std::string& test_run);
  // Of a run whose trials have all ended, as it will stand in the catalog.
  Result<v1::Report> Closing(catalog::Reader& reader, const std::string& run_id,
                             v1::RunState ended_as);

  std::size_t bytes() const { return bytes_; }  // of what is kept

 private:
  struct Kept {
    std::string base_run;
    std::string test_run;
    std::string made_from;
    v1::Report report;
    std::size_t bytes() const { return made_from.size() + report.ByteSizeLong(); }
  };
  Result<v1::Report> Find(catalog::Reader& reader, const v1::RunRecord& base,
                          const v1::RunRecord* test);
  void Keep(Kept kept);

  std::list<Kept> kept_;  // the one that was used last is first
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace labrack::api
