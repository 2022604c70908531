// A verb of the command line: one table of what it takes, one function that does it, one file
// (verb_NAME.cc). verbs.cc lists them; what several verbs share is declared here once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/lab.h"
#include "controller/cli/options.h"
#include "controller/cli/terminal.h"
#include "controller/cli/voice.h"
#include "storage/base/exit_codes.h"

namespace labrack::cli {

// One call of a verb.
struct Call {
  const Arguments& arguments;
  const Environment& environment;
  Terminal terminal;
  Voice& voice;
};

struct Verb {
  std::string_view name;     // "run", "host ls"
  std::string_view group;    // heading in help: "do", "look"
  std::string_view summary;  // one line
  std::string_view details;  // of --help: what is not obvious; may be empty
  std::vector<Operand> operands;
  std::vector<Option> options;
  ExitCode (*run)(const Call&);
};

// All verbs, in the order of help.
const std::vector<const Verb*>& AllVerbs();

const Verb& ValidateVerb();
const Verb& ExplainVerb();
const Verb& SchemaVerb();
const Verb& PlanVerb();
const Verb& RunVerb();
const Verb& CancelVerb();
const Verb& LsVerb();
const Verb& StatusVerb();
const Verb& WatchVerb();
const Verb& WaitVerb();
const Verb& ShowVerb();
const Verb& WhyVerb();
const Verb& CompareVerb();
const Verb& ExportVerb();
const Verb& HostLsVerb();
const Verb& HostShowVerb();
const Verb& DiskLsVerb();
const Verb& DiskModelsVerb();
const Verb& VersionVerb();

// --help and --color: every verb takes them.
const std::vector<Option>& CommonOptions();
// --controller and --state.
std::vector<Option> WithLabOptions(std::vector<Option> options);
// --agents, --allow-exec and --allow-dir: of verbs that start agents.
std::vector<Option> WithAgentOptions(std::vector<Option> options);
Option ProgressOption();
Option JsonFlag();

// Says the error and gives the exit code back.
ExitCode FailWith(const Call& call, const Error& error, ExitCode code);
// The same for what a controller answered.
ExitCode FailWith(const Call& call, const Error& error);

// What --state says, or the user's state directory.
Result<std::filesystem::path> StateDirectory(const Call& call);

// The exit code with which an ended run is reported.
ExitCode ExitCodeOfRun(const v1::RunSummary& summary);

}  // namespace labrack::cli
