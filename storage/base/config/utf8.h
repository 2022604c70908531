// UTF-8 as far as places in a text need it: columns count characters (code points), and an excerpt
// must not send control characters to a terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace labrack::config {

// The character that begins at byte `at`, which moves past it. Where the bytes are not UTF-8 the
// answer is nullopt and `at` moves by one byte. `at` must be inside the text.
std::optional<char32_t> NextCharacter(std::string_view text, std::size_t& at);

// Bytes that are not UTF-8 count as one character each.
std::size_t CountCharacters(std::string_view text);

// The text with `?` in place of each byte that is not UTF-8: what a program said, or is called, may
// be anything, and a message's string may not.
std::string AsUtf8(std::string_view text);

// Whether a text file may hold it: no control characters but tab and line feed, no byte-order mark
// in the middle, no line breaks that only some programs see, and nothing that changes the direction
// of text (such text reads otherwise than it shows; "Trojan Source", 2021).
bool IsTextCharacter(char32_t character);

// The lines without their "\n" or "\r\n". A text has at least one line; the empty rest after a
// final line feed is none.
std::vector<std::string_view> SplitLines(std::string_view text);

}  // namespace labrack::config
