// labrack-controller: the controller as a daemon.
//   exit codes: 0 after SIGTERM or SIGINT; 2 for a wrong configuration; 5 when the catalog fails
#include <csignal>
#include <cstdio>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "controller/api/controller.h"
#include "proto/fields/fields.h"
#include "storage/base/config/source.h"
#include "storage/base/exit_codes.h"

namespace labrack {
namespace {

constexpr rlim_t kDescriptorsWanted = 65'536;  // one per agent, and some

bool ReadConfig(const std::string& path, v1::ControllerConfig& config) {
  config::Problems problems;
  std::string text;
  if (fields::LoadConfigFile(path, config, problems, text)) return true;
  std::fputs(config::RenderAll(problems, text, config::Colour::kNever).c_str(), stderr);
  return false;
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kDescriptorsWanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, kDescriptorsWanted);
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Serve(const v1::ControllerConfig& config, const sigset_t& signals) {
  Result<std::unique_ptr<api::Controller>> controller = api::Controller::Start(config);
  if (!controller) {
    spdlog::critical("{}", controller.error().ToString());
    const Errc code = controller.error().code();
    const bool usage = code == Errc::kInvalidArgument || code == Errc::kPermissionDenied;
    return ToInt(usage ? ExitCode::kUsage : ExitCode::kLabFailed);
  }
  (*controller)->OnFailure([](const Error&) { kill(getpid(), SIGTERM); });
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("stopping after signal {}", signal);
  const bool failed = (*controller)->failure().has_value();
  const int code = ToInt(failed ? ExitCode::kLabFailed : ExitCode::kPassed);
  // A report that is being made cannot be broken off. Nothing is lost by leaving it: whatever was
  // acknowledged is durable.
  std::thread([code] {
    std::this_thread::sleep_for(2 * api::Controller::kStopLimit);
    spdlog::warn("what is being computed takes too long; leaving it");
    _exit(code);
  }).detach();
  (*controller)->Stop(api::Controller::kStopLimit);
  controller->reset();
  return code;
}

int Main(int argc, char** argv) {
  CLI::App app("The controller of a labrack fleet.", "labrack-controller");
  std::string config_file;
  app.add_option("--config", config_file, "Configuration file")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : ToInt(ExitCode::kUsage);
  }
  spdlog::set_default_logger(spdlog::stderr_color_mt("labrack-controller"));
  v1::ControllerConfig config;
  if (!ReadConfig(config_file, config)) return ToInt(ExitCode::kUsage);
  RaiseDescriptorLimit();
  // Blocked before any thread starts, so that sigwait alone gets them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return Serve(config, signals);
}

}  // namespace
}  // namespace labrack

int main(int argc, char** argv) { return labrack::Main(argc, argv); }
