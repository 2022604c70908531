#include "controller/cli/voice.h"

#include <fmt/format.h>

#include "controller/cli/json_lines.h"
#include "controller/cli/output.h"

namespace labrack::cli {
namespace {

// "bad.yaml:4:3: LR203: unknown field `stakcs`; help: did you mean `stacks`?"
std::string OneLine(const config::Problem& problem) {
  std::string line;
  if (!problem.file.empty()) line += problem.file + ":";
  if (problem.span.begin.line > 0) {
    line += fmt::format("{}:{}:", problem.span.begin.line, problem.span.begin.column);
  }
  line += fmt::format("{}{}: {}", line.empty() ? "" : " ", problem.code, problem.message);
  for (const std::string& note : problem.notes) line += "; note: " + note;
  for (const std::string& help : problem.helps) line += "; help: " + help;
  return line;
}

// The code's name says nothing more of words that are wrong.
std::string Wording(const Error& error) {
  const bool words = error.code() == Errc::kInvalidArgument && error.subject().empty();
  return words ? error.note() : error.ToString();
}

}  // namespace

Voice::Voice(Form form) : form_(form) {
  if (form_.json) Line(JsonVersionLine());
}

void Voice::Become(Form form) {
  if (form == form_) return;
  form_ = form;
  if (form_.json) Line(JsonVersionLine());
}

// One write a line: the listener of signals may speak at the same time.
void Voice::Line(const std::string& text) const { WriteAll(form_.descriptor, text + "\n"); }

void Voice::Say(const std::string& text) {
  Line(form_.json ? JsonTextLine("message", text) : text);
}

void Voice::Note(const std::string& text) {
  Line(form_.json ? JsonTextLine("note", text) : "note: " + text);
}

void Voice::Warn(const std::string& text) {
  Line(form_.json ? JsonTextLine("warning", text) : "warning: " + text);
}

void Voice::Fail(const Error& error, ExitCode code, const std::string& help) {
  const std::string wording = Wording(error);
  reasons_.push_back(wording);
  if (form_.json) return Line(JsonErrorLine(error, wording, code, help));
  std::string text = fmt::format("{}error:{} {}", form_.colour ? "\033[1;31m" : "",
                                 form_.colour ? "\033[0m" : "", wording);
  if (!help.empty()) text += fmt::format("\n  = help: {}", help);
  Line(text);
}

void Voice::Refuse(const config::Problems& problems, std::string_view text) {
  for (const config::Problem& problem : problems.list()) {
    reasons_.push_back(OneLine(problem));
    if (form_.json) Line(JsonProblemLine(problem));
  }
  const std::size_t more = problems.total() - problems.list().size();
  if (more > 0) reasons_.push_back(fmt::format("{} more problems", more));
  if (form_.json) {
    if (more > 0) Say(reasons_.back());
    return;
  }
  WriteAll(form_.descriptor,
           config::RenderAll(problems, text,
                             form_.colour ? config::Colour::kAlways : config::Colour::kNever));
}

void Voice::End(ExitCode code) {
  if (form_.json) Line(JsonEndLine(code));
}

}  // namespace labrack::cli
