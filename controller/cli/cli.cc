#include "controller/cli/cli.h"

#include <algorithm>
#include <csignal>
#include <unistd.h>

#include <fmt/format.h>

#include "controller/cli/output.h"
#include "controller/cli/settings.h"
#include "storage/base/config/source.h"

namespace labrack::cli {
namespace {

constexpr std::size_t kVerbColumn = 24;

std::string VerbNames(std::string_view word) {
  std::vector<std::string> names;
  for (const Verb* verb : AllVerbs()) {
    if (verb->name.starts_with(fmt::format("{} ", word))) names.emplace_back(verb->name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<FoundVerb> UnknownVerb(const std::string& word) {
  // "host" alone, or "host xyz": say which there are.
  if (const std::string grouped = VerbNames(word); !grouped.empty()) {
    return Fail(Errc::kInvalidArgument,
                fmt::format("`{}` is the first word of a verb; write one of: {}", word, grouped));
  }
  std::vector<std::string> names = {"help"};
  for (const Verb* verb : AllVerbs()) names.emplace_back(verb->name);
  const std::string nearest = config::Nearest(word, names);
  return Fail(Errc::kInvalidArgument,
              fmt::format("unknown verb `{}`; {}", word,
                          nearest.empty() ? "`labrack help` lists the verbs"
                                          : fmt::format("did you mean `{}`?", nearest)));
}

// "run PLAYBOOK".
std::string Synopsis(const Verb& verb) {
  std::string text(verb.name);
  for (const Operand& operand : verb.operands) {
    text +=
        operand.required ? fmt::format(" {}", operand.name) : fmt::format(" [{}]", operand.name);
  }
  return text;
}

int End(Voice& voice, ExitCode code) {
  voice.End(code);
  return ToInt(code);
}

int UsageError(Voice& voice, const Error& error, std::string_view verb = {}) {
  voice.Fail(error, ExitCode::kUsage,
             verb.empty() ? "labrack help" : fmt::format("labrack {} --help", verb));
  return End(voice, ExitCode::kUsage);
}

// Whether the words ask for NDJSON, seen before they are read as options: what is wrong with them
// must be said in that form too. `verb` may not have been found.
bool AsksForJson(const Verb* verb, const std::vector<std::string>& words,
                 const Environment& environment) {
  const auto stop = std::ranges::find(words, "--");
  for (auto word = words.begin(); word != stop; ++word) {
    if (word->starts_with("--progress=")) return *word == "--progress=json";
    if (*word == "--progress") return word + 1 != stop && word[1] == "json";
  }
  const auto is_progress = [](const Option& option) { return option.name == "progress"; };
  if (verb == nullptr || std::ranges::none_of(verb->options, is_progress)) return false;
  const auto variable = environment.find(VariableName("progress"));
  return variable != environment.end() && variable->second == "json";
}

Voice::Form FormOf(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.Knows("progress") && arguments.Text("progress") == "json") return {.json = true};
  return {.colour = terminal.error_colour};
}

// Options of all verbs: what a configuration file may set.
std::vector<Option> AllOptions() {
  std::vector<Option> all = CommonOptions();
  for (const Verb* verb : AllVerbs()) {
    for (const Option& option : verb->options) {
      const auto same = [&](const Option& other) { return other.name == option.name; };
      const auto known = std::ranges::find_if(all, same);
      if (known == all.end()) {
        all.push_back(option);
      } else if (option.sources == Sources::kAll) {
        *known = option;
      }
    }
  }
  return all;
}

bool LoadSettings(const Environment& environment, SettingMap& settings, Voice& voice) {
  bool right = true;
  const std::vector<Option> declared = AllOptions();
  for (const std::string& file : SettingFiles(environment)) {
    config::Document document;
    config::Problems problems;
    if (ReadSettings(file, declared, document, settings, problems)) continue;
    right = false;
    voice.Refuse(problems, document.text);
  }
  return right;
}

int RunVerb(const Verb& verb, const std::vector<std::string>& words,
            const Environment& environment) {
  // Asking for help must work whatever else is wrong.
  const auto stop = std::ranges::find(words, "--");
  if (std::find(words.begin(), stop, "--help") != stop ||
      std::find(words.begin(), stop, "-h") != stop) {
    WriteOut(HelpText(verb));
    return ToInt(ExitCode::kPassed);
  }
  Voice voice({.json = AsksForJson(&verb, words, environment)});
  SettingMap settings;
  if (!LoadSettings(environment, settings, voice)) return End(voice, ExitCode::kUsage);
  std::vector<Option> options = verb.options;
  options.insert(options.end(), CommonOptions().begin(), CommonOptions().end());
  const Result<Arguments> arguments =
      ReadArguments(verb.operands, options, words, environment, settings);
  if (!arguments) return UsageError(voice, arguments.error(), verb.name);
  const Terminal terminal = DetectTerminal(environment, arguments->Text("color").value_or("auto"));
  voice.Become(FormOf(*arguments, terminal));
  const Call call = {
      .arguments = *arguments, .environment = environment, .terminal = terminal, .voice = voice};
  ExitCode code = verb.run(call);
  // A table that did not reach its file must not look like a success.
  if (Result<void> written = OutputError(); !written) {
    code = FailWith(call, written.error(), ExitCode::kLabFailed);
  }
  return End(voice, code);
}

}  // namespace

Result<FoundVerb> FindVerb(const std::vector<std::string>& words) {
  const auto find = [](const std::string& name) -> const Verb* {
    const auto& verbs = AllVerbs();
    const auto found = std::ranges::find_if(verbs, [&](const Verb* v) { return v->name == name; });
    return found == verbs.end() ? nullptr : *found;
  };
  if (words.size() > 1) {
    if (const Verb* verb = find(words[0] + " " + words[1])) return FoundVerb{verb, 2};
  }
  if (const Verb* verb = find(words[0])) return FoundVerb{verb, 1};
  return UnknownVerb(words[0]);
}

std::string HelpText() {
  std::string text =
      "labrack compares storage stacks honestly: playbooks in, verdicts with intervals out.\n\n"
      "  labrack run playbooks/quickstart.yaml\n";
  std::string_view group;
  for (const Verb* verb : AllVerbs()) {
    if (verb->group != group) text += fmt::format("\n{}\n", verb->group);
    group = verb->group;
    text += fmt::format("  {:<{}}{}\n", Synopsis(*verb), kVerbColumn, verb->summary);
  }
  text +=
      "\nlabrack VERB --help says more. Values in brackets there name the variable that sets "
      "them;\n"
      "./.labrack.yaml, $XDG_CONFIG_HOME/labrack/config.yaml and /etc/labrack/client.yaml set "
      "them\n"
      "too. Exit codes: 0 passed, 1 a verdict or gate failed, 2 usage, 3 playbook invalid,\n"
      "4 inconclusive (--strict), 5 the lab failed, 6 refused by disk safety, 7 cancelled,\n"
      "8 waiting timed out, 9 nothing ran, 10 not authorised, 130/143 interrupted.\n";
  return text;
}

std::string HelpText(const Verb& verb) {
  std::string text = fmt::format("labrack {} [options]\n  {}\n", Synopsis(verb), verb.summary);
  if (!verb.details.empty()) text += fmt::format("\n{}\n", verb.details);
  text += fmt::format("\noptions\n{}{}", OptionsHelp(verb.options), OptionsHelp(CommonOptions()));
  return text;
}

int Main(const std::vector<std::string>& words, const Environment& environment) {
  // A reader that went away shows as EPIPE, not as our death in the middle of a run.
  std::signal(SIGPIPE, SIG_IGN);
  if (words.empty()) {
    WriteErr(HelpText());
    return ToInt(ExitCode::kUsage);
  }
  const Result<FoundVerb> found = FindVerb(words);
  if (found) {
    const auto rest = words.begin() + static_cast<std::ptrdiff_t>(found->words);
    return RunVerb(*found->verb, {rest, words.end()}, environment);
  }
  Voice voice({.json = AsksForJson(nullptr, words, environment)});
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    if (words.size() == 1) {
      WriteOut(HelpText());
      return ToInt(ExitCode::kPassed);
    }
    const Result<FoundVerb> explained = FindVerb({words.begin() + 1, words.end()});
    if (!explained) return UsageError(voice, explained.error());
    WriteOut(HelpText(*explained->verb));
    return ToInt(ExitCode::kPassed);
  }
  if (words[0] == "--version") return RunVerb(VersionVerb(), {}, environment);
  if (words[0].starts_with('-')) {
    return UsageError(voice, Error(Errc::kInvalidArgument,
                                   fmt::format("`{}` stands before the verb; write labrack VERB {}",
                                               words[0], words[0])));
  }
  return UsageError(voice, found.error());
}

}  // namespace labrack::cli
