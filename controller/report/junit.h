// JUnit XML as CI systems read it (conventions 3.2): one suite a host group, one case a comparison
// row over all hosts, a gate, and a trial that stayed out. Worse between two runs, a failed gate
// and data that did not read back are failures; what the lab did wrong is an error; what a host
// cannot do is skipped; INCONCLUSIVE passes with a property that says so, and fails under strict.
#pragma once

#include <string>

#include "labrack/v1/control.pb.h"

namespace labrack::report {

std::string FormatJunit(const v1::Report& report, bool strict = false);

// `text` fit for XML 1.0 text or a quoted attribute: escaped, control characters and broken UTF-8
// as "?". Also splits "]]>".
std::string XmlEscaped(std::string_view text);

}  // namespace labrack::report
