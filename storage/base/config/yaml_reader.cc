// The one file that knows libyaml. We take its events, not its documents: they come in the order of
// the text with start and end marks, nothing is expanded (an alias is an event at its place of
// use), and nothing is resolved (a scalar is text).
//
//   text --check characters--> libyaml events --> Node tree --check tabs--> Document
//                                     |                |
//                              one syntax problem   collected refusals
//
// libyaml counts lines and columns from 0 and columns in characters. It also breaks lines at NEL,
// LS and PS, which editors do not; we refuse those characters first, so that its lines are ours.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <yaml.h>

#include "storage/base/check.h"
#include "storage/base/config/tree.h"
#include "storage/base/config/utf8.h"
#include "storage/base/config/yaml_errors.h"

namespace labrack::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The parser and the event it gave last, freed in the right order.
class EventStream {
 public:
  explicit EventStream(std::string_view text) {
    LABRACK_CHECK(yaml_parser_initialize(&parser_) == 1);  // fails only without memory
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~EventStream() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  bool Next() {
    yaml_event_delete(&event_);  // clears it too, so that a second delete does nothing
    return yaml_parser_parse(&parser_, &event_) == 1;
  }
  const yaml_event_t& event() const { return event_; }
  const yaml_parser_t& parser() const { return parser_; }

 private:
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

std::string_view View(const yaml_char_t* text, std::size_t length) {
  return std::string_view(reinterpret_cast<const char*>(text), length);
}

Position Before(const yaml_mark_t& mark) { return {mark.line + 1, mark.column + 1}; }

std::string PlaceText(Position position) {
  return "line " + std::to_string(position.line) + ", column " + std::to_string(position.column);
}

class Reader {
 public:
  Reader(const Limits& limits, Document& document, Problems& problems)
      : limits_(limits),
        document_(document),
        problems_(problems),
        lines_(SplitLines(document.text)),
        stream_(document.text) {
    // Once: a file may be one line of a MiB with a hundred thousand places in it.
    for (std::string_view line : lines_) line_ends_.push_back(CountCharacters(line) + 1);
  }

  void Run() {
    if (!CheckCharacters()) return;
    if (!Next()) return;  // the stream's start
    if (!Next()) return;
    if (stream_.event().type == YAML_STREAM_END_EVENT) return AddEmpty();
    RefuseDirectives();
    if (!Next() || !ReadNode(document_.root, 0) || !Next()) return;  // ... and the document's end
    if (!Next()) return;
    if (stream_.event().type != YAML_STREAM_END_EVENT) return AddSecondDocument(EventSpan());
    const Node& root = document_.root;
    if (root.kind == Node::Kind::kScalar && root.text.empty() && !root.quoted && !root.refused) {
      return AddEmpty();
    }
    CheckTabs();
    AddCounted();
    document_.checkable = !aliased_;
  }

 private:
  // A refusal that is said once, with the number of further places: a file of a hundred aliases has
  // one thing wrong with it, not a hundred.
  struct Counted {
    std::optional<Problem> first;
    std::size_t more = 0;
  };

  Position Clamp(Position position) const {
    if (position.line > lines_.size()) {
      return {lines_.size(), line_ends_.back()};
    }
    return {position.line, std::min(position.column, line_ends_[position.line - 1])};
  }

  Span SpanOf(const yaml_mark_t& begin_mark, const yaml_mark_t& end_mark) const {
    const Position begin = Clamp(Before(begin_mark));
    Position end = Clamp(Before(end_mark));
    // A block of text ends where the next line begins; for people it ends with its last line.
    if (end.line > begin.line && end.column == 1) {
      end = {end.line - 1, line_ends_[end.line - 2]};
    }
    if (std::pair(end.line, end.column) < std::pair(begin.line, begin.column)) end = begin;
    return {begin, end};
  }
  Span EventSpan() const { return SpanOf(stream_.event().start_mark, stream_.event().end_mark); }
  static Span OneCharacter(Position at) { return {at, {at.line, at.column + 1}}; }

  Problem Make(std::string_view code, std::string message, Span span) const {
    Problem problem;
    problem.code = code;
    problem.message = std::move(message);
    problem.file = document_.file;
    problem.span = span;
    return problem;
  }

  void AddEmpty() {
    Problem problem = Make("LR104", "there is nothing in this file", {});
    problem.helps = {"write at least one `key: value` line; `playbook: NAME` is the first of them"};
    problems_.Add(std::move(problem));
  }

  void AddSecondDocument(Span span) {
    Problem problem = Make("LR109", "a second document begins here", span);
    problem.label = "what follows would not be read";
    problem.helps = {"remove this line, or move what follows to a file of its own"};
    problems_.Add(std::move(problem));
  }

  bool Next() {
    if (stream_.Next()) return true;
    AddSyntaxProblem();
    return false;
  }

  void AddSyntaxProblem();
  bool CheckCharacters();
  void CheckTabs();
  void RefuseDirectives();
  void RefuseProperties(const yaml_char_t* anchor, const yaml_char_t* tag, Span span);
  void Refuse(Counted& counted, Problem problem);
  void AddCounted();
  bool TakeNode(std::size_t depth, Span span);
  bool ReadNode(Node& node, std::size_t depth);
  bool ReadList(Node& node, std::size_t depth);
  bool ReadMap(Node& node, std::size_t depth);
  void ReadScalar(Node& node);
  bool ReadKey(Node::Entry& entry, std::size_t depth);
  bool IsKey(const Node& key);

  const Limits& limits_;
  Document& document_;
  Problems& problems_;
  std::vector<std::string_view> lines_;
  std::vector<std::size_t> line_ends_;  // the column one past each line
  EventStream stream_;
  std::size_t nodes_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> scalars_;  // by character index, ascending
  std::optional<Span> last_quoted_;                           // the last quoted text over lines
  bool aliased_ = false;  // what the file says depends on what we do not read
  Counted anchors_;
  Counted tags_;
  Counted merges_;
};

// `{size: ${name}}`: libyaml reads `$`, and then a brace where it expects a comma.
bool IsUnquotedName(std::string_view line, const Position& brace) {
  return brace.column >= 2 && brace.column <= line.size() && line[brace.column - 1] == '{' &&
         line[brace.column - 2] == '$';
}

void Reader::AddSyntaxProblem() {
  const yaml_parser_t& parser = stream_.parser();
  LABRACK_CHECK(parser.error != YAML_MEMORY_ERROR);
  const Position at = Clamp(Before(parser.problem_mark));
  const bool has_context = parser.context != nullptr;
  const Position context = Clamp(Before(parser.context_mark));
  const SyntaxText* translation = FindSyntaxText(parser.problem, parser.context);
  const std::string_view line = lines_[at.line - 1];
  const std::size_t text_begin = line.find_first_not_of(" \t");
  const std::size_t tab = line.substr(0, text_begin).find('\t');
  if (tab != std::string_view::npos && (translation == nullptr || !translation->at_context)) {
    // Whatever libyaml makes of it, the tab is what is wrong.
    Problem problem =
        Make("LR108", "a tab is used for indentation", OneCharacter({at.line, tab + 1}));
    problem.helps = {"indent with spaces"};
    return problems_.Add(std::move(problem));
  }
  if (at.line > 1 && lines_[at.line - 2].starts_with("...") && at.column == 1) {
    // `...` ends a document; without `---` what follows is no document at all to libyaml.
    return AddSecondDocument({at, {at.line, line_ends_[at.line - 1]}});
  }
  if (IsUnquotedName(line, at)) {
    Problem problem =
        Make("LR105", "`${` within `{ }` or `[ ]` begins a mapping of its own", OneCharacter(at));
    problem.helps = {"put the value in quotes: `\"${name}\"`"};
    return problems_.Add(std::move(problem));
  }
  if (translation == nullptr) {
    const std::string said = parser.problem == nullptr ? "it cannot be read" : parser.problem;
    Problem problem = Make("LR105", "this is not YAML: " + said, OneCharacter(at));
    problem.helps = {"put texts with special characters in quotes, and indent with spaces"};
    return problems_.Add(std::move(problem));
  }
  const bool show_context = translation->at_context && has_context;
  Problem problem = Make(translation->code, std::string(translation->message),
                         OneCharacter(show_context ? context : at));
  problem.helps = {std::string(translation->help)};
  if (show_context) {
    problem.label = "it begins here";
    problem.notes = {"the file was read up to " + PlaceText(at)};
  } else if (has_context && context.line != at.line) {
    problem.notes = {"what is around it begins at " + PlaceText(context)};
  }
  if (last_quoted_ && last_quoted_->end.line + 1 >= at.line) {
    problem.notes.push_back("a quoted text runs from " + PlaceText(last_quoted_->begin) + " to " +
                            PlaceText(last_quoted_->end) +
                            "; a closing quote may be missing in it");
  }
  problems_.Add(std::move(problem));
}

bool Reader::CheckCharacters() {
  const std::string_view text = document_.text;
  Position position{1, 1};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::optional<char32_t> character = NextCharacter(text, at);
    if (character == U'\n') {
      position = {position.line + 1, 1};
      continue;
    }
    const bool line_end = character == U'\r' && at < text.size() && text[at] == '\n';
    if (character && (line_end || IsTextCharacter(*character))) {
      ++position.column;
      continue;
    }
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text[begin]);
    std::string what = std::string("the byte 0x") + kHex[byte >> 4] + kHex[byte & 15];
    if (character) {
      what = "the invisible character U+";
      for (int shift = 12; shift >= 0; shift -= 4) what += kHex[(*character >> shift) & 15];
    }
    Problem problem =
        Make("LR103", what + " does not belong in this file", OneCharacter(Clamp(position)));
    problem.helps = {character ? "remove it" : "save the file as UTF-8 text"};
    if (text.contains('\0')) {
      // Nobody removes the bytes of a program or of UTF-16 one by one.
      problem.message = "this file is not text: it holds bytes of zero";
      problem.helps = {"check that it is the right file, and save it as UTF-8 text"};
    }
    problems_.Add(std::move(problem));
    return false;
  }
  return true;
}

