// What a verb takes on its command line, declared as data: one table a verb, from which parsing,
// the LABRACK_* variables, the keys of configuration files, the help and the messages are made.
// CLI11 only cuts the words apart; which source wins is decided here, since CLI11 lets a file beat
// the environment.
//
//   command line  >  LABRACK_NAME  >  ./.labrack.yaml  >  user's file  >  /etc file  >  left out
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::cli {

enum class ValueKind { kFlag, kText, kInteger, kDuration, kChoice };

// Where a value may come from besides the command line.
enum class Sources {
  kCommandLine,  // nowhere else: it belongs to one call
  kEnvironment,  // LABRACK_NAME too, but no file: what a foreign checkout's file must not switch on
  kAll,          // LABRACK_NAME and configuration files
};

struct Option {
  std::string_view name = {};  // "trials" is written --trials, LABRACK_TRIALS, `trials:`
  ValueKind kind = ValueKind::kFlag;
  std::string_view value = {};  // what stands for the value in help: "N"; flags have none
  std::string_view help = {};   // one line
  Sources sources = Sources::kCommandLine;
  bool repeated = false;
  std::int64_t min = 0;  // of kInteger, inclusive
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::vector<std::string_view> choices = {};  // of kChoice
};

struct Operand {
  std::string_view name = {};  // "PLAYBOOK"
  bool required = true;
};

// What a verb was called with. Values have been checked against the table, so reading cannot fail;
// asking for a name that the table does not have is a fault of ours and terminates.
class Arguments {
 public:
  bool Flag(std::string_view name) const;
  std::optional<std::string> Text(std::string_view name) const;
  std::optional<std::int64_t> Integer(std::string_view name) const;
  std::optional<Nanoseconds> Duration(std::string_view name) const;
  std::vector<std::string> All(std::string_view name) const;
  // Whether the verb takes this option at all.
  bool Knows(std::string_view name) const { return values_.contains(name); }
  // In the order of the table; "" where an optional one was left out.
  const std::string& Operand(std::size_t index) const;
  // "command line", "LABRACK_TRIALS", "./.labrack.yaml:3:9"; empty where it was left out.
  std::string Origin(std::string_view name) const;

 private:
  friend class ArgumentReader;
  struct Value {
    std::vector<std::string> texts;
    std::string origin;
  };
  const Value& At(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;  // every declared name
  std::vector<std::string> operands_;
};

using Environment = std::map<std::string, std::string>;

// A value of a configuration file, and where it stands.
struct Setting {
  std::string text;
  std::string origin;
};
using SettingMap = std::map<std::string, Setting>;

// Errors: kInvalidArgument, worded "what is wrong; what would be right".
Result<Arguments> ReadArguments(const std::vector<Operand>& operands,
                                const std::vector<Option>& options,
                                const std::vector<std::string>& words,
                                const Environment& environment, const SettingMap& settings);

// "LABRACK_TRIALS".
std::string VariableName(std::string_view option);

// Whether `text` is a value of the option; the error says what would be.
Result<void> CheckValue(const Option& option, const std::string& text);

// The lines of help on options: "  --trials N       trials of each cell [LABRACK_TRIALS]".
std::string OptionsHelp(const std::vector<Option>& options);

}  // namespace labrack::cli
