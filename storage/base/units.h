// The one parser and printer of sizes, durations, percentages and factors. Sizes take KiB, MiB,
// GiB, TiB (1024) or kB, MB, GB, TB (1000) or B; a bare "4k" is refused, and the error says both
// readings. Durations take ns, us, ms, s, min, h; a bare number is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack {

// Errors of all parsers: kInvalidArgument; the note says what was read and what would be right, as
// "WHAT IS WRONG; WHAT TO WRITE" so that callers can split problem and help at the first "; ".
Result<Bytes> ParseBytes(std::string_view text);
Result<Nanoseconds> ParseDuration(std::string_view text);
Result<double> ParsePercent(std::string_view text);  // "3%" -> 0.03
Result<double> ParseFactor(std::string_view text);   // "1.5x" -> 1.5
Result<double> ParseNumber(std::string_view text);   // "12.5": no exponent, not negative
Result<std::int64_t> ParseInteger(
    std::string_view text);  // decimal, no leading zero, no _ and no hex

// The shortest exact form: 4096 -> "4KiB", 1000 -> "1kB" is never chosen over "1000B" unless exact.
std::string FormatBytesExact(Bytes bytes);
// For tables: three digits, binary units: "1.21 GiB".
std::string FormatBytes(Bytes bytes);
// For tables: "392 us", "1.55 ms", "20.0 s", "2 min 5 s".
std::string FormatDuration(Nanoseconds duration);
// The shortest exact form that ParseDuration reads back: "1500ms", "20s".
std::string FormatDurationExact(Nanoseconds duration);
// For tables: three significant digits with SI prefix: "512 k", "9 812", "1.21 M".
std::string FormatCount(double value);

}  // namespace labrack
