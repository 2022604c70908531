#include "proto/fields/declaration.h"
#include "proto/fields/fields.h"
#include "proto/fields/scalar.h"

namespace labrack::fields {
namespace {

using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsPlainCharacter(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') ||
         std::string_view("_-./+%=@").find(c) != std::string_view::npos;
}

// Plain where no YAML reader could see anything but this text in it, in quotes otherwise.
std::string QuoteText(const std::string& text) {
  bool plain =
      !text.empty() && std::string_view("-@%=").find(text.front()) == std::string_view::npos;
  for (char c : text) plain = plain && IsPlainCharacter(c);
  if (plain) return text;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += std::string("\\") + c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += std::string("\\x") + kHex[static_cast<unsigned char>(c) >> 4] + kHex[c & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string ScalarText(const FieldDescriptor& field, const Scalar& value) {
  const std::string text = FormatScalar(field, value);
  return std::holds_alternative<std::string>(value) ? QuoteText(text) : text;
}

std::string MessageText(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::string text;
  for (const FieldDescriptor* field : WritableFields(*message.GetDescriptor())) {
    const bool there = field->is_repeated() ? reflection.FieldSize(message, field) > 0
                                            : reflection.HasField(message, field);
    if (!there) continue;
    text += (text.empty() ? "" : ", ") + field->name() + ": " + FormatField(message, *field);
  }
  return "{" + text + "}";
}

std::string ItemText(const Message& message, const FieldDescriptor& field, int index) {
  if (KindOf(field) != Kind::kMessage) return ScalarText(field, GetItem(message, field, index));
  const Message& item = message.GetReflection()->GetRepeatedMessage(message, &field, index);
  if (field.is_map()) {
    const FieldDescriptor& key = *field.message_type()->map_key();
    const FieldDescriptor& value = *field.message_type()->map_value();
    return ScalarText(key, GetScalar(item, key)) + ": " + ScalarText(value, GetScalar(item, value));
  }
  if (ShapeOf(field) != Shape::kKeyed) return MessageText(item);
  const FieldDescriptor* straight = StraightField(field);
  return FormatScalar(NameField(field), GetScalar(item, NameField(field))) + ": " +
         (straight == nullptr ? MessageText(item) : FormatField(item, *straight));
}

}  // namespace

std::string FormatField(const Message& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) {
    if (KindOf(field) != Kind::kMessage) return ScalarText(field, GetScalar(message, field));
    return MessageText(message.GetReflection()->GetMessage(message, &field));
  }
  std::string text;
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) text += (i == 0 ? "" : ", ") + ItemText(message, field, i);
  return ShapeOf(field) == Shape::kList ? "[" + text + "]" : "{" + text + "}";
}

}  // namespace labrack::fields
