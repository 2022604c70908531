// One value of a scalar field between its three forms: the text as written, the typed value, and
// what a message holds. The only place that knows protobuf's setters. Internal to proto/fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <google/protobuf/message.h>

#include "proto/fields/declaration.h"
#include "storage/base/result.h"

namespace labrack::fields {

// Holds every 64-bit integer of either sign, so that bounds compare without conversions.
__extension__ using Integer = __int128;

using Scalar = std::variant<std::string, Integer, double, bool, const EnumValueDescriptor*>;

// The typed value of a text, by the field's kind. Bounds and patterns are not looked at.
// Errors: kInvalidArgument, "PROBLEM; WHAT TO WRITE" as in units.h.
Result<Scalar> ParseScalar(const FieldDescriptor& field, std::string_view text);

// As YAML would write it: "4KiB", "3%", "true", text unquoted.
std::string FormatScalar(const FieldDescriptor& field, const Scalar& value);

// Against the field's bounds and the range of its type: "too small" or "too large".
std::optional<std::string_view> OutOfBounds(const FieldDescriptor& field, const Scalar& value);
// Against the field's pattern; true without one, and for kinds other than text.
bool MatchesPattern(const FieldDescriptor& field, const Scalar& value);

// A value that counts as not written: "", 0, false, the enum's first.
bool IsZero(const Scalar& value);

// For a single field, and for item `index` of a repeated one. Set and Add need a value in bounds.
Scalar GetScalar(const google::protobuf::Message& message, const FieldDescriptor& field);
Scalar GetItem(const google::protobuf::Message& message, const FieldDescriptor& field, int index);
void SetScalar(google::protobuf::Message& message, const FieldDescriptor& field,
               const Scalar& value);
void AddScalar(google::protobuf::Message& message, const FieldDescriptor& field,
               const Scalar& value);

}  // namespace labrack::fields
