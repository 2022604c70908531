#include "controller/api/answers.h"

#include <algorithm>

#include "controller/compare/report.h"

namespace labrack::api {

Result<v1::ListRunsReply> AnswerListRuns(catalog::Reader& reader, std::uint32_t limit) {
  Result<std::vector<v1::RunSummary>> runs =
      reader.Runs(limit == 0 ? kListLimit : std::min(limit, kListLimitMax));
  if (!runs) return std::unexpected(runs.error());
  v1::ListRunsReply reply;
  for (v1::RunSummary& run : *runs) reply.add_runs()->Swap(&run);
  return reply;
}

Result<v1::Report> AnswerCompare(catalog::Reader& reader, const std::string& base_run,
                                 const std::string& test_run) {
  Result<v1::RunRecord> base = reader.Run(base_run);
  if (!base) return std::unexpected(base.error());
  if (test_run.empty()) return compare::MakeReport(*base, nullptr);
  Result<v1::RunRecord> test = reader.Run(test_run);
  if (!test) return std::unexpected(test.error());
  return compare::MakeReport(*base, &*test);
}

}  // namespace labrack::api
