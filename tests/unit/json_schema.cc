#include "tests/unit/json_schema.h"

#include <algorithm>
#include <regex>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace labrack {
namespace {

using Json = nlohmann::json;

bool HasType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "null") return value.is_null();
  ADD_FAILURE() << "the validator knows no type " << type;
  return false;
}

void ExpectKnownKeywords(const Json& schema) {
  static const std::set<std::string> known{
      "$schema",       "$ref",          "title",   "definitions",
      "description",   "default",       "type",    "additionalProperties",
      "properties",    "required",      "pattern", "minProperties",
      "maxProperties", "propertyNames", "items",   "minItems",
      "maxItems",      "anyOf",         "enum",    "const",
      "minimum",       "maximum"};
  for (const auto& [key, unused] : schema.items()) EXPECT_THAT(known, testing::Contains(key));
}

// Of those keywords that look at the value itself and not at what it holds.
std::string FaultOfValue(const Json& schema, const Json& value) {
  if (schema.contains("const") && value != schema["const"]) return "another constant";
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) {
    return "no choice";
  }
  if (schema.contains("type")) {
    Json types = schema["type"];
    if (types.is_string()) types = Json::array({types});
    const bool fits = std::ranges::any_of(
        types, [&](const Json& type) { return HasType(value, type.get<std::string>()); });
    if (!fits) return value.dump() + " is no " + schema["type"].dump();
  }
  if (value.is_string() && schema.contains("pattern")) {
    const std::regex pattern(schema["pattern"].get<std::string>());
    if (!std::regex_search(value.get<std::string>(), pattern)) return "pattern";
  }
  if (value.is_number()) {
    if (schema.contains("minimum") && value < schema["minimum"]) return "minimum";
    if (schema.contains("maximum") && value > schema["maximum"]) return "maximum";
  }
  return {};
}

}  // namespace

std::string JsonSchema::Validate(const Json& schema, const Json& value,
                                 const std::string& path) const {
  ExpectKnownKeywords(schema);
  if (schema.contains("$ref")) {
    constexpr std::string_view kDefinitions = "#/definitions/";
    const std::string name = schema["$ref"].get<std::string>().substr(kDefinitions.size());
    return Validate(root_.at("definitions").at(name), value, path);
  }
  if (schema.contains("anyOf")) {
    const bool any = std::ranges::any_of(
        schema["anyOf"], [&](const Json& one) { return Validate(one, value, path).empty(); });
    if (!any) return path + ": none of the alternatives";
  }
  const std::string fault = FaultOfValue(schema, value);
  if (!fault.empty()) return path + ": " + fault;
  if (value.is_array()) return ValidateArray(schema, value, path);
  return value.is_object() ? ValidateObject(schema, value, path) : std::string();
}

std::string JsonSchema::ValidateArray(const Json& schema, const Json& value,
                                      const std::string& path) const {
  if (value.size() < schema.value("minItems", 0u)) return path + ": too few items";
  if (value.size() > schema.value("maxItems", 1'000'000u)) return path + ": too many items";
  for (std::size_t i = 0; schema.contains("items") && i < value.size(); ++i) {
    const std::string wrong =
        Validate(schema["items"], value[i], path + "[" + std::to_string(i) + "]");
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::string JsonSchema::ValidateObject(const Json& schema, const Json& value,
                                       const std::string& path) const {
  if (value.size() < schema.value("minProperties", 0u)) return path + ": too few properties";
  if (value.size() > schema.value("maxProperties", 1'000'000u)) return path + ": too many";
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name.get<std::string>())) return path + ": without " + name.dump();
  }
  const Json properties = schema.value("properties", Json::object());
  const Json rest =
      unnamed_ == Unnamed::kWrong ? Json(false) : schema.value("additionalProperties", Json(true));
  for (const auto& [key, child] : value.items()) {
    if (schema.contains("propertyNames")) {
      const std::string wrong = Validate(schema["propertyNames"], key, path + "#" + key);
      if (!wrong.empty()) return wrong;
    }
    if (properties.contains(key)) {
      const std::string wrong = Validate(properties[key], child, path + "." + key);
      if (!wrong.empty()) return wrong;
    } else if (rest.is_boolean()) {
      if (!rest.get<bool>()) return path + ": additional " + key;
    } else if (const std::string wrong = Validate(rest, child, path + "." + key); !wrong.empty()) {
      return wrong;
    }
  }
  return {};
}

}  // namespace labrack
