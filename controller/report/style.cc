#include "controller/report/style.h"

#include <cstdint>

namespace labrack::report {
namespace {

std::string_view Sequence(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kBold:
      return "\x1b[1m";
    case Ink::kDim:
      return "\x1b[2m";
    case Ink::kGood:
      return "\x1b[32m";
    case Ink::kBad:
      return "\x1b[31m";
    case Ink::kUnsure:
      return "\x1b[33m";
  }
  return "";
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Length of the well-formed UTF-8 sequence at the start of `text`; 0 when it is none.
std::size_t SequenceLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  if (lead == 0xE0 && second < 0xA0) return 0;  // overlong
  if (lead == 0xED && second > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && second < 0x90) return 0;  // overlong
  if (lead == 0xF4 && second > 0x8F) return 0;  // beyond U+10FFFF
  return length;
}

}  // namespace

std::string Inked(std::string_view text, Ink ink, const Style& style) {
  if (!style.colour || ink == Ink::kPlain || text.empty()) return std::string(text);
  std::string inked(Sequence(ink));
  inked += text;
  inked += "\x1b[0m";
  return inked;
}

std::size_t ColumnsOf(std::string_view text) {
  std::size_t columns = 0;
  for (char c : text) columns += IsContinuation(c) ? 0 : 1;
  return columns;
}

std::string Clipped(std::string_view text, std::size_t columns) {
  if (ColumnsOf(text) <= columns) return std::string(text);
  std::string clipped;
  std::size_t used = 0;
  for (char c : text) {
    if (!IsContinuation(c) && ++used >= columns) break;
    clipped += c;
  }
  return columns == 0 ? "" : clipped + "~";
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    const bool control =
        lead < 0x20 || lead == 0x7F ||
        // U+0080 to U+009F: control characters too.
        (length == 2 && lead == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (length == 0 || control) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string Wrapped(std::string_view first, std::string_view text, std::size_t columns) {
  const std::size_t indent = ColumnsOf(first);
  std::string out(first);
  std::size_t used = indent;
  bool at_start = true;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    const std::size_t length = ColumnsOf(word);
    if (!at_start && used + 1 + length > columns) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      at_start = true;
    }
    if (!at_start) {
      out += ' ';
      ++used;
    }
    // A word longer than a line (a path) is left whole: cut in two it could not be copied.
    out += word;
    used += length;
    at_start = false;
  }
  return out + "\n";
}

}  // namespace labrack::report
