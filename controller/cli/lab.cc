#include "controller/cli/lab.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/spdlog.h>

#include "controller/cli/output.h"
#include "labrack/v1/config.pb.h"
#include "storage/base/units.h"

namespace labrack::cli {
namespace {

constexpr Nanoseconds kOnlineLimit = std::chrono::seconds(60);
constexpr Nanoseconds kOnlinePoll = std::chrono::milliseconds(20);
// On one machine agents report often, for the live view; heartbeats cost nothing there.
constexpr Nanoseconds kLocalHeartbeat = std::chrono::seconds(1);
constexpr std::size_t kLogBytesMax = 1 << 20;
constexpr std::size_t kLogFilesMax = 3;

// A text as YAML reads it back, whatever is in it.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Several agents share one file system: each may lend its part of what is free, less a tenth.
std::uint64_t ShareOfDisk(const std::filesystem::path& state, std::size_t agents) {
  if (agents < 2) return 0;
  constexpr std::uint64_t kLeast = 16 << 20;  // the field's own bound
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(state, error);
  if (error) return 0;
  return std::max(kLeast, space.available / 10 * 9 / agents);
}

Error AgentError(AgentProcess& agent) {
  return Error(Errc::kUnavailable, agent.name(),
               fmt::format("ended with {}; the end of its log:\n{}", agent.Ended().value_or("?"),
                           agent.LogTail()));
}

// Standard output carries results and the screen belongs to the progress view, so the controller's
// log goes into a file beside its catalog. A log that cannot be written is not worth failing for.
void LogToFile(const std::filesystem::path& path) {
  try {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "labrack", std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
                       path.string(), kLogBytesMax, kLogFilesMax)));
    spdlog::flush_on(spdlog::level::info);
  } catch (const spdlog::spdlog_ex&) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "labrack", std::make_shared<spdlog::sinks::null_sink_mt>()));
  }
}

}  // namespace

Error LabIsTaken(const std::filesystem::path& state, const LabHolder& holder) {
  std::string text = "another labrack is starting a lab here; try again";
  if (holder.state == LabState::kPrivate) {
    text = fmt::format("another labrack (pid {}) asks its agents here; try again", holder.pid);
  } else if (holder.state == LabState::kOpen) {
    text = fmt::format(
        "another labrack (pid {}) runs its lab here; wait until it ends, watch it with `labrack "
        "ls`, or name another directory with --state",
        holder.pid);
  }
  return Error(Errc::kBusy, state.string(), std::move(text));
}

std::filesystem::path CatalogDirectory(const std::filesystem::path& state) {
  return state / "controller";
}

Result<std::filesystem::path> DefaultStateDirectory(const Environment& environment) {
  const auto state = environment.find("XDG_STATE_HOME");
  if (state != environment.end() && state->second.starts_with('/')) {
    return std::filesystem::path(state->second) / "labrack";
  }
  const auto home = environment.find("HOME");
  if (home != environment.end() && home->second.starts_with('/')) {
    return std::filesystem::path(home->second) / ".local/state/labrack";
  }
  return Fail(Errc::kInvalidArgument,
              "neither XDG_STATE_HOME nor HOME names a directory; write --state DIR");
}

std::string AgentConfigText(const std::string& name, const std::string& controller,
                            const std::filesystem::path& state, const AgentsOptions& options,
                            std::uint64_t disk_space) {
  std::string text = "# Written by `labrack run` for an agent that it starts itself.\n";
  text += fmt::format("controller: {}\n", Quoted(controller));
  text += fmt::format("state: {}\n", Quoted(state.string()));
  text += fmt::format("name: {}\n", Quoted(name));
  text += "metrics_listen: \"127.0.0.1:0\"\nexit_with_parent: true\n";
  text += fmt::format("allow_exec: {}\n", options.allow_exec);
  if (disk_space > 0) text += fmt::format("disk_space: {}B\n", disk_space);
  if (!options.labels.empty()) text += "labels:\n";
  for (const auto& [key, value] : options.labels) {
    text += fmt::format("  {}: {}\n", key, Quoted(value));
  }
  if (!options.directories.empty()) text += "directories:\n";
  for (const std::string& directory : options.directories) {
    text += fmt::format("  - {}\n", Quoted(directory));
  }
  return text;
}

std::unique_ptr<Lab> Lab::Connect(const std::string& address) {
  std::unique_ptr<Lab> lab(new Lab({}));
  lab->client_ = std::make_unique<Client>(address);
  return lab;
}

Result<std::unique_ptr<Lab>> Lab::OpenAlone(const std::filesystem::path& state,
                                            api::OpenRuns open_runs) {
  Result<std::optional<LabLock>> lock = LabLock::Take(state);
  if (!lock) return std::unexpected(lock.error());
  if (!*lock) return nullptr;
  std::unique_ptr<Lab> lab(new Lab(state));
  lab->lock_ = **std::move(lock);
  if (Result<void> started = lab->StartController(open_runs); !started) {
    return std::unexpected(started.error());
  }
  if (Result<void> said = lab->lock_->PublishPrivate(); !said) {
    return std::unexpected(said.error());
  }
  return lab;
}

Lab::Lab(std::filesystem::path state) : state_(std::move(state)) {}

