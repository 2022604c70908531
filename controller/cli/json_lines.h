// The objects of NDJSON, one a line, each with its "type" (README.md shows them). The first line
// says the format's version: a reader ignores what it does not know in a minor version and refuses
// another major one.
#pragma once

#include <string>
#include <string_view>

#include "labrack/v1/control.pb.h"
#include "storage/base/config/source.h"
#include "storage/base/exit_codes.h"
#include "storage/base/result.h"

namespace labrack::cli {

std::string JsonVersionLine();
std::string JsonEventLine(const v1::RunEvent& event);
// `type` is message, note or warning.
std::string JsonTextLine(std::string_view type, const std::string& text);
// `text` is the error as people read it; `help` may be empty.
std::string JsonErrorLine(const Error& error, const std::string& text, ExitCode code,
                          const std::string& help);
std::string JsonProblemLine(const config::Problem& problem);
std::string JsonEndLine(ExitCode code);

// Of `labrack validate --format=json`: one object with all problems, over several lines.
std::string ProblemsJson(const std::string& file, const config::Problems& problems);

}  // namespace labrack::cli
