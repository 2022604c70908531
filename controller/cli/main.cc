// labrack: the command line (cli.h).
#include <string>
#include <unistd.h>
#include <vector>

#include "controller/cli/cli.h"

int main(int argc, char** argv) {
  labrack::cli::Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t cut = text.find('=');
    if (cut != std::string::npos) environment[text.substr(0, cut)] = text.substr(cut + 1);
  }
  return labrack::cli::Main(std::vector<std::string>(argv + 1, argv + argc), environment);
}
