// labrack schema: the JSON schema of what people write, for editors.
#include "controller/cli/output.h"
#include "controller/cli/verb.h"
#include "labrack/v1/config.pb.h"
#include "labrack/v1/playbook.pb.h"
#include "proto/fields/fields.h"

namespace labrack::cli {
namespace {

ExitCode Schema(const Call& call) {
  const std::string of = call.arguments.Text("of").value_or("playbook");
  const google::protobuf::Descriptor* root = of == "agent" ? v1::AgentConfig::descriptor()
                                             : of == "controller"
                                                 ? v1::ControllerConfig::descriptor()
                                                 : v1::Playbook::descriptor();
  const std::string text = call.arguments.Flag("reference")
                               ? fields::ReferenceMarkdown(*root)
                               : fields::SchemaJson(*root, "labrack " + of);
  WriteOut(text);
  if (!text.ends_with('\n')) WriteOut("\n");
  return ExitCode::kPassed;
}

}  // namespace

const Verb& SchemaVerb() {
  static const Verb verb = {
      .name = "schema",
      .group = "write",
      .summary = "JSON schema of playbooks, for editors",
      .details = "",
      .operands = {},
      .options = {{.name = "of",
                   .kind = ValueKind::kChoice,
                   .value = "WHAT",
                   .help = "playbook, agent or controller",
                   .choices = {"playbook", "agent", "controller"}},
                  {.name = "reference", .help = "the reference of all fields instead (Markdown)"}},
      .run = Schema};
  return verb;
}

}  // namespace labrack::cli
