// YAML tree -> message. One walk over tree and descriptor side by side:
//
//   BindMessage  mapping          -> fields of a message, defaults for what is left out
//   BindOneOf    mapping, one key -> the chosen kind
//   BindField    by shape: single value, list, keyed mapping, text mapping
//   BindScalar   text             -> value, by the field's kind; bounds; pattern
//
// A value that is refused is said once: its field counts as written and gets no default, and
// nothing below it is looked at.
#include <algorithm>
#include <cctype>
#include <set>

#include "proto/fields/declaration.h"
#include "proto/fields/defaults.h"
#include "proto/fields/fields.h"
#include "proto/fields/scalar.h"
#include "storage/base/check.h"

namespace labrack::fields {
namespace {

using config::Node;
using config::Problem;
using config::Quote;
using config::Span;
using google::protobuf::Message;

// Where the walk is.
struct Spot {
  std::string path;  // "workloads.pages.random"
  std::string name;  // for messages: "random", "workloads.pages"; "" at the top
  Span key_span;     // of the key that the value belongs to
  const FieldDescriptor* field = nullptr;  // that holds the message; nullptr at the top

  std::string Child(std::string_view key) const {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
};

// "Disks per trial." -> "disks per trial", for the middle of a sentence.
std::string Inline(std::string_view help) {
  std::string text(help.substr(0, help.find(". ")));
  if (text.ends_with('.')) text.pop_back();
  const bool acronym = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) != 0;
  if (!text.empty() && !acronym) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

// "block" of "matrix.block".
std::string LastName(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::string_view ShapeText(const FieldDescriptor& field) {
  switch (ShapeOf(field)) {
    case Shape::kList:
      return "a list";
    case Shape::kKeyed:
    case Shape::kTextMap:
      return "a mapping of names";
    case Shape::kSingle:
      break;
  }
  return KindOf(field) == Kind::kMessage ? "a mapping" : "one value";
}

// How the field may be written under `name`, for a help.
std::string ExampleText(const FieldDescriptor& field, const std::string& name) {
  const std::string& example = OptionsOf(field).example();
  if (!example.empty() && example.find('\n') == std::string::npos) {
    return "`" + name + ": " + example + "`";
  }
  switch (ShapeOf(field)) {
    case Shape::kList:
      return "`" + name + ": [...]`";
    case Shape::kKeyed:
    case Shape::kTextMap:
      return "`" + name + ": {NAME: ...}`";
    case Shape::kSingle:
      break;
  }
  if (KindOf(field) != Kind::kMessage) {
    const std::string& value = OptionsOf(field).default_value();
    return value.empty() ? KindText(field) : "`" + name + ": " + value + "`";
  }
  const std::vector<std::string> names = WritableNames(*field.message_type());
  return "`" + name + ": {" + (names.empty() ? "" : names.front() + ": ...") + "}`";
}

// What a value is asked for: the field's whole value, or one item of it.
struct Asked {
  std::string name;  // for messages: "trials", "steps[1]"
  bool item = false;
};

class Binder {
 public:
  Binder(const config::Document& document, const Descriptor& top, Places& places,
         config::Problems& problems)
      : document_(document), top_(top), places_(places), problems_(problems) {}

  void BindMessage(const Node& node, const Spot& spot, Message& message);

 private:
  Problem Make(std::string_view code, std::string message, Span span) const {
    Problem problem;
    problem.code = code;
    problem.message = std::move(message);
    problem.file = document_.file;
    problem.span = span;
    return problem;
  }
  void Add(Problem problem) { problems_.Add(std::move(problem)); }

  void BindOneOf(const Node& node, const Spot& spot, Message& message);
  void BindEntry(const Node::Entry& entry, const Spot& spot, const FieldDescriptor& field,
                 Message& message);
  void BindField(const Node& node, const Spot& spot, const FieldDescriptor& field,
                 Message& message);
  void BindList(const Node& node, const Spot& spot, const FieldDescriptor& field, Message& message);
  void BindKeyed(const Node& node, const Spot& spot, const FieldDescriptor& field,
                 Message& message);
  void BindTextMap(const Node& node, const Spot& spot, const FieldDescriptor& field,
                   Message& message);
  std::optional<Scalar> ReadScalar(const Node& node, const FieldDescriptor& field,
                                   const Asked& asked);

  bool IsShape(const Node& node, Node::Kind kind, const FieldDescriptor& field, const Asked& asked);
  void AddUnreadable(const Node& node, const FieldDescriptor& field, const Asked& asked,
                     const std::string& note);
  bool IsCount(const Node& node, std::size_t count, const Spot& spot, const FieldDescriptor& field);
  bool IsForm(const FieldDescriptor& field, const std::string& text, Span span,
              const std::string& message);
  void AddMissing(const FieldDescriptor& field, const Spot& spot, const Node& node);
  std::vector<std::string> AddUnknown(const Node::Entry& entry, const Spot& spot,
                                      const Descriptor& descriptor);
  void HelpElsewhere(Problem& problem, const std::string& key, const Spot& spot,
                     const Descriptor& descriptor);

  const config::Document& document_;
  const Descriptor& top_;
  Places& places_;
  config::Problems& problems_;
};

void Binder::BindMessage(const Node& node, const Spot& spot, Message& message) {
  places_[spot.path] = node.span;
  if (node.refused) return;
  const Descriptor& descriptor = *message.GetDescriptor();
  if (spot.field == nullptr && node.kind != Node::Kind::kMap) {
    Problem problem = Make(
        "LR201", "the file holds a " + std::string(node.KindName()) + ", not a mapping", node.span);
    problem.helps = {"write `key: value` lines; its keys are " +
                     NameList(WritableNames(descriptor), "and")};
    return Add(std::move(problem));
  }
  const bool item = spot.field != nullptr && ShapeOf(*spot.field) != Shape::kSingle;
  if (spot.field != nullptr && !IsShape(node, Node::Kind::kMap, *spot.field, {spot.name, item})) {
    return;
  }
  if (AboutOf(descriptor).one_of()) return BindOneOf(node, spot, message);

  std::set<const FieldDescriptor*> written;
  std::set<std::string> meant;  // by keys that are not known
  for (const Node::Entry& entry : node.entries) {
    if (const FieldDescriptor* field = FindWritable(descriptor, entry.key)) {
      written.insert(field);
      BindEntry(entry, spot, *field, message);
      continue;
    }
    for (std::string& name : AddUnknown(entry, spot, descriptor)) meant.insert(std::move(name));
  }
  for (const FieldDescriptor* field : WritableFields(descriptor)) {
    if (written.contains(field)) continue;
    if (!OptionsOf(*field).required()) {
      SetDefault(message, *field);
    } else if (!meant.contains(field->name())) {
      AddMissing(*field, spot, node);
    }
  }
}

void Binder::BindOneOf(const Node& node, const Spot& spot, Message& message) {
  const Descriptor& descriptor = *message.GetDescriptor();
  const std::vector<std::string> names = WritableNames(descriptor);
  const std::string called = spot.name.empty() ? "the file" : Quote(spot.name);
  const Node::Entry* chosen = nullptr;
  for (const Node::Entry& entry : node.entries) {
    const FieldDescriptor* field = FindWritable(descriptor, entry.key);
    if (field == nullptr) {
      AddUnknown(entry, spot, descriptor);
    } else if (chosen == nullptr) {
      chosen = &entry;
      BindEntry(entry, spot, *field, message);
    } else {
      Problem problem =
          Make("LR205", called + " holds both " + Quote(chosen->key) + " and " + Quote(entry.key),
               entry.key_span);
      problem.label = "one kind too many";
      problem.helps = {"keep one of them"};
      Add(std::move(problem));
    }
  }
  if (!node.entries.empty()) return;
  Problem problem = Make("LR205", called + " does not say of which kind it is", node.span);
  problem.helps = {"write one of " + NameList(names, "or") + " in it"};
  Add(std::move(problem));
}

void Binder::BindEntry(const Node::Entry& entry, const Spot& spot, const FieldDescriptor& field,
                       Message& message) {
  Spot child;
  child.path = spot.Child(entry.key);
  child.name = entry.key;
  child.key_span = entry.key_span;
  child.field = &field;
  places_[child.path] = entry.value.span;
  places_[child.path + "#key"] = entry.key_span;
  BindField(entry.value, child, field, message);
}

void Binder::BindField(const Node& node, const Spot& spot, const FieldDescriptor& field,
                       Message& message) {
  if (node.refused) return;
  switch (ShapeOf(field)) {
    case Shape::kList:
      return BindList(node, spot, field, message);
    case Shape::kKeyed:
      return BindKeyed(node, spot, field, message);
    case Shape::kTextMap:
      return BindTextMap(node, spot, field, message);
    case Shape::kSingle:
      break;
  }
  if (KindOf(field) == Kind::kMessage) {
    return BindMessage(node, spot, *message.GetReflection()->MutableMessage(&message, &field));
  }
  const std::optional<Scalar> value = ReadScalar(node, field, {spot.name});
  if (value) SetScalar(message, field, *value);
}

void Binder::BindList(const Node& node, const Spot& spot, const FieldDescriptor& field,
                      Message& message) {
  if (node.kind == Node::Kind::kScalar && OptionsOf(field).scalar_or_list()) {
    const std::optional<Scalar> value = ReadScalar(node, field, {spot.name});
    if (value) AddScalar(message, field, *value);
    return;
  }
  if (!IsShape(node, Node::Kind::kList, field, {spot.name})) return;
  if (!IsCount(node, node.items.size(), spot, field)) return;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    Spot child;
    child.path = spot.path + "[" + std::to_string(i) + "]";
    child.name = spot.path + "[" + std::to_string(i) + "]";
    child.key_span = item.span;
    child.field = &field;
    places_[child.path] = item.span;
    if (item.refused) continue;
    if (KindOf(field) == Kind::kMessage) {
      BindMessage(item, child, *message.GetReflection()->AddMessage(&message, &field));
      continue;
    }
    const std::optional<Scalar> value = ReadScalar(item, field, {child.name, true});
    if (value) AddScalar(message, field, *value);
  }
}

void Binder::BindKeyed(const Node& node, const Spot& spot, const FieldDescriptor& field,
                       Message& message) {
  if (!IsShape(node, Node::Kind::kMap, field, {spot.name})) return;
  if (!IsCount(node, node.entries.size(), spot, field)) return;
  const FieldDescriptor& name_field = NameField(field);
  const FieldDescriptor* straight = StraightField(field);
  for (const Node::Entry& entry : node.entries) {
    Spot child;
    child.path = spot.Child(entry.key);
    child.name = child.path;
    child.key_span = entry.key_span;
    child.field = &field;
    places_[child.path] = entry.value.span;
    places_[child.path + "#key"] = entry.key_span;
    IsForm(name_field, entry.key, entry.key_span,
           Quote(entry.key) + " cannot be a name in `" + field.name() + "`");
    Message& item = *message.GetReflection()->AddMessage(&message, &field);
    SetScalar(item, name_field, Scalar(entry.key));
    if (straight == nullptr) {
      BindMessage(entry.value, child, item);
    } else {
      BindField(entry.value, child, *straight, item);
    }
  }
}

void Binder::BindTextMap(const Node& node, const Spot& spot, const FieldDescriptor& field,
                         Message& message) {
  if (!IsShape(node, Node::Kind::kMap, field, {spot.name})) return;
  if (!IsCount(node, node.entries.size(), spot, field)) return;
  const FieldDescriptor& key_field = *field.message_type()->map_key();
  const FieldDescriptor& value_field = *field.message_type()->map_value();
  for (const Node::Entry& entry : node.entries) {
    const std::string path = spot.Child(entry.key);
    places_[path] = entry.value.span;
    places_[path + "#key"] = entry.key_span;
    if (entry.value.refused) continue;
    const std::optional<Scalar> value = ReadScalar(entry.value, value_field, {path, true});
    if (!value) continue;
    Message& item = *message.GetReflection()->AddMessage(&message, &field);
    SetScalar(item, key_field, Scalar(entry.key));
    SetScalar(item, value_field, *value);
  }
}

// The value of a scalar field, or a problem and nothing.
std::optional<Scalar> Binder::ReadScalar(const Node& node, const FieldDescriptor& field,
                                         const Asked& asked) {
  if (!IsShape(node, Node::Kind::kScalar, field, asked)) return std::nullopt;
  const Result<Scalar> parsed = ParseScalar(field, node.text);
  if (!parsed) {
    AddUnreadable(node, field, asked, parsed.error().note());
    return std::nullopt;
  }
  if (const std::optional<std::string_view> wrong = OutOfBounds(field, *parsed)) {
    Problem problem =
        Make("LR207", Quote(node.text) + " is " + std::string(*wrong) + " for " + Quote(asked.name),
             node.span);
    const std::string bounds = BoundsText(field);
    problem.helps = {bounds.empty() ? "write a smaller number" : "write " + bounds};
    Add(std::move(problem));
    return std::nullopt;
  }
  const std::string refusal = Quote(node.text) + " cannot be the value of " + Quote(asked.name);
  if (!IsForm(field, node.text, node.span, refusal)) return std::nullopt;
  return *parsed;
}

void Binder::AddUnreadable(const Node& node, const FieldDescriptor& field, const Asked& asked,
                           const std::string& note) {
  const std::size_t cut = note.find("; ");
  Problem problem = Make("LR206", note.substr(0, cut), node.span);
  if (cut != std::string::npos) problem.helps = {note.substr(cut + 2)};
  if (KindOf(field) == Kind::kChoice) {
    problem.code = "LR208";
    if (problem.helps.front().starts_with("did")) {
      problem.notes = {"the choices are " + NameList(ChoiceNames(*field.enum_type()), "and")};
    }
  } else {
    problem.label = Quote(asked.name) + " takes " + KindText(field);
  }
  Add(std::move(problem));
}

bool Binder::IsShape(const Node& node, Node::Kind kind, const FieldDescriptor& field,
                     const Asked& asked) {
  const bool empty = node.kind == Node::Kind::kScalar && node.text.empty() && !node.quoted;
  if (node.kind == kind && !empty) return true;
  if (empty) {
    Problem problem = Make("LR202", Quote(asked.name) + " has no value", node.span);
    problem.label = "nothing is written here";
    if (kind == Node::Kind::kMap) {
      problem.helps = {"indent what belongs to it below it, or write {} for an empty mapping"};
    } else if (kind == Node::Kind::kList) {
      problem.helps = {"write [] for an empty list, or leave the line out"};
    } else if (KindOf(field) == Kind::kText) {
      problem.helps = {"write a text, \"\" for an empty one, or leave the line out"};
    } else {
      problem.helps = {"write " + KindText(field) + ", or leave the line out"};
    }
    Add(std::move(problem));
    return false;
  }
  const bool message = KindOf(field) == Kind::kMessage;
  const std::string wanted(asked.item ? (message ? "a mapping" : "one value") : ShapeText(field));
  Problem problem = Make(
      "LR201", Quote(asked.name) + " takes " + wanted + ", not a " + std::string(node.KindName()),
      node.span);
  if (!asked.item) {
    problem.helps = {"write " + ExampleText(field, LastName(asked.name))};
  } else if (message && !field.is_map()) {
    problem.helps = {"its fields are " + NameList(WritableNames(*field.message_type()), "and")};
  } else {
    problem.helps = {"write " + KindText(field)};
  }
  Add(std::move(problem));
  return false;
}

bool Binder::IsCount(const Node& node, std::size_t count, const Spot& spot,
                     const FieldDescriptor& field) {
  const std::uint32_t min = OptionsOf(field).items_min();
  const std::uint32_t max = ItemsMaxOf(field);
  if (count >= min && count <= max) return true;
  const std::string items = ShapeOf(field) == Shape::kList ? "items" : "entries";
  Problem problem = Make("LR210", Quote(spot.name) + " has " + std::to_string(count) + " " + items,
                         count > max ? spot.key_span : node.span);
  problem.helps = {count < min ? "write at least " + std::to_string(min)
                               : "write at most " + std::to_string(max)};
  Add(std::move(problem));
  return false;
}

bool Binder::IsForm(const FieldDescriptor& field, const std::string& text, Span span,
                    const std::string& message) {
  if (MatchesPattern(field, Scalar(text))) return true;
  Problem problem = Make("LR209", message, span);
  problem.notes = {"it must match " + OptionsOf(field).pattern()};
  std::string likely = text;
  for (char& c : likely) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  }
  if (MatchesPattern(field, Scalar(likely))) problem.helps = {"write `" + likely + "`"};
  Add(std::move(problem));
  return false;
}

void Binder::AddMissing(const FieldDescriptor& field, const Spot& spot, const Node& node) {
  const bool top = spot.field == nullptr;
  Span span = spot.key_span;
  if (top) span = node.entries.empty() ? node.span : node.entries.front().key_span;
  Problem problem = Make("LR204", Quote(field.name()) + " is missing", span);
  if (top) {
    problem.label = "not among the keys of this file";
  } else {
    problem.label = "not written in here";
  }
  problem.helps = {"write " + ExampleText(field, field.name()) + ": " +
                   Inline(OptionsOf(field).help())};
  Add(std::move(problem));
}

// Fields of `message` that hold one message each with a field `key` in it, but not `other`.
std::vector<std::string> HoldersOf(const Descriptor& message, const std::string& key,
                                   const FieldDescriptor* other) {
  std::vector<std::string> holders;
  for (const FieldDescriptor* field : WritableFields(message)) {
    if (field == other || KindOf(*field) != Kind::kMessage) continue;
    if (ShapeOf(*field) != Shape::kSingle) continue;
    if (FindWritable(*field->message_type(), key) != nullptr) holders.push_back(field->name());
  }
  return holders;
}

// Says that there is no such field, and returns the names of those that may have been meant: that
// one of them is missing needs no saying.
std::vector<std::string> Binder::AddUnknown(const Node::Entry& entry, const Spot& spot,
                                            const Descriptor& descriptor) {
  Problem problem = Make("LR203", "unknown field " + Quote(entry.key), entry.key_span);
  problem.label = spot.name.empty() ? "there is no such field at the top"
                                    : Quote(spot.name) + " has no such field";
  std::vector<std::string> meant;
  if (problems_.list().size() == config::Problems::kKeptMax) {
    Add(std::move(problem));  // only counted: looking for names would be for nothing
    return meant;
  }
  const std::string nearest = config::Nearest(entry.key, WritableNames(descriptor));
  if (!nearest.empty()) {
    meant = {nearest};
    problem.helps = {"did you mean `" + nearest + "`?"};
  } else if (meant = HoldersOf(descriptor, entry.key, nullptr); !meant.empty()) {
    problem.helps = {"it is a field of " + NameList(meant, "and") + ": write `" + meant.front() +
                     ": {" + entry.key + ": ...}`"};
  } else {
    HelpElsewhere(problem, entry.key, spot, descriptor);
  }
  Add(std::move(problem));
  return meant;
}

// A right field at the wrong place, of another kind or one level too low, or no field at all.
void Binder::HelpElsewhere(Problem& problem, const std::string& key, const Spot& spot,
                           const Descriptor& descriptor) {
  if (spot.field != nullptr && AboutOf(*spot.field->containing_type()).one_of()) {
    const std::vector<std::string> siblings =
        HoldersOf(*spot.field->containing_type(), key, spot.field);
    if (!siblings.empty()) {
      problem.notes = {Quote(key) + " is a field of " + NameList(siblings, "and") + ", this is " +
                       Quote(spot.name)};
    }
  }
  if (problem.notes.empty() && spot.field != nullptr && FindWritable(top_, key) != nullptr) {
    problem.helps = {"it is a field of the file's top level: do not indent it"};
    return;
  }
  problem.helps = {"its fields are " + NameList(WritableNames(descriptor), "and")};
}

}  // namespace

bool Bind(const config::Document& document, const config::Node& node, Message& message,
          Places& places, config::Problems& problems) {
  const std::size_t before = problems.total();
  message.Clear();
  Binder(document, *message.GetDescriptor(), places, problems).BindMessage(node, Spot(), message);
  return problems.total() == before;
}

}  // namespace labrack::fields
