#pragma once

#include <string>

#include "labrack/v1/control.pb.h"

namespace labrack::plan {

// SHA-256, in hexadecimal, of everything that a playbook's meaning depends on: text, attached
// files,
// --set and --trials.
std::string DigestOf(const v1::PlaybookSource& source);

}  // namespace labrack::plan
