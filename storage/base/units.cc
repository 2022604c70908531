#include "storage/base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

namespace labrack {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::size_t kWholeDigitsMax = 20;     // 2^64 has 20
constexpr std::size_t kFractionDigitsMax = 12;  // so that fraction * unit fits 128 bits

struct UnitName {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<UnitName, 9> kByteUnits{{{"B", 1},
                                              {"KiB", 1ULL << 10},
                                              {"MiB", 1ULL << 20},
                                              {"GiB", 1ULL << 30},
                                              {"TiB", 1ULL << 40},
                                              {"kB", 1'000ULL},
                                              {"MB", 1'000'000ULL},
                                              {"GB", 1'000'000'000ULL},
                                              {"TB", 1'000'000'000'000ULL}}};

constexpr std::array<UnitName, 6> kTimeUnits{{{"ns", 1},
                                              {"us", 1'000ULL},
                                              {"ms", 1'000'000ULL},
                                              {"s", 1'000'000'000ULL},
                                              {"min", 60'000'000'000ULL},
                                              {"h", 3'600'000'000'000ULL}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Messages name what was read; a text too long to be a slip is cut.
std::string Quoted(std::string_view text) {
  constexpr std::size_t kShownMax = 40;
  std::size_t cut = std::min(text.size(), kShownMax);
  while (cut > 0 && cut < text.size() && (static_cast<unsigned char>(text[cut]) >> 6) == 2) --cut;
  std::string shown(text.substr(0, cut));
  if (shown.size() < text.size()) shown += "...";
  return "`" + shown + "`";
}

// "12.5MiB" cut into 12, "5" and "MiB".
struct Quantity {
  std::string_view number;    // digits, perhaps with a point: "12.5"
  std::string_view whole;     // "12"
  std::string_view fraction;  // "5"; empty without a point
  std::string_view unit;      // the rest, as written
};

std::optional<Quantity> Split(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && IsDigit(text[at])) ++at;
  if (at == 0) return std::nullopt;
  Quantity quantity;
  quantity.whole = text.substr(0, at);
  if (at + 1 < text.size() && text[at] == '.' && IsDigit(text[at + 1])) {
    const std::size_t begin = ++at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    quantity.fraction = text.substr(begin, at - begin);
  }
  quantity.number = text.substr(0, at);
  quantity.unit = text.substr(at);
  return quantity;
}

enum class Fit { kExact, kTooLarge, kNotWhole };

// number * unit, where it is a whole number up to `max`.
Fit Multiply(const Quantity& quantity, std::uint64_t unit, std::uint64_t max,
             std::uint64_t& product) {
  if (quantity.fraction.size() > kFractionDigitsMax) return Fit::kNotWhole;
  std::string_view whole = quantity.whole;
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  if (whole.size() > kWholeDigitsMax) return Fit::kTooLarge;
  Wide value = 0;
  for (char c : whole) value = value * 10 + static_cast<unsigned>(c - '0');
  Wide fraction = 0;
  Wide scale = 1;
  for (char c : quantity.fraction) {
    fraction = fraction * 10 + static_cast<unsigned>(c - '0');
    scale *= 10;
  }
  if ((fraction * unit) % scale != 0) return Fit::kNotWhole;
  const Wide total = value * unit + fraction * unit / scale;
  if (total > max) return Fit::kTooLarge;
  product = static_cast<std::uint64_t>(total);
  return Fit::kExact;
}

std::string ProductText(const Quantity& quantity, std::uint64_t unit, std::string_view unit_name,
                        std::string_view counted) {
  std::string text(quantity.number);
  text += unit_name;
  std::uint64_t product = 0;
  if (Multiply(quantity, unit, std::numeric_limits<std::uint64_t>::max(), product) == Fit::kExact) {
    text += " (" + std::to_string(product) + " " + std::string(counted) + ")";
  }
  return text;
}

// What a size with a unit that we do not take may have meant: "4k" is 4096 bytes to half of the
// world and 4000 to the other, so we say both and take neither.
std::unexpected<Error> WrongByteUnit(std::string_view text, const Quantity& quantity) {
  const std::string number(quantity.number);
  if (quantity.unit.empty()) {
    return Fail(Errc::kInvalidArgument, Quoted(text) + " has no unit; write " + number + "B, " +
                                            number + "KiB or " + number + "MiB");
  }
  std::string_view unit = quantity.unit;
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::string lower = Lower(unit);
  if (lower == "b" || lower == "byte" || lower == "bytes") {
    return Fail(Errc::kInvalidArgument,
                Quoted(text) + " is not written as a size; write " + number + "B");
  }
  for (std::size_t prefix = 0; prefix < 4; ++prefix) {
    const UnitName& binary = kByteUnits[1 + prefix];
    const UnitName& decimal = kByteUnits[5 + prefix];
    const std::string letter(1, Lower(binary.name)[0]);
    if (lower == letter + "ib" || lower == letter + "i") {
      return Fail(Errc::kInvalidArgument, Quoted(text) + " is not written as a size; write " +
                                              number + std::string(binary.name));
    }
    if (lower == letter || lower == letter + "b") {
      return Fail(Errc::kInvalidArgument,
                  Quoted(text) + " can be read in two ways; write " +
                      ProductText(quantity, binary.size, binary.name, "bytes") + " or " +
                      ProductText(quantity, decimal.size, decimal.name, "bytes"));
    }
  }
  return Fail(Errc::kInvalidArgument,
              Quoted(text) + " has an unknown unit; write " + number +
                  " with B, KiB, MiB, GiB, TiB (1024) or kB, MB, GB, TB (1000)");
}

std::unexpected<Error> WrongTimeUnit(std::string_view text, const Quantity& quantity) {
  const std::string number(quantity.number);
  if (quantity.unit.empty()) {
    return Fail(Errc::kInvalidArgument, Quoted(text) + " has no unit; write " + number + "s, " +
                                            number + "ms or " + number +
                                            "min (ns, us, ms, s, min, h)");
  }
  std::string_view unit = quantity.unit;
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::string lower = Lower(unit);
  if (lower == "m") {
    return Fail(Errc::kInvalidArgument, Quoted(text) + " can be read in two ways; write " + number +
                                            "min or " + number + "ms");
  }
  struct Spelling {
    std::string_view meant;
    std::initializer_list<std::string_view> written;
  };
  static const std::array<Spelling, 6> kSpellings{{
      {"ns", {"ns", "nsec", "nanosecond", "nanoseconds"}},
      {"us", {"us", "usec", "\xc2\xb5s", "\xce\xbcs", "microsecond", "microseconds"}},
      {"ms", {"ms", "msec", "millisecond", "milliseconds"}},
      {"s", {"s", "sec", "secs", "second", "seconds"}},
      {"min", {"min", "mins", "minute", "minutes"}},
      {"h", {"h", "hr", "hrs", "hour", "hours"}},
  }};
  for (const Spelling& spelling : kSpellings) {
    for (std::string_view written : spelling.written) {
      if (lower != written) continue;
      return Fail(Errc::kInvalidArgument, Quoted(text) + " is not written as a time; write " +
                                              number + std::string(spelling.meant));
    }
  }
  std::uint64_t hours = 0;
  if ((lower == "d" || lower == "day" || lower == "days") &&
      Multiply(quantity, 24, 1'000'000, hours) == Fit::kExact) {
    return Fail(Errc::kInvalidArgument,
                Quoted(text) + " has an unknown unit; write " + std::to_string(hours) + "h");
  }
  return Fail(Errc::kInvalidArgument, Quoted(text) + " has an unknown unit; write " + number +
                                          " with ns, us, ms, s, min or h");
}

std::unexpected<Error> NotANumber(std::string_view text, std::string_view what,
                                  std::string_view example) {
  std::string note = Quoted(text);
  if (text.empty()) {
    note = "nothing is written";
  } else if (text.front() == '-') {
    note += " is negative";
  } else {
    note += " is not " + std::string(what);
  }
  return Fail(Errc::kInvalidArgument,
              note + "; write " + std::string(what) + " like " + std::string(example));
}

const UnitName* FindUnit(std::span<const UnitName> units, std::string_view name) {
  for (const UnitName& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

// The number before `suffix` as a double.
std::optional<double> NumberBefore(std::string_view text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return std::nullopt;
  text.remove_suffix(suffix.size());
  const std::optional<Quantity> quantity = Split(text);
  if (!quantity || !quantity->unit.empty()) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string Fixed(double value, int decimals) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::fixed, decimals);
  if (error != std::errc()) return "-";  // beyond 1e60: no figure of ours
  return std::string(buffer.data(), end);
}

// Three significant digits, never in scientific notation: 1.21, 12.1, 121, 0.977.
std::string ThreeDigits(double value) {
  if (value == 0) return "0";
  constexpr int kDecimalsMax = 9;
  int decimals = 2 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  decimals = std::min(decimals, kDecimalsMax);
  if (decimals <= 0) return Fixed(value, 0);
  // 9.996 has two decimals but rounds to 10.0.
  const double rounded = std::round(value * std::pow(10, decimals)) / std::pow(10, decimals);
  if (std::abs(rounded) >= std::pow(10, 3 - decimals)) --decimals;
  return Fixed(value, decimals);
}

}  // namespace

Result<Bytes> ParseBytes(std::string_view text) {
  const std::optional<Quantity> quantity = Split(text);
  if (!quantity) return NotANumber(text, "a size", "4KiB");
  const UnitName* unit = FindUnit(kByteUnits, quantity->unit);
  if (unit == nullptr) return WrongByteUnit(text, *quantity);
  std::uint64_t count = 0;
  switch (Multiply(*quantity, unit->size, std::numeric_limits<std::uint64_t>::max(), count)) {
    case Fit::kExact:
      return Bytes(count);
    case Fit::kTooLarge:
      return Fail(Errc::kInvalidArgument,
                  Quoted(text) + " is too large; write a size below 16777216TiB");
    case Fit::kNotWhole:
      break;
  }
  return Fail(Errc::kInvalidArgument,
              Quoted(text) + " is not a whole number of bytes; write it in a smaller unit");
}

Result<Nanoseconds> ParseDuration(std::string_view text) {
  const std::optional<Quantity> quantity = Split(text);
  if (!quantity) return NotANumber(text, "a time", "20s");
  const UnitName* unit = FindUnit(kTimeUnits, quantity->unit);
  if (unit == nullptr) return WrongTimeUnit(text, *quantity);
  std::uint64_t count = 0;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  switch (Multiply(*quantity, unit->size, kMax, count)) {
    case Fit::kExact:
      return Nanoseconds(static_cast<std::int64_t>(count));
    case Fit::kTooLarge:
      return Fail(Errc::kInvalidArgument,
                  Quoted(text) + " is too long; write a time below 2562047h");
    case Fit::kNotWhole:
      break;
  }
  return Fail(Errc::kInvalidArgument,
              Quoted(text) + " is not a whole number of nanoseconds; write it in a smaller unit");
}

Result<double> ParsePercent(std::string_view text) {
  if (const std::optional<double> value = NumberBefore(text, "%")) return *value / 100;
  if (const std::optional<double> bare = NumberBefore(text, "")) {
    std::string note = Quoted(text) + " has no %; write " + std::string(text) + "%";
    if (*bare > 0 && *bare <= 1) {
      std::array<char, 32> share;  // six digits: 0.07 * 100 is not 7 in binary
      const auto [end, error] = std::to_chars(share.data(), share.data() + share.size(),
                                              *bare * 100, std::chars_format::general, 6);
      note += ", or " + std::string(share.data(), end) + "% for the share";
    }
    return Fail(Errc::kInvalidArgument, note);
  }
  return NotANumber(text, "a percentage", "3%");
}

Result<double> ParseFactor(std::string_view text) {
  if (const std::optional<double> value = NumberBefore(text, "x")) return *value;
  if (NumberBefore(text, "")) {
    return Fail(Errc::kInvalidArgument,
                Quoted(text) + " has no x; write " + std::string(text) + "x");
  }
  return NotANumber(text, "a factor", "1.5x");
}

Result<double> ParseNumber(std::string_view text) {
  if (const std::optional<double> value = NumberBefore(text, "")) return *value;
  return NotANumber(text, "a number", "12.5");
}

Result<std::int64_t> ParseInteger(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && digits.front() == '-') digits.remove_prefix(1);
  bool all_digits = !digits.empty();
  for (char c : digits) all_digits = all_digits && IsDigit(c);
  if (!all_digits) {
    std::string note =
        text.empty() ? "nothing is written" : Quoted(text) + " is not a whole number";
    return Fail(Errc::kInvalidArgument,
                note + "; write decimal digits only, without unit, point, _ or 0x");
  }
  if (digits.size() > 1 && digits.front() == '0') {
    const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
    return Fail(Errc::kInvalidArgument,
                Quoted(text) + " has a leading zero; write " + std::string(digits.substr(first)));
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) {
    return Fail(Errc::kInvalidArgument,
                Quoted(text) + " is too large; write a number up to 9223372036854775807");
  }
  return value;
}

std::string FormatBytesExact(Bytes bytes) {
  // The fewest digits; binary units come first in the table and so win ties.
  std::string best = std::to_string(bytes.count());
  std::string_view best_unit = "B";
  for (const UnitName& unit : kByteUnits) {
    if (bytes.count() == 0 || bytes.count() % unit.size != 0) continue;
    std::string digits = std::to_string(bytes.count() / unit.size);
    if (digits.size() >= best.size()) continue;
    best = std::move(digits);
    best_unit = unit.name;
  }
  return best + std::string(best_unit);
}

std::string FormatBytes(Bytes bytes) {
  constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes.count());
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const std::string digits = unit == 0 ? std::to_string(bytes.count()) : ThreeDigits(value);
  return digits + " " + std::string(kUnits[unit]);
}

std::string FormatDuration(Nanoseconds duration) {
  if (duration < Nanoseconds(0)) {
    // The smallest value has no positive counterpart; a nanosecond is not seen at 292 years.
    if (duration == Nanoseconds::min()) ++duration;
    return "-" + FormatDuration(-duration);
  }
  const std::int64_t ns = duration.count();
  if (ns < 1000) return std::to_string(ns) + " ns";
  if (ns < 999'500) return ThreeDigits(static_cast<double>(ns) / 1e3) + " us";
  if (ns < 999'500'000) return ThreeDigits(static_cast<double>(ns) / 1e6) + " ms";
  if (ns < 59'950'000'000) return ThreeDigits(static_cast<double>(ns) / 1e9) + " s";
  const std::int64_t seconds = ns / 1'000'000'000 + (ns % 1'000'000'000 >= 500'000'000 ? 1 : 0);
  const std::int64_t minutes = seconds / 60;
  if (minutes < 60) {
    const std::int64_t rest = seconds % 60;
    return std::to_string(minutes) + " min" + (rest == 0 ? "" : " " + std::to_string(rest) + " s");
  }
  const std::int64_t rest = minutes % 60;
  return std::to_string(minutes / 60) + " h" +
         (rest == 0 ? "" : " " + std::to_string(rest) + " min");
}

std::string FormatDurationExact(Nanoseconds duration) {
  const bool negative = duration.count() < 0;
  // Unsigned negation, since the smallest value has no positive counterpart.
  const std::uint64_t ns = negative ? 0 - static_cast<std::uint64_t>(duration.count())
                                    : static_cast<std::uint64_t>(duration.count());
  if (ns == 0) return "0s";
  const UnitName* best = &kTimeUnits[0];
  for (const UnitName& unit : kTimeUnits) {
    if (ns % unit.size == 0) best = &unit;
  }
  return (negative ? "-" : "") + std::to_string(ns / best->size) + std::string(best->name);
}

std::string FormatCount(double value) {
  if (!std::isfinite(value)) return "-";
  if (value < 0) return "-" + FormatCount(-value);
  constexpr double kGroupedFrom = 999.5;
  constexpr double kPrefixedFrom = 9999.5;
  if (value < kGroupedFrom) {
    return value == std::floor(value) ? Fixed(value, 0) : ThreeDigits(value);
  }
  if (value < kPrefixedFrom) {
    const std::string digits = Fixed(std::round(value), 0);
    return digits.substr(0, 1) + " " + digits.substr(1);
  }
  constexpr std::array<std::string_view, 6> kPrefixes{"k", "M", "G", "T", "P", "E"};
  value /= 1000;
  std::size_t prefix = 0;
  while (value >= kGroupedFrom && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return ThreeDigits(value) + " " + std::string(kPrefixes[prefix]);
}

}  // namespace labrack
