#include "controller/cli/verb.h"

namespace labrack::cli {

const std::vector<const Verb*>& AllVerbs() {
  static const std::vector<const Verb*> verbs = {
      &ValidateVerb(), &ExplainVerb(), &SchemaVerb(),     &PlanVerb(),   &RunVerb(),
      &CancelVerb(),   &LsVerb(),      &StatusVerb(),     &WatchVerb(),  &WaitVerb(),
      &ShowVerb(),     &WhyVerb(),     &CompareVerb(),    &ExportVerb(), &HostLsVerb(),
      &HostShowVerb(), &DiskLsVerb(),  &DiskModelsVerb(), &VersionVerb()};
  return verbs;
}

const std::vector<Option>& CommonOptions() {
  static const std::vector<Option> options = {
      {.name = "help", .help = "this text"},
      {.name = "color",
       .kind = ValueKind::kChoice,
       .value = "WHEN",
       .help = "auto, always or never; auto heeds NO_COLOR and the terminal",
       .sources = Sources::kAll,
       .choices = {"auto", "always", "never"}}};
  return options;
}

std::vector<Option> WithLabOptions(std::vector<Option> options) {
  options.push_back({.name = "controller",
                     .kind = ValueKind::kText,
                     .value = "ADDR",
                     .help = "HOST:PORT of a controller; left out: the lab on this machine",
                     .sources = Sources::kAll});
  options.push_back({.name = "state",
                     .kind = ValueKind::kText,
                     .value = "DIR",
                     .help = "directory of the lab on this machine",
                     .sources = Sources::kAll});
  return options;
}

std::vector<Option> WithAgentOptions(std::vector<Option> options) {
  options.push_back({.name = "agents",
                     .kind = ValueKind::kInteger,
                     .value = "N",
                     .help = "agents of the lab on this machine; left out: as many hosts as the "
                             "playbook needs",
                     .sources = Sources::kAll,
                     .min = 1,
                     .max = kAgentsMax});
  options.push_back({.name = "allow-exec",
                     .help = "let playbooks run commands on this machine",
                     .sources = Sources::kEnvironment});
  options.push_back({.name = "allow-dir",
                     .kind = ValueKind::kText,
                     .value = "DIR",
                     .help = "directory of this machine that `dir` stacks may name (repeatable)",
                     .repeated = true});
  return options;
}

Option ProgressOption() {
  return {.name = "progress",
          .kind = ValueKind::kChoice,
          .value = "HOW",
          .help = "auto, live, plain, json or none; on standard error",
          .sources = Sources::kAll,
          .choices = {"auto", "live", "plain", "json", "none"}};
}

Option JsonFlag() { return {.name = "json", .help = "JSON instead of a table"}; }

ExitCode FailWith(const Call& call, const Error& error, ExitCode code) {
  call.voice.Fail(error, code);
  return code;
}

ExitCode FailWith(const Call& call, const Error& error) {
  return FailWith(call, error, ExitCodeOf(error));
}

Result<std::filesystem::path> StateDirectory(const Call& call) {
  if (const std::optional<std::string> state = call.arguments.Text("state")) {
    std::error_code error;
    std::filesystem::path absolute = std::filesystem::absolute(*state, error);
    if (error) return Fail(Errc::kInvalidArgument, *state, error.message());
    return absolute;
  }
  return DefaultStateDirectory(call.environment);
}

ExitCode ExitCodeOfRun(const v1::RunSummary& summary) {
  switch (summary.state()) {
    case v1::RUN_STATE_CANCELLED:
      return ExitCode::kCancelled;
    case v1::RUN_STATE_FAILED:
      // The controller knows more: nothing ran, refused by safety.
      return summary.exit_code() > 0 ? static_cast<ExitCode>(summary.exit_code())
                                     : ExitCode::kLabFailed;
    case v1::RUN_STATE_DONE:
      return static_cast<ExitCode>(summary.exit_code());
    default:
      return ExitCode::kWaitTimedOut;
  }
}

}  // namespace labrack::cli
