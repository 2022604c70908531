// Writing: data to standard output, everything else to standard error, and files that are either
// whole or not there.
#pragma once

#include <string>
#include <string_view>

#include "storage/base/result.h"

namespace labrack::cli {

// Writes all of `text`. A reader that went away (EPIPE) is no error: `labrack ls | head` ends well.
// What else goes wrong is kept, see OutputError().
void WriteAll(int descriptor, std::string_view text);
void WriteOut(std::string_view text);
void WriteErr(std::string_view text);
// The first failure of WriteOut: a full disk under `> file` must not end in exit 0.
Result<void> OutputError();

// Whether WriteFileAtomically could begin; asked before the work is done that the file is about.
Result<void> CheckWritable(const std::string& path);
// Writes a temporary file beside `path`, syncs it and renames it into place.
Result<void> WriteFileAtomically(const std::string& path, std::string_view text);

Result<std::string> ReadWholeFile(const std::string& path, std::size_t bytes_max);

}  // namespace labrack::cli
