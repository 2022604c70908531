#include "controller/plan/overrides.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "controller/plan/problem.h"

namespace labrack::plan {
namespace {

using config::Node;

// Mappings whose keys are names of the user's: an option may change what is there, never add to it.
constexpr std::array<std::string_view, 4> kNamed{"stacks", "workloads", "vars", "matrix"};

Node* FindIn(Node& map, std::string_view key) {
  for (Node::Entry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::vector<std::string> KeysOf(const Node* map) {
  std::vector<std::string> keys;
  if (map == nullptr || map->kind != Node::Kind::kMap) return keys;
  for (const Node::Entry& entry : map->entries) keys.push_back(entry.key);
  return keys;
}

void SetSpans(Node& node, config::Span span) {
  node.span = span;
  for (Node& item : node.items) SetSpans(item, span);
  for (Node::Entry& entry : node.entries) {
    entry.key_span = span;
    SetSpans(entry.value, span);
  }
}

// VALUE as a node: a list or mapping where it is written as one, text otherwise. Text is taken as
// it is, since the shell has done the quoting.
std::optional<Node> ReadValue(const std::string& value) {
  Node node;
  if (!value.starts_with('[') && !value.starts_with('{')) {
    node.text = value;
    return node;
  }
  config::Document document;
  config::Problems ignored;
  if (!config::ReadYaml("", value, {}, document, ignored)) return std::nullopt;
  return std::move(document.root);
}

// Top-level fields of a playbook; none of them is hidden.
std::vector<std::string> TopFields() {
  const google::protobuf::Descriptor& playbook = *v1::Playbook::descriptor();
  std::vector<std::string> names;
  for (int i = 0; i < playbook.field_count(); ++i) names.push_back(playbook.field(i)->name());
  return names;
}

// A step of a path: the child to go on with, and what is left of the path behind it.
struct Step {
  Node* child = nullptr;
  std::string_view rest;
};

// Names may hold dots: the longest key that the path begins with counts.
std::optional<Step> IntoMap(Node& map, std::string_view path) {
  std::optional<Step> best;
  std::size_t best_size = 0;
  for (Node::Entry& entry : map.entries) {
    const bool whole = path == entry.key;
    if (!whole && !path.starts_with(entry.key + ".")) continue;
    if (best && entry.key.size() <= best_size) continue;
    best_size = entry.key.size();
    best = Step{&entry.value, whole ? std::string_view() : path.substr(best_size + 1)};
  }
  return best;
}

std::optional<Step> IntoList(Node& list, std::string_view path) {
  const std::string_view word = path.substr(0, path.find('.'));
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error != std::errc() || end != word.data() + word.size() || index >= list.items.size()) {
    return std::nullopt;
  }
  return Step{&list.items[index],
              word.size() == path.size() ? std::string_view() : path.substr(word.size() + 1)};
}

// "gates[0].by" -> "gates.0.by".
std::string WithDots(const std::string& key) {
  std::string path;
  for (char c : key) {
    if (c == '[') path += '.';
    if (c != '[' && c != ']') path += c;
  }
  return path;
}

// A child that is not there yet: further mappings are made on the way to the field. Whether the
// fields exist is for Bind to say, which knows what is valid there.
Node* Create(Node& map, std::string_view path, config::Span span) {
  Node* at = &map;
  while (true) {
    const std::size_t dot = path.find('.');
    Node child;
    child.kind = dot == std::string_view::npos ? Node::Kind::kScalar : Node::Kind::kMap;
    child.span = span;
    at->entries.push_back({std::string(path.substr(0, dot)), span, std::move(child)});
    at = &at->entries.back().value;
    if (dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
}

struct Target {
  Node* node = nullptr;
  std::string message;  // why there is none
  std::string help;
};

Target NotFound(std::string_view what, std::string_view word, std::vector<std::string> known) {
  const std::string near = config::Nearest(word, known);
  std::string help = known.empty()  ? "the playbook has none"
                     : near.empty() ? "there are " + Listed(known)
                                    : "did you mean `" + near + "`?";
  return {nullptr, "there is no " + std::string(what) + " `" + std::string(word) + "`",
          std::move(help)};
}

Target FindTarget(Node& root, std::string_view key, config::Span span) {
  Node* at = &root;
  std::string_view path = key;
  std::string_view named;  // the mapping of names that `at` is
  while (!path.empty()) {
    const std::optional<Step> step = at->kind == Node::Kind::kMap    ? IntoMap(*at, path)
                                     : at->kind == Node::Kind::kList ? IntoList(*at, path)
                                                                     : std::nullopt;
    if (step) {
      const std::string_view word = path.substr(0, path.size() - step->rest.size());
      const auto is_named = std::ranges::find(kNamed, word.substr(0, word.find('.')));
      named = at == &root && is_named != kNamed.end() ? *is_named : std::string_view();
      at = step->child;
      path = step->rest;
      continue;
    }
    const std::string_view word = path.substr(0, path.find('.'));
    if (!named.empty()) return NotFound("name in `" + std::string(named) + "`:", word, KeysOf(at));
    if (at->kind == Node::Kind::kList) {
      return {nullptr, "`" + std::string(word) + "` is no item of the list",
              "items count from 0, up to " + std::to_string(at->items.size()) + " exclusive"};
    }
    if (at->kind != Node::Kind::kMap) {
      return {nullptr, "`" + std::string(key) + "` leads into a single value",
              "leave `." + std::string(path) + "` out"};
    }
    return {Create(*at, path, span), "", ""};
  }
  return {at, "", ""};
}

// KEY without dots: a variable or an axis comes before a field of the same name.
Target Resolve(Node& root, std::string_view key, config::Span span) {
  if (Node* vars = FindIn(root, "vars"); vars != nullptr) {
    if (Node* variable = FindIn(*vars, key); variable != nullptr) return {variable, "", ""};
  }
  if (Node* matrix = FindIn(root, "matrix"); matrix != nullptr) {
    if (Node* axis = FindIn(*matrix, key); axis != nullptr) return {axis, "", ""};
  }
  const std::vector<std::string> fields = TopFields();
  const std::string_view word = key.substr(0, key.find('.'));
  if (std::ranges::find(fields, word) != fields.end()) return FindTarget(root, key, span);
  std::vector<std::string> known = KeysOf(root.Find("vars"));
  std::ranges::copy(KeysOf(root.Find("matrix")), std::back_inserter(known));
  std::ranges::copy(fields, std::back_inserter(known));
  return NotFound("variable or field", word, std::move(known));
}

bool IsAxis(const Node& root, std::string_view key) {
  const Node* matrix = root.Find("matrix");
  return matrix != nullptr && matrix->kind == Node::Kind::kMap && matrix->Find(key) != nullptr;
}

}  // namespace

void Overrides::Apply(const v1::PlaybookSource& source, config::Document& document,
                      config::Problems& problems) {
  if (document.root.kind != Node::Kind::kMap) return;  // Bind says so
  for (const std::string& option : source.set()) ApplyOne(option, document.root, problems);
  if (source.trials() > 0) {
    // After --set, since it is the plainer of two.
    options_.push_back("--trials " + std::to_string(source.trials()));
    const config::Span span{{kOptionLines + options_.size() - 1, 1}, {}};
    Node* trials = FindIn(document.root, "trials");
    if (trials == nullptr) trials = Create(document.root, "trials", span);
    *trials = Node();
    trials->text = std::to_string(source.trials());
    trials->span = span;
  }
}

void Overrides::ApplyOne(const std::string& option, Node& root, config::Problems& problems) {
  options_.push_back("--set " + option);
  const config::Span span{{kOptionLines + options_.size() - 1, 1}, {}};
  const Place place{options_.back(), {}};
  const std::size_t equals = option.find('=');
  if (equals == std::string::npos || equals == 0) {
    problems.Add(At(place, {"LR303",
                            "`" + option + "` is no KEY=VALUE",
                            "",
                            {},
                            {"write `--set trials=10`, or the name of a variable for the key"}}));
    return;
  }
  const std::string key = WithDots(option.substr(0, equals));
  std::optional<Node> value = ReadValue(option.substr(equals + 1));
  if (!value) {
    problems.Add(At(place, {"LR303",
                            "the value of `" + key + "` is no list or mapping",
                            "",
                            {},
                            {"close its brackets, as in `[4KiB, 1MiB]`"}}));
    return;
  }
  if (IsAxis(root, key) && value->kind == Node::Kind::kScalar) {
    // One value instead of several.
    Node list;
    list.kind = Node::Kind::kList;
    list.items.push_back(std::move(*value));
    value = std::move(list);
  }
  SetSpans(*value, span);
  const Target target = Resolve(root, key, span);
  if (target.node == nullptr) {
    problems.Add(At(place, {"LR303", target.message, "", {}, {target.help}}));
    return;
  }
  *target.node = std::move(*value);
}

Place Overrides::PlaceOf(const config::Document& document, config::Span span) const {
  if (span.begin.line < kOptionLines) return {document.file, span};
  return {options_[span.begin.line - kOptionLines], {}};
}

}  // namespace labrack::plan
