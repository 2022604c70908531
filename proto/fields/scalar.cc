#include "proto/fields/scalar.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <regex>

#include "storage/base/check.h"
#include "storage/base/config/source.h"
#include "storage/base/units.h"

namespace labrack::fields {
namespace {

using google::protobuf::Message;
using google::protobuf::Reflection;

// std::regex recurses once per character, so that a long text would end the stack.
constexpr std::size_t kPatternTextMax = 1024;

template <typename T, typename F>
Result<Scalar> Convert(const Result<T>& parsed, F convert) {
  if (!parsed) return std::unexpected(parsed.error());
  return Scalar(convert(*parsed));
}

Result<Scalar> ParseBoolean(std::string_view text) {
  if (text == "true") return Scalar(true);
  if (text == "false") return Scalar(false);
  std::string help = "`true` or `false`";
  for (const char* yes : {"yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE", "y", "1"}) {
    if (text == yes) help = "`true`";
  }
  for (const char* no : {"no", "No", "NO", "off", "Off", "OFF", "False", "FALSE", "n", "0"}) {
    if (text == no) help = "`false`";
  }
  return Fail(Errc::kInvalidArgument,
              config::Quote(text) + " is neither `true` nor `false`; write " + help);
}

Result<Scalar> ParseChoice(const FieldDescriptor& field, std::string_view text) {
  const EnumDescriptor& choices = *field.enum_type();
  if (const EnumValueDescriptor* value = FindChoice(choices, text)) return Scalar(value);
  const std::vector<std::string> names = ChoiceNames(choices);
  const std::string nearest = config::Nearest(text, names);
  std::string help = "write " + NameList(names, "or");
  if (!nearest.empty()) help = "did you mean `" + nearest + "`?";
  return Fail(Errc::kInvalidArgument,
              config::Quote(text) + " is no choice of `" + field.name() + "`; " + help);
}

std::string FormatReal(double value) {
  std::array<char, 64> buffer;
  // Twelve digits: 0.07 * 100 prints as 7.
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::general, 12);
  LABRACK_CHECK(error == std::errc());
  return std::string(buffer.data(), end);
}

// The bounds of the C++ type behind an integer field.
struct TypeRange {
  Integer min;
  Integer max;
};
template <typename T>
constexpr TypeRange RangeOf() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}
TypeRange RangeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return RangeOf<std::int32_t>();
    case FieldDescriptor::CPPTYPE_UINT32:
      return RangeOf<std::uint32_t>();
    case FieldDescriptor::CPPTYPE_UINT64:
      return RangeOf<std::uint64_t>();
    default:
      return RangeOf<std::int64_t>();
  }
}

[[noreturn]] void UnusedType() {
  CheckFailed(__FILE__, __LINE__, "declarations use no scalar of this type");
}

// A bound of the declaration. It parses, or the declaration is wrong (a test binds all of them).
Scalar Bound(const FieldDescriptor& field, std::string_view text) {
  const Result<Scalar> bound = ParseScalar(field, text);
  LABRACK_CHECK(bound.has_value());
  return *bound;
}

}  // namespace

Result<Scalar> ParseScalar(const FieldDescriptor& field, std::string_view text) {
  switch (KindOf(field)) {
    case Kind::kText:
      return Scalar(std::string(text));
    case Kind::kInteger:
      return Convert(ParseInteger(text), [](std::int64_t value) { return Integer{value}; });
    case Kind::kNumber:
      return Convert(ParseNumber(text), [](double value) { return value; });
    case Kind::kBoolean:
      return ParseBoolean(text);
    case Kind::kBytes:
      return Convert(ParseBytes(text), [](Bytes value) { return Integer{value.count()}; });
    case Kind::kDuration:
      return Convert(ParseDuration(text), [](Nanoseconds value) { return Integer{value.count()}; });
    case Kind::kPercent:
      return Convert(ParsePercent(text), [](double value) { return value; });
    case Kind::kFactor:
      return Convert(ParseFactor(text), [](double value) { return value; });
    case Kind::kChoice:
      return ParseChoice(field, text);
    case Kind::kMessage:
      break;
  }
  return Fail(Errc::kInternal, "`" + field.name() + "` is no scalar");
}

std::string FormatScalar(const FieldDescriptor& field, const Scalar& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* choice = std::get_if<const EnumValueDescriptor*>(&value)) {
    const std::string_view name = *choice == nullptr ? std::string_view() : ChoiceName(**choice);
    return std::string(name);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    switch (KindOf(field)) {
      case Kind::kPercent:
        return FormatReal(*real * 100) + "%";
      case Kind::kFactor:
        return FormatReal(*real) + "x";
      default:
        return FormatReal(*real);
    }
  }
  const Integer integer = std::get<Integer>(value);
  switch (KindOf(field)) {
    case Kind::kBytes:
      return FormatBytesExact(Bytes(static_cast<std::uint64_t>(integer)));
    case Kind::kDuration:
      return FormatDurationExact(Nanoseconds(static_cast<std::int64_t>(integer)));
    default:
      if (integer < 0) return std::to_string(static_cast<std::int64_t>(integer));
      return std::to_string(static_cast<std::uint64_t>(integer));
  }
}

