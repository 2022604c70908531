#include "controller/cli/playbook_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "controller/cli/output.h"
#include "storage/base/config/tree.h"

namespace labrack::cli {
namespace {

// Of a playbook and of each job file; the YAML reader's own limit is the same.
constexpr std::size_t kPlaybookBytesMax = 1 << 20;
constexpr std::size_t kGithubMax = 10;

// Workflow commands end at a line's end and cut properties at , and :.
std::string GithubText(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      case ':':
        out += property ? "%3A" : ":";
        break;
      case ',':
        out += property ? "%2C" : ",";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string GithubLine(const config::Problem& problem) {
  std::string place = fmt::format("title={}", GithubText(problem.code, true));
  if (!problem.file.empty()) place += fmt::format(",file={}", GithubText(problem.file, true));
  if (problem.span.begin.line > 0) {
    place += fmt::format(",line={},col={},endLine={},endColumn={}", problem.span.begin.line,
                         problem.span.begin.column, problem.span.end.line, problem.span.end.column);
  }
  std::string text = problem.message;
  for (const std::string& note : problem.notes) text += "\nnote: " + note;
  for (const std::string& help : problem.helps) text += "\nhelp: " + help;
  return fmt::format("::error {}::{}\n", place, GithubText(text, false));
}

// Where `name` leads when it is followed to a place that is not below `directory`.
std::optional<std::filesystem::path> WhereOutside(const std::filesystem::path& directory,
                                                  const std::string& name) {
  std::error_code error;
  const std::filesystem::path base = std::filesystem::canonical(directory, error);
  if (error) return std::nullopt;  // nothing can be read there either
  std::filesystem::path target = std::filesystem::canonical(directory / name, error);
  if (error) return std::nullopt;
  const auto [end, rest] = std::ranges::mismatch(base, target);
  if (end == base.end()) return std::nullopt;
  return target;
}

}  // namespace

bool ReadPlaybook(const std::string& path, const std::vector<std::string>& sets,
                  std::uint32_t trials, v1::PlaybookSource& source, plan::RefusedFiles& refused,
                  config::Problems& problems) {
  source.set_file(path);
  source.set_trials(trials);
  for (const std::string& set : sets) source.add_set(set);
  if (!config::ReadTextFile(path, kPlaybookBytesMax, *source.mutable_text(), problems))
    return false;
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  for (const std::string& name : plan::AttachmentPaths(source)) {
    if (plan::LeadsOut(name)) continue;  // checking the playbook says so
    if (const std::optional<std::filesystem::path> outside = WhereOutside(directory, name)) {
      refused[name] = fmt::format("a symbolic link leads to {}", outside->string());
      continue;
    }
    Result<std::string> attachment = ReadWholeFile((directory / name).string(), kPlaybookBytesMax);
    if (attachment) (*source.mutable_attachments())[name] = std::move(*attachment);
  }
  return true;
}

config::Problems ProblemsOf(const v1::PlanReply& reply) {
  config::Problems problems;
  for (const v1::SourceProblem& sent : reply.problems()) {
    config::Problem problem;
    problem.code = sent.code();
    problem.message = sent.message();
    problem.file = sent.file();
    problem.span = {.begin = {sent.line(), sent.column()},
                    .end = {sent.end_line(), sent.end_column()}};
    problem.label = sent.label();
    problem.notes.assign(sent.notes().begin(), sent.notes().end());
    problem.helps.assign(sent.helps().begin(), sent.helps().end());
    problems.Add(std::move(problem));
  }
  return problems;
}

std::string ProblemsGithub(const config::Problems& problems) {
  std::string out;
  const std::size_t shown = std::min(problems.list().size(), kGithubMax);
  for (std::size_t i = 0; i < shown; ++i) out += GithubLine(problems.list()[i]);
  if (problems.total() > shown) {
    out += fmt::format("::notice::{} more problems; labrack validate shows them all\n",
                       problems.total() - shown);
  }
  return out;
}

}  // namespace labrack::cli
