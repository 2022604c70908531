#include "agent/workload/figures.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <re2/re2.h>

namespace labrack::workload {

struct FigureReader::Pattern {
  v1::ExecFigure figure;
  std::unique_ptr<RE2> expression;
};

namespace {

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

// The last match of the first group in any line; nullopt when there is none.
std::optional<std::string> LastMatch(const RE2& expression, std::string_view output) {
  std::optional<std::string> last;
  while (!output.empty()) {
    // Tools that redraw a line of progress end it with a carriage return.
    const std::size_t length = std::min(output.find_first_of("\r\n"), output.size());
    re2::StringPiece line(output.data(), length);
    std::string group;
    while (RE2::FindAndConsume(&line, expression, &group)) {
      last = group;
      if (group.empty()) break;  // an empty match does not move on
    }
    output.remove_prefix(std::min(length + 1, output.size()));
  }
  return last;
}

}  // namespace

FigureReader::FigureReader(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
FigureReader::FigureReader(FigureReader&&) noexcept = default;
FigureReader& FigureReader::operator=(FigureReader&&) noexcept = default;
FigureReader::~FigureReader() = default;

Result<FigureReader> FigureReader::Create(std::vector<v1::ExecFigure> figures) {
  std::vector<Pattern> patterns;
  for (v1::ExecFigure& figure : figures) {
    RE2::Options options;
    options.set_log_errors(false);
    auto expression = std::make_unique<RE2>(figure.match(), options);
    if (!expression->ok()) {
      return Fail(
          Errc::kInvalidArgument, "figure " + figure.name(),
          fmt::format("`{}` is no regular expression: {}", figure.match(), expression->error()));
    }
    if (expression->NumberOfCapturingGroups() < 1) {
      return Fail(
          Errc::kInvalidArgument, "figure " + figure.name(),
          fmt::format("`{}` has no group; put the number into (parentheses)", figure.match()));
    }
    patterns.push_back({std::move(figure), std::move(expression)});
  }
  return FigureReader(std::move(patterns));
}

Result<std::vector<v1::Figure>> FigureReader::Read(std::string_view output) const {
  std::vector<v1::Figure> found;
  for (const Pattern& pattern : patterns_) {
    const std::optional<std::string> text = LastMatch(*pattern.expression, output);
    if (!text) {
      return Fail(
          Errc::kNotFound, "figure " + pattern.figure.name(),
          fmt::format("nothing that the command printed matches `{}`", pattern.figure.match()));
    }
    const std::optional<double> value = ParseNumber(*text);
    if (!value) {
      return Fail(
          Errc::kCorrupt, "figure " + pattern.figure.name(),
          fmt::format("`{}` matched \"{}\", which is no number", pattern.figure.match(), *text));
    }
    v1::Figure figure;
    figure.set_name(pattern.figure.name());
    figure.set_value(*value);
    figure.set_unit(pattern.figure.unit());
    figure.set_lower_is_better(pattern.figure.better() == v1::BETTER_LOWER);
    found.push_back(std::move(figure));
  }
  return found;
}

}  // namespace labrack::workload
