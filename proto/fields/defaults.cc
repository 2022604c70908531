#include "proto/fields/defaults.h"

#include "proto/fields/fields.h"
#include "proto/fields/scalar.h"
#include "storage/base/check.h"

namespace labrack::fields {

using google::protobuf::Message;

void SetDefault(Message& message, const FieldDescriptor& field) {
  if (ShapeOf(field) != Shape::kSingle || field.containing_oneof() != nullptr) return;
  if (KindOf(field) == Kind::kMessage) {
    if (!IsMadeOfDefaults(*field.message_type())) return;
    return FillDefaults(*message.GetReflection()->MutableMessage(&message, &field));
  }
  const std::string& text = OptionsOf(field).default_value();
  if (text.empty()) return;
  const Result<Scalar> value = ParseScalar(field, text);
  LABRACK_CHECK(value.has_value());  // a wrong declaration; a test reads every default
  SetScalar(message, field, *value);
}

void FillDefaults(Message& message) {
  const auto& reflection = *message.GetReflection();
  for (const FieldDescriptor* field : WritableFields(*message.GetDescriptor())) {
    if (KindOf(*field) != Kind::kMessage) {
      const bool single = ShapeOf(*field) == Shape::kSingle;
      if (single && IsZero(GetScalar(message, *field))) SetDefault(message, *field);
      continue;
    }
    if (field->is_map()) continue;
    if (field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        FillDefaults(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    } else if (reflection.HasField(message, field)) {
      FillDefaults(*reflection.MutableMessage(&message, field));
    } else {
      SetDefault(message, *field);
    }
  }
}

}  // namespace labrack::fields