// libyaml takes tabs between tokens, where they make columns that differ from editor to editor.
// Inside texts and comments they are harmless.
void Reader::CheckTabs() {
  const std::string_view text = document_.text;
  if (text.find('\t') == text.npos) return;
  Position position{1, 1};
  Counted tabs;
  bool comment = false;
  char32_t before = U'\n';
  auto scalar = scalars_.begin();
  std::size_t index = 0;
  for (std::size_t at = 0; at < text.size(); ++index) {
    const char32_t character = NextCharacter(text, at).value_or(U'?');
    while (scalar != scalars_.end() && scalar->second <= index) ++scalar;
    const bool inside = scalar != scalars_.end() && scalar->first <= index;
    const bool after_space = before == U'\n' || before == U' ' || before == U'\t';
    if (character == U'#' && !inside && after_space) comment = true;
    if (character == U'\t' && !inside && !comment) {
      Problem problem = Make("LR108", "a tab stands between the parts of this line",
                             OneCharacter(Clamp(position)));
      problem.helps = {"use spaces"};
      Refuse(tabs, std::move(problem));
    }
    if (character == U'\n') comment = false;
    position = character == U'\n' ? Position{position.line + 1, 1}
                                  : Position{position.line, position.column + 1};
    before = character;
  }
  if (!tabs.first) return;
  if (tabs.more > 0) tabs.first->notes = {std::to_string(tabs.more) + " more in this file"};
  problems_.Add(std::move(*tabs.first));
}

