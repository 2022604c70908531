#include "controller/cli/options.h"

#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "storage/base/check.h"
#include "storage/base/config/source.h"
#include "storage/base/units.h"

namespace labrack::cli {
namespace {

constexpr std::size_t kHelpColumn = 26;

std::optional<bool> ParseBool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::string Shown(const Option& option) {
  return option.kind == ValueKind::kFlag ? fmt::format("--{}", option.name)
                                         : fmt::format("--{} {}", option.name, option.value);
}

std::string JoinChoices(const Option& option) {
  return fmt::format("{}", fmt::join(option.choices, ", "));
}

Result<void> CheckInteger(const Option& option, const std::string& text) {
  Result<std::int64_t> number = ParseInteger(text);
  if (!number) return Fail(Errc::kInvalidArgument, number.error().note());
  if (*number >= option.min && *number <= option.max) return {};
  if (option.max == std::numeric_limits<std::int64_t>::max()) {
    return Fail(Errc::kInvalidArgument,
                fmt::format("`{}` is too small; the least is {}", text, option.min));
  }
  return Fail(Errc::kInvalidArgument,
              fmt::format("`{}` is out of range; write {} to {}", text, option.min, option.max));
}

Result<void> CheckChoice(const Option& option, const std::string& text) {
  if (std::ranges::find(option.choices, text) != option.choices.end()) return {};
  const std::vector<std::string> names(option.choices.begin(), option.choices.end());
  const std::string nearest = config::Nearest(text, names);
  return Fail(Errc::kInvalidArgument,
              fmt::format("`{}` is none of {}{}", text, JoinChoices(option),
                          nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest)));
}

}  // namespace

const Arguments::Value& Arguments::At(std::string_view name) const {
  const auto found = values_.find(name);
  LABRACK_CHECK(found != values_.end());
  return found->second;
}

bool Arguments::Flag(std::string_view name) const {
  const Value& value = At(name);
  return !value.texts.empty() && value.texts.back() == "true";
}

std::optional<std::string> Arguments::Text(std::string_view name) const {
  const Value& value = At(name);
  if (value.texts.empty()) return std::nullopt;
  return value.texts.back();
}

std::optional<std::int64_t> Arguments::Integer(std::string_view name) const {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  return ParseInteger(*text).value();
}

std::optional<Nanoseconds> Arguments::Duration(std::string_view name) const {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  return ParseDuration(*text).value();
}

std::vector<std::string> Arguments::All(std::string_view name) const { return At(name).texts; }

const std::string& Arguments::Operand(std::size_t index) const {
  LABRACK_CHECK(index < operands_.size());
  return operands_[index];
}

std::string Arguments::Origin(std::string_view name) const { return At(name).origin; }

// One reading of a command line. A class only so that the steps share what they work on.
class ArgumentReader {
 public:
  ArgumentReader(const std::vector<Operand>& operands, const std::vector<Option>& options)
      : operands_(operands), options_(options) {}

  Result<Arguments> Read(const std::vector<std::string>& words, const Environment& environment,
                         const SettingMap& settings) {
    if (Result<void> cut = Cut(words); !cut) return std::unexpected(cut.error());
    for (const Option& option : options_) {
      if (Result<void> filled = Fill(option, environment, settings); !filled) {
        return std::unexpected(filled.error());
      }
    }
    if (Result<void> placed = PlaceOperands(); !placed) return std::unexpected(placed.error());
    return std::move(result_);
  }

 private:
  // Cuts the words into option values and operands. What follows "--" is an operand whatever it
  // looks like.
  Result<void> Cut(const std::vector<std::string>& words) {
    const auto stop = std::ranges::find(words, "--");
    std::vector<std::string> before(words.begin(), stop);
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    std::map<std::string_view, CLI::Option*> made;
    for (const Option& option : options_) made[option.name] = Declare(app, option);
    std::ranges::reverse(before);  // CLI11 takes words from the back
    try {
      app.parse(before);
    } catch (const CLI::ParseError& error) {
      return Explain(words, error.what());
    }
    for (const std::string& word : app.remaining()) {
      if (word.size() > 1 && word[0] == '-') return Unknown(word);
      words_.push_back(word);
    }
    if (stop != words.end()) words_.insert(words_.end(), stop + 1, words.end());
    for (const Option& option : options_) given_[option.name] = made[option.name]->results();
    return {};
  }

