// How text is dressed. Colour never carries a meaning alone: every word and glyph is there without
// it. Whether a terminal wants either is the command line's business (controller/cli/terminal.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace labrack::report {

constexpr std::size_t kColumnsMax = 100;

struct Style {
  bool colour = false;   // ANSI sequences
  bool unicode = false;  // glyphs beyond ASCII, where the locale is UTF-8
};

enum class Ink { kPlain, kBold, kDim, kGood, kBad, kUnsure };

// `text` in the ink, or as it is without colour.
std::string Inked(std::string_view text, Ink ink, const Style& style);

// Characters as a terminal counts them: UTF-8 code points (ours are all one column wide).
std::size_t ColumnsOf(std::string_view text);

// At most `columns` of it; what was cut ends in "~".
std::string Clipped(std::string_view text, std::size_t columns);

// Control characters, among them those that move a terminal's cursor, become "?"; so do bytes that
// are not UTF-8. For texts that come from hosts and commands.
std::string Printable(std::string_view text);

// `text` cut at blanks into lines of at most `columns`, the first after `first` and the others
// after as many blanks. Ends in "\n".
std::string Wrapped(std::string_view first, std::string_view text, std::size_t columns);

}  // namespace labrack::report
