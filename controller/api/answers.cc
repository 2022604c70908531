#include "controller/api/answers.h"

#include <algorithm>

namespace labrack::api {
namespace {

catalog::Level LevelOf(v1::RecordLevel level) {
  switch (level) {
    case v1::RECORD_LEVEL_SUMMARY:
      return catalog::Level::kSummary;
    case v1::RECORD_LEVEL_PLAN:
      return catalog::Level::kPlan;
    case v1::RECORD_LEVEL_ASSIGNMENTS:
      return catalog::Level::kAssignments;
    default:
      return catalog::Level::kResults;
  }
}

// Trials until the page is full; the head of the run comes with the first page only.
Result<v1::RunRecord> PageOf(catalog::Reader& reader, const v1::ShowRunRequest& request) {
  const bool is_first = request.first_trial() == 0;
  Result<v1::RunRecord> page =
      reader.Run(request.run_id(), is_first ? catalog::Level::kPlan : catalog::Level::kSummary);
  if (!page) return page;
  page->clear_trials();
  std::uint64_t bytes = page->ByteSizeLong();
  Result<void> read = reader.EachTrial(request.run_id(), request.first_trial(),
                                       LevelOf(request.level()), [&](v1::TrialRecord trial) {
                                         bytes += trial.ByteSizeLong();
                                         page->add_trials()->Swap(&trial);
                                         return bytes < request.page_bytes();
                                       });
  if (!read) return std::unexpected(read.error());
  return page;
}

}  // namespace

Result<v1::ListRunsReply> AnswerListRuns(catalog::Reader& reader, std::uint32_t limit) {
  Result<std::vector<v1::RunSummary>> runs =
      reader.Runs(limit == 0 ? kListLimit : std::min(limit, kListLimitMax));
  if (!runs) return std::unexpected(runs.error());
  v1::ListRunsReply reply;
  for (v1::RunSummary& run : *runs) reply.add_runs()->Swap(&run);
  return reply;
}

Result<v1::RunRecord> AnswerShowRun(catalog::Reader& reader, const v1::ShowRunRequest& request) {
  if (request.page_bytes() == 0) return reader.Run(request.run_id(), LevelOf(request.level()));
  return reader.AtOneInstant([&] { return PageOf(reader, request); });
}

}  // namespace labrack::api
