#include "controller/api/reports.h"

#include <algorithm>
#include <utility>

#include "controller/compare/report.h"

namespace labrack::api {
namespace {

using catalog::Level;
using catalog::Reader;

Result<v1::Report> Make(Reader& reader, const v1::RunRecord& base, const v1::RunRecord* test) {
  compare::ReportMaker maker(base, test);
  Result<void> read = reader.EachTrial(base.summary().run_id(), 0, Level::kResults,
                                       [&](const v1::TrialRecord& trial) {
                                         maker.AddBase(trial);
                                         return true;
                                       });
  if (read && test != nullptr) {
    read = reader.EachTrial(test->summary().run_id(), 0, Level::kResults,
                            [&](const v1::TrialRecord& trial) {
                              maker.AddTest(trial);
                              return true;
                            });
  }
  if (!read) return std::unexpected(read.error());
  return maker.Make();
}

// An event is stored once and never changes, so that these tell which results there are. They have
// no map, so equal ones are equal bytes.
Result<void> AppendStates(Reader& reader, const std::string& run_id, std::string& states) {
  return reader.EachTrial(run_id, 0, Level::kAssignments, [&](const v1::TrialRecord& trial) {
    const std::string state = trial.SerializeAsString();
    states += std::to_string(state.size()) + ":" + state;
    return true;
  });
}

}  // namespace

Result<v1::Report> Reports::Of(Reader& reader, const std::string& base_run,
                               const std::string& test_run) {
  return reader.AtOneInstant([&]() -> Result<v1::Report> {
    const Result<v1::RunRecord> base = reader.Run(base_run, Level::kPlan);
    if (!base) return std::unexpected(base.error());
    if (test_run.empty()) return Find(reader, *base, nullptr);
    const Result<v1::RunRecord> test = reader.Run(test_run, Level::kPlan);
    if (!test) return std::unexpected(test.error());
    return Find(reader, *base, &*test);
  });
}

Result<v1::Report> Reports::Closing(Reader& reader, const std::string& run_id,
                                    v1::RunState ended_as) {
  return reader.AtOneInstant([&]() -> Result<v1::Report> {
    Result<v1::RunRecord> run = reader.Run(run_id, Level::kPlan);
    if (!run) return std::unexpected(run.error());
    run->mutable_summary()->set_state(ended_as);
    return Find(reader, *run, nullptr);
  });
}

Result<v1::Report> Reports::Find(Reader& reader, const v1::RunRecord& base,
                                 const v1::RunRecord* test) {
  Kept asked{.base_run = base.summary().run_id(),
             .test_run = test == nullptr ? "" : test->summary().run_id(),
             .made_from = {},
             .report = {}};
  Result<void> read = AppendStates(reader, asked.base_run, asked.made_from);
  if (read && test != nullptr) read = AppendStates(reader, asked.test_run, asked.made_from);
  if (!read) return std::unexpected(read.error());
  const auto known = std::ranges::find_if(kept_, [&](const Kept& kept) {
    return kept.base_run == asked.base_run && kept.test_run == asked.test_run;
  });
  if (known != kept_.end() && known->made_from == asked.made_from) {
    kept_.splice(kept_.begin(), kept_, known);
    v1::Report report = known->report;
    compare::SetRuns(base.summary(), test == nullptr ? nullptr : &test->summary(), report);
    return report;
  }
  if (known != kept_.end()) kept_.erase(known);
  Result<v1::Report> made = Make(reader, base, test);
  if (!made) return made;
  asked.report = *made;
  Keep(std::move(asked));
  return made;
}

void Reports::Keep(Kept kept) {
  kept_.push_front(std::move(kept));
  std::size_t bytes = 0;
  for (const Kept& each : kept_) bytes += each.bytes();
  while (!kept_.empty() && (kept_.size() > kKeptMax || bytes > kKeptBytesMax)) {
    bytes -= kept_.back().bytes();
    kept_.pop_back();
  }
  bytes_ = bytes;
}

}  // namespace labrack::api
