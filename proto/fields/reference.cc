// What people read about fields: the Markdown reference, `labrack explain`, and all paths. A path
// names a field from the top; "*" stands for the name of a keyed entry or for the item of a list.
#include <algorithm>

#include "proto/fields/declaration.h"
#include "proto/fields/fields.h"

namespace labrack::fields {
namespace {

struct PathField {
  std::string path;  // "workloads.*.random.block"
  const FieldDescriptor* field;
};

// The path of what holds the fields of a message field: one step down where it is repeated.
std::string InnerPath(const PathField& place) {
  return place.field->is_repeated() ? place.path + ".*" : place.path;
}

bool HasFields(const FieldDescriptor& field) {
  return KindOf(field) == Kind::kMessage && ShapeOf(field) != Shape::kTextMap &&
         !(ShapeOf(field) == Shape::kKeyed && StraightField(field) != nullptr);
}

void Walk(const Descriptor& message, const std::string& path, std::vector<PathField>& places) {
  for (const FieldDescriptor* field : WritableFields(message)) {
    places.push_back({path.empty() ? field->name() : path + "." + field->name(), field});
    const PathField place = places.back();
    if (HasFields(*field)) Walk(*field->message_type(), InnerPath(place), places);
  }
}

std::string TakesText(const FieldDescriptor& field) {
  std::string items = KindText(field);
  switch (ShapeOf(field)) {
    case Shape::kSingle:
      return items;
    case Shape::kTextMap:
      return "a mapping from names to texts";
    case Shape::kList:
      return OptionsOf(field).scalar_or_list() ? items + ", or a list of them"
                                               : "a list, each item " + items;
    case Shape::kKeyed:
      break;
  }
  const FieldDescriptor* straight = StraightField(field);
  return "a mapping, each name to " + (straight == nullptr ? items : TakesText(*straight));
}

std::string CountText(const FieldDescriptor& field) {
  const std::uint32_t min = OptionsOf(field).items_min();
  const std::uint32_t max = OptionsOf(field).items_max();
  const std::string noun = ShapeOf(field) == Shape::kList ? " items" : " entries";
  if (min > 0 && max > 0) return std::to_string(min) + " to " + std::to_string(max) + noun;
  if (min > 0) return "at least " + std::to_string(min) + noun;
  if (max > 0) return "at most " + std::to_string(max) + noun;
  return {};
}

std::string AllBounds(const FieldDescriptor& field, const std::string& pattern) {
  std::string text = BoundsText(field);
  for (const std::string& part : {CountText(field), pattern}) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

std::string Cell(std::string_view text) {
  std::string cell;
  for (char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

// Texts between backquotes whatever they hold.
std::string Code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

struct ChoiceLine {
  std::string name;
  std::string help;
};
std::vector<ChoiceLine> ChoicesOf(const FieldDescriptor& field) {
  std::vector<ChoiceLine> lines;
  if (KindOf(field) != Kind::kChoice) return lines;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const EnumValueDescriptor& value = *field.enum_type()->value(i);
    const std::string name(ChoiceName(value));
    if (!name.empty()) lines.push_back({name, value.options().GetExtension(v1::choice).help()});
  }
  return lines;
}

std::string Row(const FieldDescriptor& field) {
  const v1::Field& options = OptionsOf(field);
  std::string meaning = options.help();
  for (const ChoiceLine& choice : ChoicesOf(field)) {
    meaning += "<br>" + Code(choice.name) + ": " + choice.help;
  }
  if (options.example().find('\n') == std::string::npos && !options.example().empty()) {
    meaning += "<br>Example: " + Code(field.name() + ": " + options.example());
  }
  const bool choice = KindOf(field) == Kind::kChoice;
  const std::string takes =
      choice && ShapeOf(field) == Shape::kSingle ? "a word" : TakesText(field);
  const std::string filled = options.required() ? "required" : Code(options.default_value());
  return "| " + Code(field.name()) + " | " + Cell(takes) + " | " + Cell(filled) + " | " +
         Cell(AllBounds(field, Code(options.pattern()))) + " | " + Cell(meaning) + " |\n";
}

std::string Table(const Descriptor& message) {
  std::string text = AboutOf(message).help() + "\n\n";
  if (AboutOf(message).one_of()) text += "Exactly one of these is written.\n\n";
  text += "| field | takes | default | bounds | meaning |\n|---|---|---|---|---|\n";
  for (const FieldDescriptor* field : WritableFields(message)) text += Row(*field);
  return text + "\n";
}

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> parts(1);
  for (char c : path) {
    if (c == '.' || c == '[') {
      parts.emplace_back();
    } else if (c != ']') {
      parts.back() += c;
    }
  }
  return parts;
}

// Whether `asked` names the field, from the top or by the end of its path.
bool Matches(const std::string& path, const std::vector<std::string>& asked, bool whole) {
  const std::vector<std::string> parts = SplitPath(path);
  if (asked.size() > parts.size() || (whole && asked.size() != parts.size())) return false;
  const std::size_t skipped = parts.size() - asked.size();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::string& part = parts[skipped + i];
    if (part != "*" && part != asked[i]) return false;
  }
  return true;
}

std::string Line(std::string_view name, const std::string& text, std::size_t width) {
  if (text.empty()) return {};
  std::string line = "  " + std::string(name);
  line.resize(std::max(line.size() + 2, width + 4), ' ');
  return line + text + "\n";
}

std::string ExplainOne(const PathField& place) {
  const FieldDescriptor& field = *place.field;
  const v1::Field& options = OptionsOf(field);
  constexpr std::size_t kWidth = 8;
  std::string text = place.path + "\n  " + options.help() + "\n\n";
  text += Line("takes", TakesText(field), kWidth);
  text += Line("default", options.required() ? "none: it must be written" : options.default_value(),
               kWidth);
  text += Line("bounds", AllBounds(field, options.pattern()), kWidth);
  std::string example = options.example();
  for (std::size_t at = example.find('\n'); at != std::string::npos; at = example.find('\n', at)) {
    example.replace(at, 1, "\n" + std::string(kWidth + 4, ' '));
    at += kWidth + 5;
  }
  text += Line("example", example.empty() ? "" : field.name() + ": " + example, kWidth);
  std::vector<ChoiceLine> lines = ChoicesOf(field);
  if (HasFields(field)) {
    for (const FieldDescriptor* inner : WritableFields(*field.message_type())) {
      lines.push_back({inner->name(), OptionsOf(*inner).help()});
    }
  }
  if (lines.empty()) return text;
  const bool one_of = HasFields(field) && AboutOf(*field.message_type()).one_of();
  text += std::string("\n") +
          (one_of             ? "  one of"
           : HasFields(field) ? "  fields"
                              : "  choices") +
          "\n";
  std::size_t width = 0;
  for (const ChoiceLine& line : lines) width = std::max(width, line.name.size() + 2);
  for (const ChoiceLine& line : lines) text += Line("  " + line.name, line.help, width);
  return text;
}

}  // namespace

std::vector<std::string> FieldPaths(const Descriptor& root) {
  std::vector<PathField> places;
  Walk(root, "", places);
  std::vector<std::string> paths;
  for (const PathField& place : places) paths.push_back(place.path);
  return paths;
}

std::string ReferenceMarkdown(const Descriptor& root) {
  std::vector<PathField> places;
  Walk(root, "", places);
  std::string text = "# " + root.name() + "\n\n" + Table(root);
  for (const PathField& place : places) {
    if (!HasFields(*place.field)) continue;
    text += "## `" + InnerPath(place) + "`\n\n" + Table(*place.field->message_type());
  }
  text.pop_back();  // one line feed at the end
  return text;
}

std::optional<std::string> Explain(const Descriptor& root, std::string_view path) {
  std::vector<PathField> places;
  Walk(root, "", places);
  const std::vector<std::string> asked = SplitPath(path);
  for (const bool whole : {true, false}) {
    std::vector<PathField> found;
    for (const PathField& place : places) {
      if (Matches(place.path, asked, whole)) found.push_back(place);
    }
    if (found.size() == 1) return ExplainOne(found.front());
    if (found.empty()) continue;
    std::string text = "`" + std::string(path) + "` names several fields:\n";
    std::size_t width = 0;
    for (const PathField& place : found) width = std::max(width, place.path.size());
    for (const PathField& place : found) {
      text += Line(place.path, OptionsOf(*place.field).help(), width);
    }
    return text;
  }
  return std::nullopt;
}

}  // namespace labrack::fields
