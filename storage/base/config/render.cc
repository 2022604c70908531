// The printed form of problems. Its parts follow rustc's: one line that stands alone, the place, an
// excerpt with a caret and a label, then notes and helps.
#include <algorithm>
#include <string>
#include <tuple>

#include "storage/base/config/source.h"
#include "storage/base/config/utf8.h"

namespace labrack::config {
namespace {

constexpr std::size_t kExcerptMax = 100;  // characters of a line that are shown
constexpr std::size_t kBeforeCaret = 40;  // of them before the caret, in a line that is cut
constexpr std::string_view kCut = "...";

class Paint {
 public:
  explicit Paint(Colour colour) : on_(colour == Colour::kAlways) {}
  std::string Error(std::string text) const { return Wrap("\x1b[1;31m", std::move(text)); }
  std::string Strong(std::string text) const { return Wrap("\x1b[1m", std::move(text)); }
  std::string Faint(std::string text) const { return Wrap("\x1b[1;34m", std::move(text)); }
  std::string Help(std::string text) const { return Wrap("\x1b[1;36m", std::move(text)); }

 private:
  std::string Wrap(std::string_view begin, std::string text) const {
    if (!on_ || text.empty()) return text;
    return std::string(begin) + text + "\x1b[0m";
  }
  bool on_;
};

// Characters [begin, begin + count) of a line, one column each: a tab as one space, and what is no
// text as a replacement character.
std::string Visible(std::string_view line, std::size_t begin, std::size_t count) {
  std::string shown;
  std::size_t index = 0;
  for (std::size_t at = 0; at < line.size() && index < begin + count; ++index) {
    const std::size_t start = at;
    const std::optional<char32_t> character = NextCharacter(line, at);
    if (index < begin) continue;
    if (character == U'\t') {
      shown += ' ';
    } else if (!character || !IsTextCharacter(*character)) {
      shown += "\xef\xbf\xbd";
    } else {
      shown += line.substr(start, at - start);
    }
  }
  return shown;
}

std::string Pad(std::size_t width, std::string_view text) {
  return std::string(width - std::min(width, text.size()), ' ') + std::string(text);
}

// The line with the caret, the line before it, and the carets below.
class Excerpt {
 public:
  Excerpt(const Problem& problem, std::string_view text) : problem_(problem) {
    const std::size_t line = problem.span.begin.line;
    if (text.empty() || line == 0) return;
    const std::vector<std::string_view> lines = SplitLines(text);
    if (line > lines.size()) return;
    line_ = lines[line - 1];
    before_ = line > 1 ? lines[line - 2] : std::string_view();
    length_ = CountCharacters(line_);
    there_ = problem.span.begin.column >= 1 && problem.span.begin.column <= length_ + 1;
    if (length_ > kExcerptMax && problem.span.begin.column > kExcerptMax - kBeforeCaret) {
      first_ = problem.span.begin.column - 1 - kBeforeCaret;
    }
  }

  bool there() const { return there_; }
  std::size_t gutter() const {
    return there_ ? std::to_string(problem_.span.begin.line).size() : 1;
  }

  std::string Draw(const Paint& paint) const {
    const std::size_t line = problem_.span.begin.line;
    std::string out;
    if (line > 1) out += Row(paint, std::to_string(line - 1), Window(before_));
    out += Row(paint, std::to_string(line), Window(line_));
    const std::size_t indent = problem_.span.begin.column - 1 - first_ + Lead().size();
    std::string marks = std::string(CaretCount(), '^');
    if (!problem_.label.empty()) marks += " " + problem_.label;
    out += paint.Faint(std::string(gutter(), ' ') + " |") + " " + std::string(indent, ' ') +
           paint.Error(marks) + "\n";
    return out;
  }

 private:
  std::string_view Lead() const { return first_ > 0 ? kCut : std::string_view(); }

  std::string Window(std::string_view line) const {
    const std::size_t length = CountCharacters(line);
    std::string shown = Visible(line, first_, kExcerptMax);
    if (!shown.empty()) shown.insert(0, Lead());
    if (length > first_ + kExcerptMax) shown += kCut;
    return shown;
  }

  std::string Row(const Paint& paint, const std::string& number, const std::string& shown) const {
    std::string row = paint.Faint(Pad(gutter(), number) + " |");
    if (!shown.empty()) row += " " + shown;
    return row + "\n";
  }

  std::size_t CaretCount() const {
    const Span& span = problem_.span;
    std::size_t end = span.end.line == span.begin.line ? span.end.column : length_ + 1;
    end = std::min(end, first_ + kExcerptMax + 1);
    return end > span.begin.column ? end - span.begin.column : 1;
  }

  const Problem& problem_;
  std::string_view line_;
  std::string_view before_;
  std::size_t length_ = 0;
  std::size_t first_ = 0;  // characters cut off on the left
  bool there_ = false;
};

}  // namespace

std::string Render(const Problem& problem, std::string_view text, Colour colour) {
  const Paint paint(colour);
  const Excerpt excerpt(problem, text);
  const std::string margin(excerpt.gutter(), ' ');
  std::string out =
      paint.Error("error[" + problem.code + "]") + paint.Strong(": " + problem.message) + "\n";
  if (!problem.file.empty()) {
    out += margin + paint.Faint("-->") + " " + problem.file;
    if (problem.span.begin.line > 0) {
      out += ":" + std::to_string(problem.span.begin.line) + ":" +
             std::to_string(problem.span.begin.column);
    }
    out += "\n";
  }
  if (excerpt.there()) out += excerpt.Draw(paint);
  const std::string bullet = margin + " " + paint.Faint("=") + " ";
  const std::string note_word = bullet + paint.Strong("note") + ": ";
  const std::string help_word = bullet + paint.Help("help") + ": ";
  for (const std::string& note : problem.notes) out.append(note_word).append(note).append("\n");
  for (const std::string& help : problem.helps) out.append(help_word).append(help).append("\n");
  return out;
}

std::string RenderAll(const Problems& problems, std::string_view text, Colour colour) {
  if (problems.empty()) return {};
  std::vector<const Problem*> ordered;
  for (const Problem& problem : problems.list()) ordered.push_back(&problem);
  const auto order = [](const Problem* problem) {
    const Position& begin = problem->span.begin;
    return std::tuple(begin.line == 0, begin.line, begin.column, problem);  // equals as they came
  };
  std::sort(ordered.begin(), ordered.end(),
            [&](const Problem* a, const Problem* b) { return order(a) < order(b); });
  std::string out;
  for (const Problem* problem : ordered) out += Render(*problem, text, colour);
  const std::size_t total = problems.total();
  out += std::to_string(total) + (total == 1 ? " error" : " errors");
  if (total > ordered.size()) out += " (the first " + std::to_string(ordered.size()) + " shown)";
  out += "; nothing was started.  More: labrack explain " + ordered.front()->code + "\n";
  return out;
}

}  // namespace labrack::config