std::optional<std::string_view> OutOfBounds(const FieldDescriptor& field, const Scalar& value) {
  const bool integer = std::holds_alternative<Integer>(value);
  if (!integer && !std::holds_alternative<double>(value)) return std::nullopt;
  const v1::Field& options = OptionsOf(field);
  if (!options.min().empty() && value < Bound(field, options.min())) return "too small";
  if (!options.max().empty() && value > Bound(field, options.max())) return "too large";
  if (!integer) {
    // Only from the wire: no text says infinite.
    if (!std::isfinite(std::get<double>(value))) return "no number";
    return std::nullopt;
  }
  const TypeRange range = RangeOf(field);
  if (std::get<Integer>(value) < range.min) return "too small";
  if (std::get<Integer>(value) > range.max) return "too large";
  return std::nullopt;
}

bool MatchesPattern(const FieldDescriptor& field, const Scalar& value) {
  const auto* text = std::get_if<std::string>(&value);
  const std::string& pattern = OptionsOf(field).pattern();
  if (text == nullptr || pattern.empty()) return true;
  if (text->size() > kPatternTextMax) return false;
  return std::regex_match(*text, std::regex(pattern, std::regex::ECMAScript));
}

bool IsZero(const Scalar& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty();
  if (const auto* truth = std::get_if<bool>(&value)) return !*truth;
  if (const auto* real = std::get_if<double>(&value)) return *real == 0;
  if (const auto* integer = std::get_if<Integer>(&value)) return *integer == 0;
  const auto* choice = std::get<const EnumValueDescriptor*>(value);
  return choice != nullptr && choice->number() == 0;
}

Scalar GetScalar(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return field.enum_type()->FindValueByNumber(reflection.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return Integer{reflection.GetInt32(message, &field)};
    case FieldDescriptor::CPPTYPE_UINT32:
      return Integer{reflection.GetUInt32(message, &field)};
    case FieldDescriptor::CPPTYPE_INT64:
      return Integer{reflection.GetInt64(message, &field)};
    case FieldDescriptor::CPPTYPE_UINT64:
      return Integer{reflection.GetUInt64(message, &field)};
    default:
      UnusedType();
  }
}

Scalar GetItem(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetRepeatedString(message, &field, index);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetRepeatedBool(message, &field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return field.enum_type()->FindValueByNumber(
          reflection.GetRepeatedEnumValue(message, &field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetRepeatedDouble(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT32:
      return Integer{reflection.GetRepeatedInt32(message, &field, index)};
    case FieldDescriptor::CPPTYPE_UINT32:
      return Integer{reflection.GetRepeatedUInt32(message, &field, index)};
    case FieldDescriptor::CPPTYPE_INT64:
      return Integer{reflection.GetRepeatedInt64(message, &field, index)};
    case FieldDescriptor::CPPTYPE_UINT64:
      return Integer{reflection.GetRepeatedUInt64(message, &field, index)};
    default:
      UnusedType();
  }
}

void SetScalar(Message& message, const FieldDescriptor& field, const Scalar& value) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, std::get<std::string>(value));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, std::get<bool>(value));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnum(&message, &field, std::get<const EnumValueDescriptor*>(value));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, &field, std::get<double>(value));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field,
                                 static_cast<std::int32_t>(std::get<Integer>(value)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(&message, &field,
                                  static_cast<std::uint32_t>(std::get<Integer>(value)));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field,
                                 static_cast<std::int64_t>(std::get<Integer>(value)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field,
                                  static_cast<std::uint64_t>(std::get<Integer>(value)));
    default:
      UnusedType();
  }
}

void AddScalar(Message& message, const FieldDescriptor& field, const Scalar& value) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.AddString(&message, &field, std::get<std::string>(value));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.AddBool(&message, &field, std::get<bool>(value));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.AddEnum(&message, &field, std::get<const EnumValueDescriptor*>(value));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.AddDouble(&message, &field, std::get<double>(value));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.AddInt32(&message, &field,
                                 static_cast<std::int32_t>(std::get<Integer>(value)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.AddUInt32(&message, &field,
                                  static_cast<std::uint32_t>(std::get<Integer>(value)));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.AddInt64(&message, &field,
                                 static_cast<std::int64_t>(std::get<Integer>(value)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.AddUInt64(&message, &field,
                                  static_cast<std::uint64_t>(std::get<Integer>(value)));
    default:
      UnusedType();
  }
}

}  // namespace labrack::fields