void Reader::RefuseDirectives() {
  const auto& start = stream_.event().data.document_start;
  const bool tags = start.tag_directives.start != start.tag_directives.end;
  if (start.version_directive == nullptr && !tags) return;
  Problem problem = Make("LR112", "lines that begin with `%` are not taken", OneCharacter({1, 1}));
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!lines_[i].starts_with('%')) continue;
    problem.span = {{i + 1, 1}, {i + 1, line_ends_[i]}};
    break;
  }
  problem.helps = {"remove the line"};
  problems_.Add(std::move(problem));
}

void Reader::Refuse(Counted& counted, Problem problem) {
  if (counted.first) {
    ++counted.more;
  } else {
    counted.first = std::move(problem);
  }
}

void Reader::AddCounted() {
  for (Counted* counted : {&anchors_, &tags_, &merges_}) {
    if (!counted->first) continue;
    if (counted->more > 0) {
      counted->first->notes = {std::to_string(counted->more) + " more in this file"};
    }
    problems_.Add(std::move(*counted->first));
  }
}

void Reader::RefuseProperties(const yaml_char_t* anchor, const yaml_char_t* tag, Span span) {
  // The event begins with the anchor or tag; one character is enough of a place.
  if (anchor != nullptr) {
    const std::string name = reinterpret_cast<const char*>(anchor);
    Problem problem = Make("LR110", "the anchor " + Quote("&" + name) + " is not taken",
                           OneCharacter(span.begin));
    problem.helps = {"write the value out where it is needed; `vars:` and `matrix:` name values"};
    Refuse(anchors_, std::move(problem));
  }
  if (tag != nullptr) {
    const std::string name = reinterpret_cast<const char*>(tag);
    Problem problem =
        Make("LR111", "the tag " + Quote(name) + " is not taken", OneCharacter(span.begin));
    problem.helps = {"remove it; the field decides how its value is read"};
    Refuse(tags_, std::move(problem));
  }
}

