// JSON Schema, draft-07 (what the YAML language server reads). It accepts whatever Bind accepts and
// refuses most of what Bind refuses; beyond it lie bounds of values with units, and everything
// across fields. An editor's YAML types scalars by their look, so a text may come as a number
// there, and a number in quotes as a text.
#include <nlohmann/json.hpp>

#include "proto/fields/declaration.h"
#include "proto/fields/fields.h"
#include "proto/fields/scalar.h"
#include "storage/base/check.h"

namespace labrack::fields {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDecimal = "[0-9]+(\\.[0-9]+)?";
constexpr std::string_view kPlaceholder = ".*\\$\\{[^}]*\\}.*";

Json TextForm(std::string_view pattern, bool placeholders) {
  std::string whole = "^(?:" + std::string(pattern);
  if (placeholders) whole += "|" + std::string(kPlaceholder);
  return Json{{"type", "string"}, {"pattern", whole + ")$"}};
}

Json WithUnit(std::string_view units, bool placeholders) {
  return TextForm(std::string(kDecimal) + std::string(units), placeholders);
}

double AsDouble(const Scalar& value) {
  if (const auto* integer = std::get_if<Integer>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

Json BoundedNumber(const FieldDescriptor& field) {
  const bool integer = KindOf(field) == Kind::kInteger;
  Json schema{{"type", integer ? "integer" : "number"}};
  const auto bound = [&](std::string_view text) {
    const Result<Scalar> value = ParseScalar(field, text);
    LABRACK_CHECK(value.has_value());
    return integer ? Json(static_cast<std::int64_t>(std::get<Integer>(*value)))
                   : Json(AsDouble(*value));
  };
  const v1::Field& options = OptionsOf(field);
  const bool is_unsigned = field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
                           field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  if (!options.min().empty()) {
    schema["minimum"] = bound(options.min());
  } else if (is_unsigned) {
    schema["minimum"] = 0;
  }
  if (!options.max().empty()) schema["maximum"] = bound(options.max());
  return schema;
}

// One value of a scalar field.
Json ScalarSchema(const FieldDescriptor& field, bool placeholders) {
  switch (KindOf(field)) {
    case Kind::kText: {
      Json schema{{"type", {"string", "number", "boolean"}}};
      const std::string& pattern = OptionsOf(field).pattern();
      if (!pattern.empty()) schema["pattern"] = TextForm(pattern, placeholders)["pattern"];
      return schema;
    }
    case Kind::kInteger:
      return Json{{"anyOf", {BoundedNumber(field), TextForm("-?[0-9]+", placeholders)}}};
    case Kind::kNumber:
      return Json{{"anyOf", {BoundedNumber(field), TextForm(kDecimal, placeholders)}}};
    case Kind::kBoolean:
      return Json{{"anyOf", {Json{{"type", "boolean"}}, TextForm("true|false", placeholders)}}};
    case Kind::kBytes:
      return WithUnit("(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)", placeholders);
    case Kind::kDuration:
      return WithUnit("(ns|us|ms|s|min|h)", placeholders);
    case Kind::kPercent:
      return WithUnit("%", placeholders);
    case Kind::kFactor:
      return WithUnit("x", placeholders);
    case Kind::kChoice: {
      Json words{{"enum", ChoiceNames(*field.enum_type())}};
      if (!placeholders) return words;
      return Json{{"anyOf", {words, TextForm(kPlaceholder, false)}}};
    }
    case Kind::kMessage:
      break;
  }
  return Json::object();
}

Json DefaultOf(const FieldDescriptor& field) {
  const std::string& text = OptionsOf(field).default_value();
  switch (KindOf(field)) {
    case Kind::kInteger:
    case Kind::kNumber:
    case Kind::kBoolean:
      return Json::parse(text);  // all written as JSON writes them
    default:
      return text;
  }
}

std::string Description(const FieldDescriptor& field) {
  std::string text = OptionsOf(field).help();
  const std::string bounds = BoundsText(field);
  if (!bounds.empty()) text += " Bounds: " + bounds + ".";
  if (KindOf(field) == Kind::kChoice) {
    for (int i = 0; i < field.enum_type()->value_count(); ++i) {
      const EnumValueDescriptor& value = *field.enum_type()->value(i);
      if (ChoiceName(value).empty()) continue;
      text += "\n- " + std::string(ChoiceName(value)) + ": " +
              value.options().GetExtension(v1::choice).help();
    }
  }
  return text;
}

Json MessageSchema(const Descriptor& message, bool placeholders);

Json ItemSchema(const FieldDescriptor& field, bool placeholders) {
  if (KindOf(field) != Kind::kMessage) return ScalarSchema(field, placeholders);
  return MessageSchema(*field.message_type(), placeholders);
}

Json FieldSchema(const FieldDescriptor& field, bool placeholders);

Json ListSchema(const FieldDescriptor& field, bool placeholders) {
  Json list{{"type", "array"}, {"items", ItemSchema(field, placeholders)}};
  if (OptionsOf(field).items_min() > 0) list["minItems"] = OptionsOf(field).items_min();
  list["maxItems"] = ItemsMaxOf(field);
  if (!OptionsOf(field).scalar_or_list()) return list;
  return Json{{"anyOf", {list, ItemSchema(field, placeholders)}}};
}

Json MappingSchema(const FieldDescriptor& field, bool placeholders) {
  Json map{{"type", "object"}};
  if (OptionsOf(field).items_min() > 0) map["minProperties"] = OptionsOf(field).items_min();
  map["maxProperties"] = ItemsMaxOf(field);
  if (field.is_map()) {
    map["additionalProperties"] = ScalarSchema(*field.message_type()->map_value(), placeholders);
    return map;
  }
  const std::string& pattern = OptionsOf(NameField(field)).pattern();
  if (!pattern.empty()) map["propertyNames"] = Json{{"pattern", "^(?:" + pattern + ")$"}};
  const FieldDescriptor* straight = StraightField(field);
  map["additionalProperties"] = straight == nullptr
                                    ? MessageSchema(*field.message_type(), placeholders)
                                    : FieldSchema(*straight, placeholders);
  return map;
}

// The whole value of a field, with its description and default.
Json FieldSchema(const FieldDescriptor& field, bool placeholders) {
  placeholders = placeholders || OptionsOf(field).placeholders();
  Json schema;
  switch (ShapeOf(field)) {
    case Shape::kSingle:
      schema = ItemSchema(field, placeholders);
      break;
    case Shape::kList:
      schema = ListSchema(field, placeholders);
      break;
    case Shape::kKeyed:
    case Shape::kTextMap:
      schema = MappingSchema(field, placeholders);
      break;
  }
  schema["description"] = Description(field);
  if (!OptionsOf(field).default_value().empty()) schema["default"] = DefaultOf(field);
  return schema;
}

Json MessageSchema(const Descriptor& message, bool placeholders) {
  Json schema{{"type", "object"}, {"additionalProperties", false}};
  Json required = Json::array();
  Json properties = Json::object();
  for (const FieldDescriptor* field : WritableFields(message)) {
    properties[field->name()] = FieldSchema(*field, placeholders);
    if (OptionsOf(*field).required()) required.push_back(field->name());
  }
  if (AboutOf(message).one_of()) {
    schema["minProperties"] = 1;
    schema["maxProperties"] = 1;
  }
  if (!required.empty()) schema["required"] = required;
  schema["description"] = AboutOf(message).help();
  schema["properties"] = properties;
  return schema;
}

}  // namespace

std::string SchemaJson(const Descriptor& root, std::string_view title) {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  schema.update(MessageSchema(root, false));
  return schema.dump(2) + "\n";
}

}  // namespace labrack::fields
