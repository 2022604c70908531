// What a field's declaration (labrack/v1/field.proto) says, in the terms that the binder, the
// checks and the documents share. Internal to proto/fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "labrack/v1/field.pb.h"

namespace labrack::fields {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

// How one value of the field is written.
enum class Kind {
  kText,
  kInteger,
  kNumber,
  kBoolean,
  kBytes,
  kDuration,
  kPercent,
  kFactor,
  kChoice,
  kMessage,
};

// How many values, and how they are put together.
enum class Shape {
  kSingle,
  kList,
  kKeyed,    // a mapping from name to message
  kTextMap,  // a mapping from name to text
};

// What lists and mappings hold at most where their declaration does not say.
constexpr std::uint32_t kItemsMax = 10'000;

const v1::Field& OptionsOf(const FieldDescriptor& field);
const v1::About& AboutOf(const Descriptor& message);
Kind KindOf(const FieldDescriptor& field);
Shape ShapeOf(const FieldDescriptor& field);
std::uint32_t ItemsMaxOf(const FieldDescriptor& field);

// The fields that people write, in the order declared.
std::vector<const FieldDescriptor*> WritableFields(const Descriptor& message);
// nullptr when `name` is none of them.
const FieldDescriptor* FindWritable(const Descriptor& message, std::string_view name);
std::vector<std::string> WritableNames(const Descriptor& message);

// The `name` field of a keyed field's messages.
const FieldDescriptor& NameField(const FieldDescriptor& keyed);
// The one field that is written straight as the value of a keyed entry, or nullptr where the entry
// is a mapping of fields.
const FieldDescriptor* StraightField(const FieldDescriptor& keyed);

// Whether an absent message is made with its defaults: some field below has one, none is required,
// and there is no choice of kind to make.
bool IsMadeOfDefaults(const Descriptor& message);

// The words of an enum field, and the value of one of them (nullptr when there is none).
std::vector<std::string> ChoiceNames(const EnumDescriptor& choices);
const EnumValueDescriptor* FindChoice(const EnumDescriptor& choices, std::string_view name);
std::string_view ChoiceName(const EnumValueDescriptor& value);

// "a size, as 4KiB"; "one of `write`, `read`": what is written for one value of the field.
std::string KindText(const FieldDescriptor& field);
// "512B to 64MiB", "at least 1", "at most 5"; empty without bounds.
std::string BoundsText(const FieldDescriptor& field);
// "`a`, `b` and `c`", with `joint` before the last; cut after `max` names.
std::string NameList(const std::vector<std::string>& names, std::string_view joint,
                     std::size_t max = 20);

}  // namespace labrack::fields
