// A text that people wrote (a playbook, a configuration file), places in it, and problems found in
// it. Every problem says what is wrong, where (line, column, caret) and what would be right;
// problems are collected, never thrown one at a time. The printed form is fixed by golden files in
// tests/unit/golden.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace labrack::config {

// Lines and columns count from 1; columns count characters (UTF-8 code points), not bytes. `end` is
// one past the last character. A default Span (line 0) means "the file as a whole".
struct Position {
  std::size_t line = 0;
  std::size_t column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};
struct Span {
  Position begin;
  Position end;
  friend bool operator==(const Span&, const Span&) = default;
};

// One finding. Texts are lower case, without a final stop; what to do stands only in `help`.
struct Problem {
  std::string code;     // "LR203"; `labrack explain LR203` says more
  std::string message;  // stands alone: unknown field `blok_size`
  std::string file;     // as the user named it; empty for problems without a file
  Span span;
  std::string label;               // under the caret; may be empty
  std::vector<std::string> notes;  // facts that explain
  std::vector<std::string> helps;  // what would be right
};

// Collects problems up to a bound. What lies beyond is counted, not kept.
class Problems {
 public:
  static constexpr std::size_t kKeptMax = 50;

  void Add(Problem problem);
  bool empty() const { return total_ == 0; }
  std::size_t total() const { return total_; }
  const std::vector<Problem>& list() const { return list_; }

 private:
  std::vector<Problem> list_;
  std::size_t total_ = 0;
};

// The codes with their long explanations, for `labrack explain`.
struct CodeText {
  std::string_view code;
  std::string_view title;
  std::string_view text;
};
const std::vector<CodeText>& AllCodes();

enum class Colour { kNever, kAlways };

// The form with carets, for terminals:
//   error[LR203]: unknown field `blok_size`
//     --> playbooks/varmail.yaml:14:7
//   13 |     workload: block_rw
//   14 |       blok_size: 4k
//      |       ^^^^^^^^^ `block_rw` has no such field
//      = help: did you mean `block_size`?
// `text` is the file's content (for the excerpt; may be empty, then the excerpt is left out). Long
// lines are cut around the caret.
std::string Render(const Problem& problem, std::string_view text, Colour colour);
// All of them in the order of their places, those without a place last, and the closing line
// "2 errors; nothing was started.  More: labrack explain LR203". Empty when there are none.
std::string RenderAll(const Problems& problems, std::string_view text, Colour colour);

// What a user wrote, for a message: in backquotes, control characters replaced, and cut where it is
// too long to be a slip.
std::string Quote(std::string_view text);

// The nearest of `candidates` by Damerau-Levenshtein distance <= max(1, length / 3), where case
// does not count; empty when none is near enough. Of equals the first.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace labrack::config
