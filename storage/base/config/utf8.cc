#include "storage/base/config/utf8.h"

#include <bit>

namespace labrack::config {

std::optional<char32_t> NextCharacter(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const int length = std::countl_one(first);
  if (length < 2 || length > 4) return std::nullopt;
  const std::size_t rest = static_cast<std::size_t>(length) - 1;
  if (text.size() - at < rest) return std::nullopt;
  char32_t character = first & (0x7Fu >> length);
  for (std::size_t i = 0; i < rest; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte >> 6) != 2) return std::nullopt;
    character = (character << 6) | (byte & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < kSmallest[length] || character > 0x10FFFF || surrogate) return std::nullopt;
  at += rest;
  return character;
}

std::size_t CountCharacters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) static_cast<void>(NextCharacter(text, at));
  return count;
}

std::string AsUtf8(std::string_view text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const bool is_character = NextCharacter(text, at).has_value();
    valid += is_character ? text.substr(begin, at - begin) : "?";
  }
  return valid;
}

bool IsTextCharacter(char32_t character) {
  if (character == U'\t' || character == U'\n') return true;
  if (character < 0x20 || (character >= 0x7F && character < 0xA0)) return false;
  if (character == 0x2028 || character == 0x2029 || character == 0xFEFF) return false;
  if (character >= 0x202A && character <= 0x202E) return false;
  if (character >= 0x2066 && character <= 0x2069) return false;
  return character != 0xFFFE && character != 0xFFFF;
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() || lines.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace labrack::config
