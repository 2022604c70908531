// The command line as a function, so that main() has nothing to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/options.h"
#include "controller/cli/verb.h"

namespace labrack::cli {

// Runs the verb that the words name; the exit code of the process.
int Main(const std::vector<std::string>& words, const Environment& environment);

// The verb that the words begin with ("host ls" takes two), and how many words it took. Errors:
// kInvalidArgument with the nearest verb.
struct FoundVerb {
  const Verb* verb = nullptr;
  std::size_t words = 0;
};
Result<FoundVerb> FindVerb(const std::vector<std::string>& words);

// Of `labrack help` and of `labrack VERB --help`.
std::string HelpText();
std::string HelpText(const Verb& verb);

}  // namespace labrack::cli
