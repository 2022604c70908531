// labrack host ls, host show, disk ls and disk models: what the fleet has. Without --controller:
// this machine, as an agent on it sees it.
#include <algorithm>

#include <fmt/format.h>

#include "controller/cli/local_lab.h"
#include "controller/cli/output.h"
#include "controller/cli/verb.h"
#include "controller/report/json.h"
#include "controller/report/lists.h"
#include "storage/base/config/source.h"

namespace labrack::cli {
namespace {

ExitCode PutOutHosts(const Call& call, const v1::HostsReply& hosts) {
  WriteOut(call.arguments.Flag("json") ? report::FormatMessageJson("labrack.hosts", hosts)
                                       : report::FormatHosts(hosts));
  return ExitCode::kPassed;
}

ExitCode PutOutDisks(const Call& call, const v1::HostsReply& hosts) {
  WriteOut(call.arguments.Flag("json") ? report::FormatMessageJson("labrack.hosts", hosts)
                                       : report::FormatDisks(hosts));
  return ExitCode::kPassed;
}

ExitCode PutOutModels(const Call& call, const v1::HostsReply& hosts) {
  WriteOut(call.arguments.Flag("json") ? report::FormatModelsJson(hosts)
                                       : report::FormatModels(hosts));
  return ExitCode::kPassed;
}

ExitCode PutOutHost(const Call& call, const v1::HostsReply& hosts) {
  const std::string& wanted = call.arguments.Operand(0);
  std::vector<std::string> names;
  for (const v1::HostRecord& host : hosts.hosts()) {
    if (host.agent_id() != wanted && host.inventory().host_name() != wanted) {
      names.push_back(host.agent_id());
      continue;
    }
    WriteOut(call.arguments.Flag("json") ? report::FormatMessageJson("labrack.host", host)
                                         : report::FormatHost(host));
    return ExitCode::kPassed;
  }
  const std::string nearest = config::Nearest(wanted, names);
  return FailWith(call,
                  Error(Errc::kNotFound,
                        fmt::format("no host `{}`; {}", wanted,
                                    nearest.empty() ? "`labrack host ls` lists them"
                                                    : fmt::format("did you mean `{}`?", nearest))),
                  ExitCode::kUsage);
}

using PutOut = ExitCode (*)(const Call&, const v1::HostsReply&);

// The hosts of the controller, or of this machine: of the lab that is running here, else of agents
// that are started to ask them.
ExitCode AskHosts(const Call& call, PutOut put_out, WhenOpen when_open,
                  const Interrupts& interrupts) {
  return WorkIn(
      call, OpenLabToAsk(call, nullptr, when_open, interrupts), interrupts, [&](Lab& lab) {
        const Result<v1::HostsReply> hosts = lab.client().Hosts();
        if (hosts) return put_out(call, *hosts);
        // The lab that ran here has ended under the question, so that it is our turn.
        const bool again = hosts.error().code() == Errc::kUnavailable && !lab.embedded() &&
                           !call.arguments.Text("controller") && when_open == WhenOpen::kConnect;
        return again ? AskHosts(call, put_out, WhenOpen::kRefuse, interrupts)
                     : FailWith(call, hosts.error());
      });
}

ExitCode AskHosts(const Call& call, PutOut put_out) {
  const Interrupts interrupts;
  return AskHosts(call, put_out, WhenOpen::kConnect, interrupts);
}

ExitCode HostLs(const Call& call) { return AskHosts(call, PutOutHosts); }
ExitCode HostShow(const Call& call) { return AskHosts(call, PutOutHost); }
ExitCode DiskLs(const Call& call) { return AskHosts(call, PutOutDisks); }
ExitCode DiskModels(const Call& call) { return AskHosts(call, PutOutModels); }

}  // namespace

const Verb& HostLsVerb() {
  static const Verb verb = {.name = "host ls",
                            .group = "fleet",
                            .summary = "the hosts",
                            .details = "Without --controller: this machine.",
                            .operands = {},
                            .options = WithLabOptions(WithAgentOptions({JsonFlag()})),
                            .run = HostLs};
  return verb;
}

const Verb& HostShowVerb() {
  static const Verb verb = {.name = "host show",
                            .group = "fleet",
                            .summary = "what a host has and which stacks it can build",
                            .details = "Without --controller: this machine, as agent-1.",
                            .operands = {{"HOST"}},
                            .options = WithLabOptions(WithAgentOptions({JsonFlag()})),
                            .run = HostShow};
  return verb;
}

const Verb& DiskLsVerb() {
  static const Verb verb = {.name = "disk ls",
                            .group = "fleet",
                            .summary = "what each host lends, and what it refuses to and why",
                            .details = "Without --controller: this machine.",
                            .operands = {},
                            .options = WithLabOptions(WithAgentOptions({JsonFlag()})),
                            .run = DiskLs};
  return verb;
}

const Verb& DiskModelsVerb() {
  static const Verb verb = {.name = "disk models",
                            .group = "fleet",
                            .summary = "the modelled disks that `disks: {model}` may name",
                            .details = "Those of any host. Without --controller: this machine's.",
                            .operands = {},
                            .options = WithLabOptions(WithAgentOptions({JsonFlag()})),
                            .run = DiskModels};
  return verb;
}

}  // namespace labrack::cli
