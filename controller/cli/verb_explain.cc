// labrack explain: what a field of a playbook or a problem's code means.
#include <algorithm>

#include <fmt/format.h>

#include "controller/cli/output.h"
#include "controller/cli/verb.h"
#include "labrack/v1/config.pb.h"
#include "labrack/v1/playbook.pb.h"
#include "proto/fields/fields.h"
#include "storage/base/config/source.h"

namespace labrack::cli {
namespace {

std::vector<const google::protobuf::Descriptor*> Roots() {
  return {v1::Playbook::descriptor(), v1::AgentConfig::descriptor(),
          v1::ControllerConfig::descriptor()};
}

std::optional<std::string> ExplainCode(const std::string& wanted) {
  for (const config::CodeText& code : config::AllCodes()) {
    if (code.code == wanted) return fmt::format("{}: {}\n\n{}\n", code.code, code.title, code.text);
  }
  return std::nullopt;
}

std::string Nearest(const std::string& word) {
  std::vector<std::string> names;
  for (const config::CodeText& code : config::AllCodes()) names.emplace_back(code.code);
  for (const auto* root : Roots()) {
    for (const std::string& path : fields::FieldPaths(*root)) {
      names.push_back(path);
      names.push_back(path.substr(path.rfind('.') + 1));
    }
  }
  return config::Nearest(word, names);
}

ExitCode Explain(const Call& call) {
  std::string word = call.arguments.Operand(0);
  if (const auto text = ExplainCode(word)) {
    WriteOut(*text);
    return ExitCode::kPassed;
  }
  for (const auto* root : Roots()) {
    if (const std::optional<std::string> text = fields::Explain(*root, word)) {
      WriteOut(*text);
      return ExitCode::kPassed;
    }
  }
  const std::string nearest = Nearest(word);
  return FailWith(
      call,
      Error(Errc::kNotFound,
            fmt::format("`{}` is neither a field nor a code{}", word,
                        nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest))),
      ExitCode::kUsage);
}

}  // namespace

const Verb& ExplainVerb() {
  static const Verb verb = {.name = "explain",
                            .group = "write",
                            .summary = "what a field or a code means: unit, bounds, default",
                            .details =
                                "FIELD is a path, as stacks.*.host.ext4.mount_options or "
                                "random.block, or its last word. CODE is as LR203.",
                            .operands = {{"FIELD|CODE"}},
                            .options = {},
                            .run = Explain};
  return verb;
}

}  // namespace labrack::cli
