#include "controller/api/http_routes.h"

#include <fstream>
#include <future>
#include <optional>
#include <utility>

#include <google/protobuf/util/json_util.h>

#include "controller/api/answers.h"
#include "controller/fleet/identity.h"
#include "controller/http/targets.h"

namespace labrack::api {
namespace {

// Has `post` run `make` elsewhere, and waits for the answer.
template <typename Value, typename Post, typename Make>
Result<Value> Ask(Post post, Make make) {
  auto promise = std::make_shared<std::promise<Value>>();  // shared: the answer may come too late
  std::future<Value> future = promise->get_future();
  if (!post([promise, make = std::move(make)](auto&&... arguments) mutable {
        promise->set_value(make(arguments...));
      })) {
    return Fail(Errc::kUnavailable, "the controller is stopping or too busy");
  }
  promise.reset();  // a dropped task must end the wait
  try {
    if (future.wait_for(kHttpWaitMax) == std::future_status::ready) return future.get();
  } catch (const std::future_error&) {
    return Fail(Errc::kUnavailable, "the controller is stopping");
  }
  return Fail(Errc::kTimedOut, "the controller is too busy");
}

Result<std::string> Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const google::protobuf::util::Status printed =
      google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!printed.ok()) return Fail(Errc::kInternal, "JSON: " + printed.ToString());
  return text + "\n";
}

std::string OwnMachineId() {
  std::ifstream file("/etc/machine-id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::vector<http::Target> Targets(const fleet::Roster& roster, const std::string& own_address,
                                  const std::string& own_machine_id) {
  std::vector<http::Target> targets;
  targets.push_back({.address = own_address, .labels = {{"labrack_role", "controller"}}});
  for (const auto& [id, agent] : roster.agents()) {
    if (agent.inventory.metrics_address().empty()) continue;
    if (roster.Silent(agent) > kTargetForgottenAfter) continue;
    const bool same_machine = !own_machine_id.empty() && agent.machine_id == own_machine_id;
    std::optional<std::string> address =
        fleet::ReachableAddress(agent.inventory.metrics_address(), agent.peer, same_machine);
    if (!address) continue;
    http::Target target{.address = *std::move(address),
                        .labels = {{"labrack_role", "agent"},
                                   {"labrack_agent", id},
                                   {"labrack_host", agent.inventory.host_name()}}};
    for (const auto& [name, value] : agent.inventory.labels()) {
      target.labels[http::MetaLabel(name)] = value;
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<std::string> RunsJson(Jobs* jobs) {
  auto answer = Ask<Result<v1::ListRunsReply>>(
      [jobs](Jobs::Queue::Task job) { return jobs->Post(std::move(job)); },
      [](catalog::Reader& reader) { return AnswerListRuns(reader, kListLimit); });
  if (!answer) return std::unexpected(answer.error());
  if (!*answer) return std::unexpected(answer->error());
  return Json(**answer);
}

Result<std::string> RunJson(Jobs* jobs, const std::string& id) {
  auto answer = Ask<Result<v1::RunRecord>>(
      [jobs](Jobs::Queue::Task job) { return jobs->Post(std::move(job)); },
      [id](catalog::Reader& reader) { return reader.Run(id, catalog::Level::kAssignments); });
  if (!answer) return std::unexpected(answer.error());
  if (!*answer) return std::unexpected(answer->error());
  return Json(**answer);
}

}  // namespace

http::Routes MakeRoutes(Brain* brain, Jobs* jobs, Metrics* metrics,
                        std::function<std::string()> own_address) {
  http::Routes routes;
  routes.metrics = [metrics]() -> Result<std::string> { return metrics->Text(); };
  routes.health = [brain]() -> Result<void> {
    if (std::optional<Error> failure = brain->failure()) return std::unexpected(*failure);
    // A loop that does not turn is no healthy controller, so it is asked.
    Result<bool> turned = Ask<bool>(
        [brain](Brain::Task task) { return brain->Post(std::move(task)); }, [] { return true; });
    if (!turned) return std::unexpected(turned.error());
    return {};
  };
  routes.targets = [brain, own_address, own_machine_id = OwnMachineId()]() -> Result<std::string> {
    auto targets = Ask<std::vector<http::Target>>(
        [brain](Brain::Task task) { return brain->Post(std::move(task)); },
        [brain, own_address, own_machine_id] {
          return Targets(brain->roster(), own_address(), own_machine_id);
        });
    if (!targets) return std::unexpected(targets.error());
    return http::TargetsJson(*targets);
  };
  routes.runs = [jobs] { return RunsJson(jobs); };
  routes.run = [jobs](const std::string& id) { return RunJson(jobs, id); };
  return routes;
}

}  // namespace labrack::api
