#include "storage/base/config/source.h"

#include <algorithm>
#include <utility>

#include "storage/base/config/utf8.h"

namespace labrack::config {
namespace {

// Longer words are no slips of a name, and the distance costs length squared.
constexpr std::size_t kWordMax = 64;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Damerau-Levenshtein in its "optimal string alignment" form: insert, delete, change, and swap of
// neighbours, no part edited twice. Three rows of the table are enough.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

void Problems::Add(Problem problem) {
  ++total_;
  if (list_.size() < kKeptMax) list_.push_back(std::move(problem));
}

std::string Quote(std::string_view text) {
  constexpr std::size_t kShownMax = 60;
  std::string shown = "`";
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters) {
    if (characters == kShownMax) {
      shown += "...";
      break;
    }
    const std::size_t begin = at;
    const std::optional<char32_t> character = NextCharacter(text, at);
    if (character == U'\n' || character == U'\t' || character == U'\r') {
      shown += ' ';
    } else if (!character || !IsTextCharacter(*character)) {
      shown += '?';
    } else {
      shown += text.substr(begin, at - begin);
    }
  }
  return shown + "`";
}

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kWordMax) return {};
  const std::string wanted = Lower(word);
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kWordMax) continue;
    const std::size_t distance = Distance(wanted, Lower(candidate));
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace labrack::config
