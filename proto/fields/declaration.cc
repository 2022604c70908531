#include "proto/fields/declaration.h"

#include "storage/base/check.h"

namespace labrack::fields {

const v1::Field& OptionsOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::field);
}

const v1::About& AboutOf(const Descriptor& message) {
  return message.options().GetExtension(v1::about);
}

Kind KindOf(const FieldDescriptor& field) {
  switch (OptionsOf(field).unit()) {
    case v1::UNIT_BYTES:
      return Kind::kBytes;
    case v1::UNIT_DURATION:
      return Kind::kDuration;
    case v1::UNIT_PERCENT:
      return Kind::kPercent;
    case v1::UNIT_FACTOR:
      return Kind::kFactor;
    default:
      break;
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return Kind::kText;
    case FieldDescriptor::CPPTYPE_BOOL:
      return Kind::kBoolean;
    case FieldDescriptor::CPPTYPE_ENUM:
      return Kind::kChoice;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Kind::kMessage;
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Kind::kNumber;
    default:
      return Kind::kInteger;
  }
}

Shape ShapeOf(const FieldDescriptor& field) {
  if (field.is_map()) return Shape::kTextMap;
  if (!field.is_repeated()) return Shape::kSingle;
  return OptionsOf(field).keyed() ? Shape::kKeyed : Shape::kList;
}

std::uint32_t ItemsMaxOf(const FieldDescriptor& field) {
  const std::uint32_t max = OptionsOf(field).items_max();
  return max == 0 ? kItemsMax : max;
}

std::vector<const FieldDescriptor*> WritableFields(const Descriptor& message) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.options().HasExtension(v1::field) && !OptionsOf(field).hidden()) {
      fields.push_back(&field);
    }
  }
  return fields;
}

const FieldDescriptor* FindWritable(const Descriptor& message, std::string_view name) {
  for (const FieldDescriptor* field : WritableFields(message)) {
    if (field->name() == name) return field;
  }
  return nullptr;
}

std::vector<std::string> WritableNames(const Descriptor& message) {
  std::vector<std::string> names;
  for (const FieldDescriptor* field : WritableFields(message)) names.push_back(field->name());
  return names;
}

const FieldDescriptor& NameField(const FieldDescriptor& keyed) {
  const FieldDescriptor* name = keyed.message_type()->FindFieldByName("name");
  LABRACK_CHECK(name != nullptr);  // what `keyed` promises
  return *name;
}

const FieldDescriptor* StraightField(const FieldDescriptor& keyed) {
  const Descriptor& message = *keyed.message_type();
  const std::vector<const FieldDescriptor*> fields = WritableFields(message);
  return fields.size() == 1 && !AboutOf(message).one_of() ? fields.front() : nullptr;
}

bool IsMadeOfDefaults(const Descriptor& message) {
  if (AboutOf(message).one_of()) return false;
  bool any = false;
  for (const FieldDescriptor* field : WritableFields(message)) {
    if (OptionsOf(*field).required()) return false;
    if (ShapeOf(*field) != Shape::kSingle) continue;
    any = any || !OptionsOf(*field).default_value().empty() ||
          (KindOf(*field) == Kind::kMessage && IsMadeOfDefaults(*field->message_type()));
  }
  return any;
}

std::string_view ChoiceName(const EnumValueDescriptor& value) {
  return value.options().GetExtension(v1::choice).name();
}

std::vector<std::string> ChoiceNames(const EnumDescriptor& choices) {
  std::vector<std::string> names;
  for (int i = 0; i < choices.value_count(); ++i) {
    const std::string_view name = ChoiceName(*choices.value(i));
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

const EnumValueDescriptor* FindChoice(const EnumDescriptor& choices, std::string_view name) {
  for (int i = 0; i < choices.value_count(); ++i) {
    const std::string_view candidate = ChoiceName(*choices.value(i));
    if (!candidate.empty() && candidate == name) return choices.value(i);
  }
  return nullptr;
}

std::string KindText(const FieldDescriptor& field) {
  switch (KindOf(field)) {
    case Kind::kText:
      return "a text";
    case Kind::kInteger:
      return "a whole number";
    case Kind::kNumber:
      return "a number, as 12.5";
    case Kind::kBoolean:
      return "`true` or `false`";
    case Kind::kBytes:
      return "a size, as 4KiB";
    case Kind::kDuration:
      return "a time, as 20s";
    case Kind::kPercent:
      return "a percentage, as 3%";
    case Kind::kFactor:
      return "a factor, as 1.5x";
    case Kind::kChoice:
      return NameList(ChoiceNames(*field.enum_type()), "or");
    case Kind::kMessage:
      return "a mapping";
  }
  return "a value";
}

std::string BoundsText(const FieldDescriptor& field) {
  const v1::Field& options = OptionsOf(field);
  if (!options.min().empty() && !options.max().empty()) {
    return options.min() + " to " + options.max();
  }
  if (!options.min().empty()) return "at least " + options.min();
  if (!options.max().empty()) return "at most " + options.max();
  return {};
}

std::string NameList(const std::vector<std::string>& names, std::string_view joint,
                     std::size_t max) {
  std::string text;
  const std::size_t shown = std::min(names.size(), max);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == names.size() ? " " + std::string(joint) + " " : ", ";
    text += "`" + names[i] + "`";
  }
  if (shown < names.size()) text += ", ...";
  return text;
}

}  // namespace labrack::fields
