// labrack version.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "controller/cli/output.h"
#include "controller/cli/verb.h"
#include "storage/base/version.h"

namespace labrack::cli {
namespace {

ExitCode PrintVersion(const Call& call) {
  if (call.arguments.Flag("json")) {
    const nlohmann::json json = {{"version", Version()},
                                 {"commit", GitCommit()},
                                 {"protocol", "labrack.v1"},
                                 {"compiler", __VERSION__}};
    WriteOut(json.dump(2) + "\n");
  } else {
    WriteOut(fmt::format("labrack {} ({})\n", Version(), GitCommit()));
  }
  return ExitCode::kPassed;
}

}  // namespace

const Verb& VersionVerb() {
  static const Verb verb = {.name = "version",
                            .group = "self",
                            .summary = "which labrack this is",
                            .details = "",
                            .operands = {},
                            .options = {JsonFlag()},
                            .run = PrintVersion};
  return verb;
}

}  // namespace labrack::cli