// Counts a node against the limits.
bool Reader::TakeNode(std::size_t depth, Span span) {
  if (depth > limits_.depth_max) {
    Problem problem = Make(
        "LR115", "values are nested deeper than " + std::to_string(limits_.depth_max) + " levels",
        OneCharacter(span.begin));
    problem.label = "one level too deep";
    problem.helps = {"no field needs so many; look for brackets that are not closed"};
    problems_.Add(std::move(problem));
    return false;
  }
  if (++nodes_ > limits_.nodes_max) {
    Problem problem =
        Make("LR116", "the file holds more than " + std::to_string(limits_.nodes_max) + " values",
             OneCharacter(span.begin));
    problem.helps = {"split it; a `matrix:` makes many cells of few lines"};
    problems_.Add(std::move(problem));
    return false;
  }
  return true;
}

// Reads the node that the current event begins; the current event is its last one afterwards.
bool Reader::ReadNode(Node& node, std::size_t depth) {
  const yaml_event_t& event = stream_.event();
  node.span = EventSpan();
  const bool collection =
      event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
  if (!TakeNode(collection ? depth + 1 : depth, node.span)) return false;
  switch (event.type) {
    case YAML_SCALAR_EVENT:
      ReadScalar(node);
      return true;
    case YAML_ALIAS_EVENT: {
      const std::string name = reinterpret_cast<const char*>(event.data.alias.anchor);
      Problem problem =
          Make("LR110", "the alias " + Quote("*" + name) + " is not taken", node.span);
      problem.helps = {"write the value out where it is needed; `vars:` and `matrix:` name values"};
      Refuse(anchors_, std::move(problem));
      node.refused = true;
      aliased_ = true;
      return true;
    }
    case YAML_SEQUENCE_START_EVENT:
      return ReadList(node, depth + 1);
    default:
      LABRACK_CHECK(event.type == YAML_MAPPING_START_EVENT);
      return ReadMap(node, depth + 1);
  }
}

void Reader::ReadScalar(Node& node) {
  const yaml_event_t& event = stream_.event();
  const auto& scalar = event.data.scalar;
  node.kind = Node::Kind::kScalar;
  node.text = View(scalar.value, scalar.length);
  node.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE && scalar.style != YAML_ANY_SCALAR_STYLE;
  scalars_.emplace_back(event.start_mark.index, event.end_mark.index);
  const bool in_quotes = scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
                         scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
  if (in_quotes && node.span.end.line > node.span.begin.line) last_quoted_ = node.span;
  RefuseProperties(scalar.anchor, scalar.tag, node.span);
  if (scalar.anchor != nullptr || scalar.tag != nullptr) node.refused = true;
}

bool Reader::ReadList(Node& node, std::size_t depth) {
  const auto& start = stream_.event().data.sequence_start;
  const bool flow = start.style == YAML_FLOW_SEQUENCE_STYLE;
  node.kind = Node::Kind::kList;
  RefuseProperties(start.anchor, start.tag, node.span);
  while (true) {
    if (!Next()) return false;
    if (stream_.event().type == YAML_SEQUENCE_END_EVENT) break;
    node.items.emplace_back();
    if (!ReadNode(node.items.back(), depth)) return false;
  }
  // The end of a block list is known to libyaml only by what follows it.
  if (flow) {
    node.span.end = EventSpan().end;
  } else if (!node.items.empty()) {
    node.span.end = node.items.back().span.end;
  }
  return true;
}

