// What can be shown where: whether standard output and error are terminals, how large, with colour
// or without, and with block characters or plain ones.
#pragma once

#include <string>

#include "controller/cli/options.h"

namespace labrack::cli {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

struct Terminal {
  bool input = false;   // standard input is one
  bool output = false;  // standard output is one
  bool error = false;   // standard error is one
  bool dumb = false;    // TERM is "dumb" or missing: the cursor cannot be moved
  bool utf8 = false;    // the locale writes UTF-8
  bool output_colour = false;
  bool error_colour = false;

  // Of standard error, where the live view is; 80 x 24 when it does not say.
  static TerminalSize Size();
};

// `colour` is auto, always or never, as --color says; with auto NO_COLOR beats FORCE_COLOR and
// CLICOLOR_FORCE, which beat CLICOLOR, and only a terminal gets colour.
Terminal DetectTerminal(const Environment& environment, const std::string& colour);

// The same as a pure function of what the system said, for tests.
bool ChooseColour(const Environment& environment, const std::string& colour, bool is_terminal);

}  // namespace labrack::cli
