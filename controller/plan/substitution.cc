#include "controller/plan/substitution.h"

#include <functional>
#include <optional>
#include <utility>

namespace labrack::plan {
namespace {

using config::Node;

void ForEachScalar(const Node& node, const std::function<void(const Node&)>& visit) {
  switch (node.kind) {
    case Node::Kind::kScalar:
      return visit(node);
    case Node::Kind::kList:
      for (const Node& item : node.items) ForEachScalar(item, visit);
      return;
    case Node::Kind::kMap:
      for (const Node::Entry& entry : node.entries) ForEachScalar(entry.value, visit);
      return;
  }
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// One piece of a scalar: text up to `end`, or a use of a name.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  enum class Kind { kText, kEscape, kName, kBroken } kind = Kind::kText;
  std::string_view name;
};

std::vector<Piece> Split(std::string_view text) {
  std::vector<Piece> pieces;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t open = text.find("${", at);
    if (open == std::string_view::npos) open = text.size();
    const bool escaped = open < text.size() && open > at && text[open - 1] == '$';
    const std::size_t text_end = escaped ? open - 1 : open;
    if (text_end > at) pieces.push_back({at, text_end, Piece::Kind::kText, {}});
    if (open == text.size()) break;
    if (escaped) {
      pieces.push_back({text_end, open + 2, Piece::Kind::kEscape, {}});
      at = open + 2;
      continue;
    }
    std::size_t end = open + 2;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    const bool closed = end < text.size() && text[end] == '}' && end > open + 2;
    pieces.push_back({open, closed ? end + 1 : end,
                      closed ? Piece::Kind::kName : Piece::Kind::kBroken,
                      text.substr(open + 2, end - open - 2)});
    at = pieces.back().end;
  }
  return pieces;
}

// Columns count characters, not bytes.
std::size_t Characters(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

// The place of a piece within a plain scalar on one line; quoted and longer ones may be written in
// other characters than their text has.
config::Span SpanOf(const Node& scalar, const Piece& piece) {
  const config::Span& whole = scalar.span;
  const bool plain = !scalar.quoted && whole.begin.line == whole.end.line &&
                     whole.end.column - whole.begin.column == Characters(scalar.text);
  if (!plain) return whole;
  const std::string_view text = scalar.text;
  config::Span span = whole;
  span.begin.column += Characters(text.substr(0, piece.begin));
  span.end.column = whole.begin.column + Characters(text.substr(0, piece.end));
  return span;
}

}  // namespace

Names Names::Read(const Node& root) {
  Names names;
  if (root.kind != Node::Kind::kMap) return names;
  if (const Node* vars = root.Find("vars"); vars != nullptr && vars->kind == Node::Kind::kMap) {
    for (const Node::Entry& entry : vars->entries) {
      if (entry.value.kind != Node::Kind::kScalar) continue;
      names.vars[entry.key] = {entry.value.text, entry.value.span};
    }
  }
  if (const Node* matrix = root.Find("matrix");
      matrix != nullptr && matrix->kind == Node::Kind::kMap) {
    for (const Node::Entry& entry : matrix->entries) {
      NamedAxis axis{entry.key, {}, entry.key_span};
      for (const Node& item : entry.value.items) {
        if (item.kind == Node::Kind::kScalar) axis.values.push_back({item.text, item.span});
      }
      if (!axis.values.empty()) names.axes.push_back(std::move(axis));
    }
  }
  return names;
}

std::vector<std::string> Names::All() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : vars) all.push_back(name);
  for (const NamedAxis& axis : axes) all.push_back(axis.name);
  return all;
}

std::vector<NameUse> UsesIn(const Node& node) {
  std::vector<NameUse> uses;
  ForEachScalar(node, [&](const Node& scalar) {
    for (const Piece& piece : Split(scalar.text)) {
      if (piece.kind != Piece::Kind::kName && piece.kind != Piece::Kind::kBroken) continue;
      uses.push_back({std::string(piece.name), SpanOf(scalar, piece), scalar.span,
                      piece.kind == Piece::Kind::kName});
    }
  });
  return uses;
}

std::set<std::string> NamesIn(const Node& node) {
  std::set<std::string> names;
  for (NameUse& use : UsesIn(node)) {
    if (use.well_formed) names.insert(std::move(use.name));
  }
  return names;
}

Node Substitute(const Node& node, const Assignment& assignment) {
  Node copy = node;
  std::function<void(Node&)> replace = [&](Node& at) {
    for (Node& item : at.items) replace(item);
    for (Node::Entry& entry : at.entries) replace(entry.value);
    if (at.kind != Node::Kind::kScalar || at.text.find("${") == std::string::npos) return;
    std::string text;
    for (const Piece& piece : Split(at.text)) {
      const std::string_view written =
          std::string_view(at.text).substr(piece.begin, piece.end - piece.begin);
      const auto value = piece.kind == Piece::Kind::kName ? assignment.find(std::string(piece.name))
                                                          : assignment.end();
      if (value != assignment.end()) {
        text += value->second;
      } else {
        text += piece.kind == Piece::Kind::kEscape ? std::string_view("${") : written;
      }
    }
    at.text = std::move(text);
  };
  replace(copy);
  return copy;
}

}  // namespace labrack::plan
