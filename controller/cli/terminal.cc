#include "controller/cli/terminal.h"

#include <algorithm>
#include <cctype>
#include <sys/ioctl.h>
#include <unistd.h>

namespace labrack::cli {
namespace {

std::string Lookup(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

bool IsSet(const Environment& environment, const std::string& name) {
  const std::string text = Lookup(environment, name);
  return !text.empty() && text != "0";
}

bool WritesUtf8(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string text = Lookup(environment, name);
    if (text.empty()) continue;
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.contains("utf-8") || text.contains("utf8");
  }
  return false;
}

}  // namespace

TerminalSize Terminal::Size() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {.columns = size.ws_col, .rows = size.ws_row};
}

bool ChooseColour(const Environment& environment, const std::string& colour, bool is_terminal) {
  if (colour == "always") return true;
  if (colour == "never") return false;
  if (!Lookup(environment, "NO_COLOR").empty()) return false;
  if (IsSet(environment, "FORCE_COLOR") || IsSet(environment, "CLICOLOR_FORCE")) return true;
  if (Lookup(environment, "CLICOLOR") == "0") return false;
  return is_terminal && Lookup(environment, "TERM") != "dumb";
}

Terminal DetectTerminal(const Environment& environment, const std::string& colour) {
  Terminal terminal;
  terminal.input = isatty(STDIN_FILENO) == 1;
  terminal.output = isatty(STDOUT_FILENO) == 1;
  terminal.error = isatty(STDERR_FILENO) == 1;
  const std::string kind = Lookup(environment, "TERM");
  terminal.dumb = kind.empty() || kind == "dumb";
  terminal.utf8 = WritesUtf8(environment);
  terminal.output_colour = ChooseColour(environment, colour, terminal.output);
  terminal.error_colour = ChooseColour(environment, colour, terminal.error);
  return terminal;
}

}  // namespace labrack::cli
