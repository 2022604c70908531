#include "controller/report/json.h"

#include <cmath>
#include <map>

#include <google/protobuf/descriptor.h>
#include <nlohmann/json.hpp>

namespace labrack::report {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kIndent = 1;

// The words that all values of an enum begin with: "COMPARISON_VERDICT_".
std::size_t PrefixLength(const EnumDescriptor& descriptor) {
  if (descriptor.value_count() < 2) return 0;
  std::string prefix(descriptor.value(0)->name());
  for (int i = 1; i < descriptor.value_count(); ++i) {
    const std::string& name = descriptor.value(i)->name();
    std::size_t common = 0;
    while (common < prefix.size() && common < name.size() && prefix[common] == name[common]) {
      ++common;
    }
    prefix.resize(common);
  }
  return prefix.rfind('_') == std::string::npos ? 0 : prefix.rfind('_') + 1;
}

Json EnumWord(const EnumValueDescriptor& value) {
  return std::string(value.name()).substr(PrefixLength(*value.type()));
}

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ToJson(const Message& message);

// One value, or element `index` of a list.
Json Value(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool list = field.is_repeated();
#define LABRACK_GET(Type)                                      \
  (list ? reflection.GetRepeated##Type(message, &field, index) \
        : reflection.Get##Type(message, &field))
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return LABRACK_GET(Int32);
    case FieldDescriptor::CPPTYPE_INT64:
      return LABRACK_GET(Int64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return LABRACK_GET(UInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return LABRACK_GET(UInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Number(LABRACK_GET(Double));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Number(static_cast<double>(LABRACK_GET(Float)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return LABRACK_GET(Bool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumWord(*LABRACK_GET(Enum));
    case FieldDescriptor::CPPTYPE_STRING:
      return LABRACK_GET(String);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(list ? reflection.GetRepeatedMessage(message, &field, index)
                         : reflection.GetMessage(message, &field));
  }
#undef LABRACK_GET
  return nullptr;
}

// Protobuf's maps have no order; ours have that of their keys.
Json MapValue(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::map<std::string, Json> sorted;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Json key = Value(entry, *entry.GetDescriptor()->map_key(), 0);
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] =
        Value(entry, *entry.GetDescriptor()->map_value(), 0);
  }
  Json object = Json::object();
  for (auto& [key, value] : sorted) object[key] = std::move(value);
  return object;
}

Json ToJson(const Message& message) {
  const Descriptor& descriptor = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  Json object = Json::object();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.is_map()) {
      object[field.name()] = MapValue(message, field);
    } else if (field.is_repeated()) {
      Json list = Json::array();
      for (int k = 0; k < reflection.FieldSize(message, &field); ++k) {
        list.push_back(Value(message, field, k));
      }
      object[field.name()] = std::move(list);
    } else if (!field.has_presence() || reflection.HasField(message, &field)) {
      object[field.name()] = Value(message, field, 0);
    }
  }
  return object;
}

Json Wrapper(const std::string& schema) {
  Json object = Json::object();
  object["schema"] = schema;
  object["schema_version"] = kReportSchemaVersion;
  return object;
}

// Bytes from hosts may be no UTF-8; they become the replacement character.
std::string Dump(const Json& json) {
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Schemas of messages, collected under "definitions".
class SchemaMaker {
 public:
  Json Reference(const Descriptor& descriptor) {
    const std::string& name = descriptor.name();
    if (!definitions_.contains(name)) {
      definitions_[name] = Json::object();  // stands while its fields are described
      definitions_[name] = Describe(descriptor);
    }
    return Json{{"$ref", "#/definitions/" + name}};
  }
  const Json& definitions() const { return definitions_; }

 private:
  Json Describe(const Descriptor& descriptor) {
    Json properties = Json::object();
    Json required = Json::array();
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const FieldDescriptor& field = *descriptor.field(i);
      Json type = Type(field);
      if (field.is_repeated()) type = Json{{"type", "array"}, {"items", std::move(type)}};
      properties[field.name()] = std::move(type);
      if (field.is_repeated() || !field.has_presence()) required.push_back(field.name());
    }
    Json schema = Json{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) schema["required"] = std::move(required);
    return schema;
  }

  Json Type(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_INT64:
        return Json{{"type", "integer"}};
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64:
        return Json{{"type", "integer"}, {"minimum", 0}};
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        return Json{{"type", Json::array({"number", "null"})}};
      case FieldDescriptor::CPPTYPE_BOOL:
        return Json{{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_STRING:
        return Json{{"type", "string"}};
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Reference(*field.message_type());
      case FieldDescriptor::CPPTYPE_ENUM: {
        Json words = Json::array();
        for (int i = 0; i < field.enum_type()->value_count(); ++i) {
          words.push_back(EnumWord(*field.enum_type()->value(i)));
        }
        return Json{{"type", "string"}, {"enum", std::move(words)}};
      }
    }
    return Json::object();
  }

  Json definitions_ = Json::object();
};

}  // namespace

std::string FormatJson(const v1::Report& report) {
  Json object = Wrapper("labrack.report");
  object["report"] = ToJson(report);
  return Dump(object);
}

std::string FormatRunJson(const v1::RunRecord& run) {
  Json object = Wrapper("labrack.run");
  object["run"] = ToJson(run);
  return Dump(object);
}

std::string FormatMessageJson(const std::string& schema, const Message& message) {
  Json object = Wrapper(schema);
  const Json fields = ToJson(message);
  for (const auto& [name, value] : fields.items()) object[name] = value;
  return Dump(object);
}

std::string ReportSchema() {
  SchemaMaker maker;
  const Json report = maker.Reference(*v1::Report::descriptor());
  Json schema = Json::object();
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "labrack report";
  schema["type"] = "object";
  schema["properties"] = Json{{"schema", {{"const", "labrack.report"}}},
                              {"schema_version", {{"const", kReportSchemaVersion}}},
                              {"report", report}};
  schema["required"] = Json::array({"schema", "schema_version", "report"});
  schema["definitions"] = maker.definitions();
  return Dump(schema);
}

}  // namespace labrack::report
