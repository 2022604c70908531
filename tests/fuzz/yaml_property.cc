#include "tests/fuzz/yaml_property.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "labrack/v1/playbook.pb.h"
#include "proto/fields/fields.h"
#include "storage/base/config/source.h"
#include "storage/base/config/tree.h"
#include "storage/base/config/utf8.h"

namespace labrack {
namespace {

using config::Node;
using config::Position;
using config::Span;

// A problem shows two cut lines of the text, and names of bounded length.
constexpr std::size_t kPrintedMax = 64 * 1024;

class Lines {
 public:
  explicit Lines(std::string_view text) {
    for (std::string_view line : config::SplitLines(text)) {
      lengths_.push_back(config::CountCharacters(line));
    }
  }
  bool Holds(Position at) const {
    return at.line >= 1 && at.line <= lengths_.size() && at.column >= 1 &&
           at.column <= lengths_[at.line - 1] + 1;
  }
  // A caret under the last character ends one past it, and one past the end of the line stands one
  // caret that marks what is missing there.
  bool Holds(const Span& span) const {
    if (!Holds(span.begin)) return false;
    if (std::pair(span.end.line, span.end.column) < std::pair(span.begin.line, span.begin.column)) {
      return false;
    }
    return Holds(span.end) ||
           (span.end.line == span.begin.line && span.end.column == span.begin.column + 1);
  }

 private:
  std::vector<std::size_t> lengths_;
};

std::string BrokenNode(const Node& node, const Lines& lines) {
  if (!lines.Holds(node.span)) return "a value's place is outside the text";
  for (const Node& item : node.items) {
    if (std::string broken = BrokenNode(item, lines); !broken.empty()) return broken;
  }
  for (const Node::Entry& entry : node.entries) {
    if (!lines.Holds(entry.key_span)) return "a key's place is outside the text";
    if (entry.key.empty()) return "a key is empty";
    if (std::string broken = BrokenNode(entry.value, lines); !broken.empty()) return broken;
  }
  return {};
}

std::string BrokenProblems(const config::Problems& problems, const Lines& lines,
                           std::string_view text) {
  for (const config::Problem& problem : problems.list()) {
    if (problem.code.empty() || problem.message.empty()) return "a problem says nothing";
    if (!(problem.span == Span()) && !lines.Holds(problem.span)) {
      return problem.code + "'s place is outside the text";
    }
    const std::string printed = config::Render(problem, text, config::Colour::kNever);
    if (printed.size() > kPrintedMax) return problem.code + " prints too much";
    const bool control = std::any_of(printed.begin(), printed.end(), [](char c) {
      return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
    });
    if (control) return problem.code + " prints control characters";
  }
  return {};
}

}  // namespace

std::string BrokenYamlProperty(std::string_view text) {
  config::Document document;
  config::Problems problems;
  const bool read =
      config::ReadYaml("fuzz.yaml", std::string(text), config::Limits(), document, problems);
  if (read != problems.empty()) return "the reader's answer is not what its problems say";
  if (read && !document.checkable) return "a text was taken without a tree";
  const Lines lines(document.text);
  if (!document.checkable) return BrokenProblems(problems, lines, document.text);
  if (std::string broken = BrokenNode(document.root, lines); !broken.empty()) return broken;

  v1::Playbook playbook;
  fields::Places places;
  const std::size_t before = problems.total();
  const bool bound = fields::Bind(document, document.root, playbook, places, problems);
  if (bound != (problems.total() == before)) return "the binder's answer is not what it says";
  for (const auto& [path, span] : places) {
    if (!lines.Holds(span)) return "the place of " + path + " is outside the text";
  }
  if (read && bound) {
    const std::vector<std::string> wrong = fields::Check(playbook);
    if (!wrong.empty()) return "Bind takes what Check refuses: " + wrong.front();
  }
  return BrokenProblems(problems, lines, document.text);
}

}  // namespace labrack
