// The final table as Markdown (GitHub's), for pull requests: the same rows, footnotes, gates and
// closing verdict as on the terminal.
#pragma once

#include <string>

#include "labrack/v1/control.pb.h"

namespace labrack::report {

std::string FormatMarkdown(const v1::Report& report, bool strict = false);

}  // namespace labrack::report