  static CLI::Option* Declare(CLI::App& app, const Option& option) {
    const std::string name = fmt::format("--{}", option.name);
    CLI::Option* made = option.kind == ValueKind::kFlag ? app.add_flag(name) : app.add_option(name);
    if (option.kind != ValueKind::kFlag) made->type_size(1)->expected(1)->allow_extra_args(false);
    return made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  // CLI11 stops at an option without its value; it names the option, we say what it takes.
  Result<void> Explain(const std::vector<std::string>& words, const std::string& what) const {
    for (const Option& option : options_) {
      const std::string name = fmt::format("--{}", option.name);
      const bool named = what.starts_with(name + ":") || what.starts_with(name + " ");
      if (named && option.kind != ValueKind::kFlag &&
          std::ranges::find(words, name) != words.end()) {
        return Fail(Errc::kInvalidArgument,
                    fmt::format("{} has no value; write {}", name, Shown(option)));
      }
      if (named && option.kind == ValueKind::kFlag) {
        return Fail(Errc::kInvalidArgument, fmt::format("{0} takes no value; write {0}", name));
      }
    }
    return Fail(Errc::kInvalidArgument, what);
  }

  Result<void> Unknown(const std::string& word) const {
    std::vector<std::string> names;
    for (const Option& option : options_) names.push_back(fmt::format("--{}", option.name));
    const std::string name = word.substr(0, word.find('='));
    std::string nearest = config::Nearest(name, names);
    // "-trials" and "-t" are near to nothing by distance alone.
    if (nearest.empty() && name.size() > 2 && name[1] != '-') {
      nearest = config::Nearest("-" + name, names);
    }
    return Fail(Errc::kInvalidArgument,
                fmt::format("unknown option `{}`; {}", name,
                            nearest.empty() ? "--help lists the options"
                                            : fmt::format("did you mean `{}`?", nearest)));
  }

  Result<void> Fill(const Option& option, const Environment& environment,
                    const SettingMap& settings) {
    Arguments::Value& value = result_.values_[std::string(option.name)];
    value = Source(option, environment, settings);
    if (value.texts.size() > 1 && !option.repeated && option.kind != ValueKind::kFlag) {
      return Fail(Errc::kInvalidArgument, fmt::format("--{} is given {} times; give it once",
                                                      option.name, value.texts.size()));
    }
    for (const std::string& text : value.texts) {
      if (Result<void> right = CheckValue(option, text); !right) {
        const std::string where = value.origin == kCommandLine
                                      ? fmt::format("--{}", option.name)
                                      : fmt::format("{} ({})", option.name, value.origin);
        return Fail(Errc::kInvalidArgument, fmt::format("{}: {}", where, right.error().note()));
      }
    }
    return {};
  }

  Arguments::Value Source(const Option& option, const Environment& environment,
                          const SettingMap& settings) const {
    const std::vector<std::string>& given = given_.at(option.name);
    if (!given.empty()) return {.texts = given, .origin = kCommandLine};
    if (option.sources == Sources::kCommandLine) return {};
    const std::string variable = VariableName(option.name);
    // An empty variable is one that is not set, as with NO_COLOR.
    const auto in_environment = environment.find(variable);
    if (in_environment != environment.end() && !in_environment->second.empty()) {
      return {.texts = {in_environment->second}, .origin = variable};
    }
    if (option.sources == Sources::kEnvironment) return {};
    const auto in_files = settings.find(std::string(option.name));
    if (in_files == settings.end()) return {};
    return {.texts = {in_files->second.text}, .origin = in_files->second.origin};
  }

  Result<void> PlaceOperands() {
    if (words_.size() > operands_.size()) {
      return Fail(Errc::kInvalidArgument,
                  fmt::format("`{}` is one word too many; quote words that belong together",
                              words_[operands_.size()]));
    }
    for (std::size_t i = words_.size(); i < operands_.size(); ++i) {
      if (!operands_[i].required) continue;
      return Fail(Errc::kInvalidArgument,
                  fmt::format("{} is missing; --help shows how it is called", operands_[i].name));
    }
    words_.resize(operands_.size());
    result_.operands_ = std::move(words_);
    return {};
  }

  static constexpr const char* kCommandLine = "command line";

  const std::vector<Operand>& operands_;
  const std::vector<Option>& options_;
  std::map<std::string_view, std::vector<std::string>> given_;
  std::vector<std::string> words_;
  Arguments result_;
};

Result<Arguments> ReadArguments(const std::vector<Operand>& operands,
                                const std::vector<Option>& options,
                                const std::vector<std::string>& words,
                                const Environment& environment, const SettingMap& settings) {
  return ArgumentReader(operands, options).Read(words, environment, settings);
}

std::string VariableName(std::string_view option) {
  std::string name = "LABRACK_";
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

Result<void> CheckValue(const Option& option, const std::string& text) {
  switch (option.kind) {
    case ValueKind::kFlag:
      if (ParseBool(text)) return {};
      return Fail(Errc::kInvalidArgument, fmt::format("`{}` is neither true nor false", text));
    case ValueKind::kText:
      if (!text.empty()) return {};
      return Fail(Errc::kInvalidArgument, fmt::format("empty; write {}", Shown(option)));
    case ValueKind::kInteger:
      return CheckInteger(option, text);
    case ValueKind::kDuration: {
      const Result<Nanoseconds> duration = ParseDuration(text);
      if (!duration) return Fail(Errc::kInvalidArgument, duration.error().note());
      return {};
    }
    case ValueKind::kChoice:
      return CheckChoice(option, text);
  }
  LABRACK_CHECK(false);
  return {};
}

std::string OptionsHelp(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options) {
    const std::string shown = Shown(option);
    // An option too long for its column has a line of its own.
    text += shown.size() + 2 > kHelpColumn - 2 ? fmt::format("  {}\n{:{}}", shown, "", kHelpColumn)
                                               : fmt::format("  {:<{}}", shown, kHelpColumn - 2);
    text += option.help;
    if (option.sources != Sources::kCommandLine) {
      text += fmt::format(" [{}]", VariableName(option.name));
    }
    text += '\n';
  }
  return text;
}

}  // namespace labrack::cli
