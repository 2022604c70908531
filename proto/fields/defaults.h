// Defaults of fields that are not written. Internal to proto/fields.
#pragma once

#include <google/protobuf/message.h>

#include "proto/fields/declaration.h"

namespace labrack::fields {

// Sets `field`, which is not set, to what it has when it is left out; see Bind.
void SetDefault(google::protobuf::Message& message, const FieldDescriptor& field);

}  // namespace labrack::fields
