// labrack validate: reads a playbook and says everything that is wrong with it. Touches nothing and
// talks to nobody.
#include <fmt/format.h>

#include "controller/cli/json_lines.h"
#include "controller/cli/output.h"
#include "controller/cli/playbook_file.h"
#include "controller/cli/verb.h"
#include "controller/plan/playbook_loader.h"

namespace labrack::cli {
namespace {

ExitCode Validate(const Call& call) {
  const std::string path = call.arguments.Operand(0);
  v1::PlaybookSource source;
  plan::RefusedFiles refused;
  config::Problems problems;
  std::string valid;
  if (ReadPlaybook(path, call.arguments.All("set"),
                   static_cast<std::uint32_t>(call.arguments.Integer("trials").value_or(0)), source,
                   refused, problems)) {
    const std::expected<plan::LoadedPlaybook, config::Problems> loaded =
        plan::LoadPlaybook(source, refused);
    if (loaded) {
      valid = fmt::format("{}: valid: {} cells, {} trials of each\n", path, loaded->cells.size(),
                          loaded->playbook.trials());
    } else {
      problems = loaded.error();
    }
  }
  const std::string format = call.arguments.Text("format").value_or("text");
  if (format == "json") {
    WriteOut(ProblemsJson(path, problems));
  } else if (format == "github") {
    WriteOut(ProblemsGithub(problems));
  } else if (problems.empty()) {
    WriteOut(valid);
  } else {
    call.voice.Refuse(problems, source.text());
  }
  return problems.empty() ? ExitCode::kPassed : ExitCode::kPlaybookInvalid;
}

}  // namespace

const Verb& ValidateVerb() {
  static const Verb verb = {.name = "validate",
                            .group = "write",
                            .summary = "say everything that is wrong with a playbook",
                            .details = "Exits 0 when nothing is, else 3. Touches nothing.",
                            .operands = {{"PLAYBOOK"}},
                            .options = {{.name = "format",
                                         .kind = ValueKind::kChoice,
                                         .value = "HOW",
                                         .help = "text, json or github (workflow commands)",
                                         .choices = {"text", "json", "github"}},
                                        {.name = "set",
                                         .kind = ValueKind::kText,
                                         .value = "KEY=VALUE",
                                         .help = "as with run (repeatable)",
                                         .repeated = true},
                                        {.name = "trials",
                                         .kind = ValueKind::kInteger,
                                         .value = "N",
                                         .help = "as with run",
                                         .min = 1,
                                         .max = 1000}},
                            .run = Validate};
  return verb;
}

}  // namespace labrack::cli
