// labrack ls: the runs of a catalog.
#include "controller/cli/output.h"
#include "controller/cli/records.h"
#include "controller/report/json.h"
#include "controller/report/lists.h"

namespace labrack::cli {
namespace {

ExitCode Ls(const Call& call) {
  Result<Records> records = Records::Open(call);
  if (!records) return FailWith(call, records.error(), ExitCode::kLabFailed);
  const auto limit = static_cast<std::uint32_t>(call.arguments.Integer("limit").value_or(0));
  const Result<v1::ListRunsReply> runs = records->ListRuns(limit);
  if (!runs) return FailWith(call, runs.error());
  WriteOut(call.arguments.Flag("json") ? report::FormatMessageJson("labrack.runs", *runs)
                                       : report::FormatRuns(*runs, records->unfinished()));
  return ExitCode::kPassed;
}

}  // namespace

const Verb& LsVerb() {
  static const Verb verb = {.name = "ls",
                            .group = "look",
                            .summary = "the runs, newest first",
                            .details = "",
                            .operands = {},
                            .options = WithLabOptions({JsonFlag(),
                                                       {.name = "limit",
                                                        .kind = ValueKind::kInteger,
                                                        .value = "N",
                                                        .help = "at most so many; left out: 100",
                                                        .min = 1,
                                                        .max = 100'000}}),
                            .run = Ls};
  return verb;
}

}  // namespace labrack::cli
