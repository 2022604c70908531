// `labrack why`: what an operation cost on each stack, side by side, and what differs, in words.
#pragma once

#include <string>

#include "controller/report/style.h"
#include "labrack/v1/control.pb.h"

namespace labrack::report {

// At most 100 columns: where the stacks are too many for that, their table is continued below, with
// the base again. Figures that are not known are "-", rows without any are left out.
std::string FormatReasons(const v1::Report& report, const Style& style);

}  // namespace labrack::report