bool Reader::ReadMap(Node& node, std::size_t depth) {
  const auto& start = stream_.event().data.mapping_start;
  const bool flow = start.style == YAML_FLOW_MAPPING_STYLE;
  node.kind = Node::Kind::kMap;
  RefuseProperties(start.anchor, start.tag, node.span);
  std::map<std::string, Position> keys;
  while (true) {
    if (!Next()) return false;
    if (stream_.event().type == YAML_MAPPING_END_EVENT) break;
    Node::Entry entry;
    if (!ReadKey(entry, depth) || !Next() || !ReadNode(entry.value, depth)) return false;
    if (entry.value.kind == Node::Kind::kScalar && entry.value.span.begin == entry.value.span.end &&
        !entry.value.quoted) {
      // Nothing is written: its place is the end of the key, not the next token.
      entry.value.span = {entry.key_span.end, entry.key_span.end};
    }
    node.span.end = entry.value.span.end;
    if (entry.key.empty()) continue;  // refused; said already
    const auto [first, is_new] = keys.emplace(entry.key, entry.key_span.begin);
    if (is_new) {
      node.entries.push_back(std::move(entry));
      continue;
    }
    Problem problem = Make("LR113", Quote(entry.key) + " is written twice", entry.key_span);
    problem.label = "here again";
    problem.notes = {"the first one is at " + PlaceText(first->second)};
    problem.helps = {"keep one of them"};
    problems_.Add(std::move(problem));
  }
  if (flow) node.span.end = EventSpan().end;
  return true;
}

// Reads a key; entry.key stays empty where it was refused.
bool Reader::ReadKey(Node::Entry& entry, std::size_t depth) {
  Node key;
  if (!ReadNode(key, depth)) return false;
  entry.key_span = key.span;
  if (IsKey(key)) entry.key = std::move(key.text);
  return true;
}

bool Reader::IsKey(const Node& key) {
  if (key.refused) return false;  // said already
  const bool scalar = key.kind == Node::Kind::kScalar;
  if (scalar && key.text == "<<" && !key.quoted) {
    Problem problem = Make("LR110", "`<<` does not merge anything here", key.span);
    problem.helps = {"write the values out where they are needed"};
    Refuse(merges_, std::move(problem));
    aliased_ = true;
    return false;
  }
  constexpr std::string_view kSpaces = " \t\r\n";
  if (scalar && !key.text.empty() && key.text.find_first_of(kSpaces) == key.text.npos) return true;
  std::string what = "a " + std::string(key.KindName());
  if (scalar) what = key.text.empty() ? "an empty text" : Quote(key.text);
  Problem problem = Make("LR114", what + " cannot be a key", key.span);
  problem.helps = {"a key is one word"};
  problems_.Add(std::move(problem));
  return false;
}

// The file's content up to `max` + 1 bytes.
bool ReadWhole(const std::string& path, std::size_t max, std::string& text, int& error_number) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    error_number = errno;
    return false;
  }
  std::array<char, 65536> buffer;
  ssize_t count = 1;
  while (count != 0 && text.size() <= max) {
    count = read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      error_number = errno;
      close(file);
      return false;
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(file);
  return true;
}

Problem TooLarge(const std::string& file, std::size_t bytes_max) {
  Problem problem;
  problem.code = "LR102";
  problem.file = file;
  problem.message = "the file is larger than " + std::to_string(bytes_max) + " bytes";
  problem.helps = {"split it, or check that it is the right file"};
  return problem;
}

}  // namespace

bool ReadYaml(std::string file, std::string text, const Limits& limits, Document& document,
              Problems& problems) {
  const std::size_t before = problems.total();
  document = Document();
  document.file = std::move(file);
  if (text.size() > limits.bytes_max) {
    problems.Add(TooLarge(document.file, limits.bytes_max));
    return false;
  }
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  document.text = std::move(text);
  Reader(limits, document, problems).Run();
  return problems.total() == before;
}

bool ReadTextFile(const std::string& path, std::size_t bytes_max, std::string& text,
                  Problems& problems) {
  text.clear();
  int error_number = 0;
  if (ReadWhole(path, bytes_max, text, error_number)) {
    if (text.size() <= bytes_max) return true;
    text.clear();
    problems.Add(TooLarge(path, bytes_max));
    return false;
  }
  text.clear();
  Problem problem;
  problem.code = "LR101";
  problem.file = path;
  problem.message = std::string("this file cannot be read: ") + std::strerror(error_number);
  problem.helps = {error_number == ENOENT
                       ? "check the path; it counts from the directory you are in"
                       : "name a text file that you may read"};
  problems.Add(std::move(problem));
  return false;
}

bool ReadYamlFile(const std::string& path, const Limits& limits, Document& document,
                  Problems& problems) {
  document = Document();
  document.file = path;
  std::string text;
  return ReadTextFile(path, limits.bytes_max, text, problems) &&
         ReadYaml(path, std::move(text), limits, document, problems);
}

}  // namespace labrack::config
