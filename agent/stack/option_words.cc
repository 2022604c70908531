#include "agent/stack/option_words.h"

#include <algorithm>
#include <array>

namespace labrack::stack {
namespace {

bool Contains(const std::vector<std::string_view>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// errors=panic, fatal_errors=panic, failmode=panic, -e panic: a playbook must not end the host.
Result<void> CheckForPanic(std::string_view program, const std::string& word) {
  if (word.find("panic") == std::string::npos) return {};
  return Fail(Errc::kRefusedBySafety, std::string(program),
              "'" + word + "' would take the whole host down at an error; let it be remount-ro, " +
                  "continue or wait");
}

Result<void> CheckValue(const ToolGrammar& grammar, const std::string& word) {
  if (Result<void> checked = CheckForPanic(grammar.program, word); !checked) return checked;
  if (word.find('/') != std::string::npos) {
    return Fail(Errc::kRefusedBySafety, std::string(grammar.program),
                "'" + word + "' names a file or device; options may not");
  }
  for (std::string_view refused : grammar.refused_text) {
    if (word.find(refused) != std::string::npos) {
      return Fail(Errc::kRefusedBySafety, std::string(grammar.program),
                  "'" + word + "': " + std::string(refused) + " is not allowed in a playbook");
    }
  }
  return {};
}

std::string Accepted(const ToolGrammar& grammar) {
  std::string text;
  for (char letter : std::string(grammar.with_value) + std::string(grammar.flags)) {
    text += std::string(" -") + letter;
  }
  for (std::string_view option : grammar.long_options) text += " " + std::string(option);
  for (std::string_view option : grammar.long_flags) text += " " + std::string(option);
  return text;
}

enum class WordKind { kComplete, kValueFollows, kUnknown };

WordKind Classify(const ToolGrammar& grammar, std::string_view word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    if (Contains(grammar.long_flags, word)) return WordKind::kComplete;
    if (!Contains(grammar.long_options, word.substr(0, equals))) return WordKind::kUnknown;
    return equals == std::string_view::npos ? WordKind::kValueFollows : WordKind::kComplete;
  }
  if (word.size() < 2 || word[0] != '-') return WordKind::kUnknown;
  if (grammar.with_value.find(word[1]) != std::string_view::npos) {
    return word.size() == 2 ? WordKind::kValueFollows : WordKind::kComplete;
  }
  const bool all_flags = word.substr(1).find_first_not_of(grammar.flags) == std::string_view::npos;
  return all_flags ? WordKind::kComplete : WordKind::kUnknown;
}

}  // namespace

Result<void> CheckToolWords(const ToolGrammar& grammar, const std::vector<std::string>& words) {
  bool value_expected = false;
  for (const std::string& word : words) {
    if (Result<void> checked = CheckValue(grammar, word); !checked) return checked;
    if (value_expected) {
      if (word.starts_with('-')) {
        return Fail(Errc::kInvalidArgument, std::string(grammar.program),
                    "'" + word + "' stands where the value of an option should");
      }
      value_expected = false;
      continue;
    }
    const WordKind kind = Classify(grammar, word);
    if (kind == WordKind::kUnknown) {
      return Fail(Errc::kInvalidArgument, std::string(grammar.program),
                  "'" + word + "' is not an option that playbooks may give; accepted are" +
                      Accepted(grammar));
    }
    value_expected = kind == WordKind::kValueFollows;
  }
  if (value_expected) {
    return Fail(Errc::kInvalidArgument, std::string(grammar.program),
                "the value of '" + words.back() + "' is missing");
  }
  return {};
}

Result<void> CheckMountOptions(const std::vector<std::string>& options) {
  constexpr std::array<std::string_view, 17> kRefused = {
      "bind",   "rbind",  "loop",     "move",        "remount",      "device",
      "logdev", "rtdev",  "source",   "journal_dev", "journal_path", "subvol",
      "ro",     "offset", "subvolid", "shared",      "sizelimit"};
  for (const std::string& option : options) {
    if (Result<void> checked = CheckForPanic("mount", option); !checked) return checked;
    const std::string name = option.substr(0, option.find('='));
    const bool refused = std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end();
    if (option.find('/') != std::string::npos || refused) {
      return Fail(Errc::kRefusedBySafety, "mount",
                  "the option '" + option + "' is not allowed in a playbook");
    }
    if (name.empty() || option.find(',') != std::string::npos ||
        option.find('\0') != std::string::npos) {
      return Fail(Errc::kInvalidArgument, "mount",
                  "'" + option + "' is not one option; write [noatime, data=journal]");
    }
  }
  return {};
}

Result<void> CheckZfsProperties(const std::vector<std::string>& properties) {
  // These reach beyond the trial: other files, other mount points, exports to the network.
  constexpr std::array<std::string_view, 10> kRefused = {
      "altroot",    "bootfs",   "cachefile", "canmount", "keylocation",
      "mountpoint", "readonly", "sharenfs",  "sharesmb", "zoned"};
  for (const std::string& property : properties) {
    if (Result<void> checked = CheckForPanic("zpool", property); !checked) return checked;
    const std::size_t equals = property.find('=');
    if (equals == std::string::npos || equals == 0 || property.starts_with('-')) {
      return Fail(Errc::kInvalidArgument, "zpool",
                  "'" + property + "' is not a property; write [recordsize=16K]");
    }
    const std::string name = property.substr(0, equals);
    if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end() ||
        property.find('/') != std::string::npos) {
      return Fail(Errc::kRefusedBySafety, "zpool",
                  "the property '" + property + "' is not allowed in a playbook");
    }
  }
  return {};
}

}  // namespace labrack::stack