Lab::~Lab() {
  // Errors have no reader here; whoever wants them calls Close() first.
  const Result<void> closed = Close();
  static_cast<void>(closed);
}

Result<void> Lab::StartController(api::OpenRuns open_runs) {
  LogToFile(state_ / "controller.log");
  v1::ControllerConfig config;
  config.set_state(CatalogDirectory(state_).string());
  config.set_agents_listen("127.0.0.1:0");
  config.set_control_listen("127.0.0.1:0");
  config.set_heartbeat(kLocalHeartbeat.count());
  Result<std::unique_ptr<api::Controller>> controller = api::Controller::Start(config, open_runs);
  if (!controller) return std::unexpected(controller.error());
  controller_ = std::move(*controller);
  client_ = std::make_unique<Client>(controller_->control_address());
  return {};
}

Result<void> Lab::Announce() { return lock_->Publish(controller_->control_address()); }

Result<void> Lab::StartAgents(const AgentsOptions& options, const Interrupts& interrupts) {
  const Result<std::filesystem::path> program = FindAgentProgram();
  if (!program) return std::unexpected(program.error());
  program_ = *program;
  for (std::size_t number = 1; number <= options.count; ++number) {
    if (Result<void> started = StartAgent(number, options); !started) return started;
  }
  return WaitUntilOnline(interrupts);
}

Result<void> Lab::StartAgent(std::size_t number, const AgentsOptions& options) {
  const std::string name = fmt::format("agent-{}", number);
  const std::filesystem::path directory = state_ / "agents" / name;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Fail(Errc::kIo, directory.string(), error.message());
  const std::string text = AgentConfigText(name, controller_->agents_address(), directory / "state",
                                           options, ShareOfDisk(state_, options.count));
  const std::filesystem::path config = directory / "config.yaml";
  if (Result<void> written = WriteFileAtomically(config.string(), text); !written) return written;
  return StartProcess(
      {.program = program_, .config = config, .log = directory / "agent.log", .name = name});
}

Result<void> Lab::StartProcess(const AgentProcess::Options& options) {
  Result<std::unique_ptr<AgentProcess>> agent = AgentProcess::Start(options);
  if (!agent) return std::unexpected(agent.error());
  agents_.push_back(std::move(*agent));
  return {};
}

Result<void> Lab::WaitUntilOnline(const Interrupts& interrupts) {
  const TimePoint until = MonotonicClock().Now() + kOnlineLimit;
  while (true) {
    if (std::optional<Error> failure = Failure()) return std::unexpected(*failure);
    const Result<v1::HostsReply> hosts = client_->Hosts();
    if (!hosts) return std::unexpected(hosts.error());
    std::set<std::string> missing;
    for (const auto& agent : agents_) missing.insert(agent->name());
    for (const v1::HostRecord& host : hosts->hosts()) {
      if (host.session_state() == "ONLINE") missing.erase(host.agent_id());
    }
    if (missing.empty()) return {};
    if (MonotonicClock().Now() >= until) {
      const auto late = std::ranges::find_if(
          agents_, [&](const auto& agent) { return missing.contains(agent->name()); });
      return Fail(Errc::kUnavailable, (*late)->name(),
                  fmt::format("not online after {}; the end of its log:\n{}",
                              FormatDuration(kOnlineLimit), (*late)->LogTail()));
    }
    if (interrupts.WaitFor(kOnlinePoll)) return Fail(Errc::kCancelled, "interrupted");
  }
}

std::optional<Error> Lab::Failure() {
  if (controller_ != nullptr) {
    if (std::optional<Error> failure = controller_->failure()) return failure;
  }
  for (const auto& agent : agents_) {
    if (agent->Ended()) return AgentError(*agent);
  }
  return std::nullopt;
}

Result<std::string> Lab::Tend() {
  const std::optional<Error> failure = Failure();
  if (!failure) return "";
  const auto ended =
      std::ranges::find_if(agents_, [](const auto& agent) { return agent->Ended().has_value(); });
  if (ended == agents_.end() || restarts_ == kRestartsMax) return std::unexpected(*failure);
  ++restarts_;
  const AgentProcess::Options options = (*ended)->options();
  std::string said = fmt::format("{}; starting it again", failure->ToString());
  agents_.erase(ended);
  if (Result<void> started = StartProcess(options); !started) {
    return std::unexpected(started.error());
  }
  return said;
}

Result<void> Lab::Close() {
  Result<void> result;
  // All are asked before any is waited for: they clean up side by side.
  for (const auto& agent : agents_) agent->AskToEnd();
  const TimePoint until = MonotonicClock().Now() + clean_up_limit_;
  for (const auto& agent : agents_) {
    const Nanoseconds left = std::max(until - MonotonicClock().Now(), Nanoseconds(0));
    Result<void> ended = agent->WaitUntilEnded(left);
    if (!ended && result) result = ended;
  }
  agents_.clear();
  client_.reset();
  // Whoever looks from here on reads the catalog. Where it cannot be said, it asks in vain.
  if (lock_) static_cast<void>(lock_->PublishPrivate());
  if (controller_ != nullptr) controller_->Stop(api::Controller::kStopLimit);
  controller_.reset();
  lock_.reset();
  return result;
}

}  // namespace labrack::cli
