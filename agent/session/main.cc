// labrack-agent: lends this host's disks to the lab and runs its trials.
//
//   labrack-agent --config FILE
//
// SIGTERM ends the agent alone: trials that run go on, and the next agent finds them (systemd:
// KillMode=process). With `exit_with_parent` it stops them first, as it does when its standard
// input closes. Exit codes: 0 ended as asked; 2 usage; 3 the configuration is wrong; 5 it cannot
// run.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "agent/session/agent.h"
#include "agent/session/agent_config.h"

namespace labrack::session {
namespace {

enum ExitCode { kExitOk = 0, kExitUsage = 2, kExitBadConfig = 3, kExitCannotRun = 5 };

int Complain(const Error& error) {
  // Not fmt::print, which throws where it cannot write: the log may be on the disk that is full.
  std::fputs(fmt::format("labrack-agent: {}\n", error.ToString()).c_str(), stderr);
  return kExitCannotRun;
}

// Beside our own executable, where it was installed or built.
Result<std::filesystem::path> FindWorker() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return std::unexpected(Error::FromErrno(error.value(), "readlink", "/proc/self/exe"));
  std::filesystem::path worker = self.parent_path() / "labrack-worker";
  if (access(worker.c_str(), X_OK) != 0) return FailErrno("find the worker", worker.string());
  return worker;
}

int Main(int argc, char** argv) {
  CLI::App app("Lends this host's disks to the lab and runs its trials.", "labrack-agent");
  std::string file;
  app.add_option("--config", file, "Configuration file (YAML).")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  v1::AgentConfig config;
  std::string text;
  config::Problems problems;
  if (!LoadConfig(file, config, text, problems)) {
    const auto colour =
        isatty(STDERR_FILENO) != 0 ? config::Colour::kAlways : config::Colour::kNever;
    fmt::print(stderr, "{}", config::RenderAll(problems, text, colour));
    return kExitBadConfig;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("agent"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  // A peer that goes away is an error of the call, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);

  const Result<std::filesystem::path> worker = FindWorker();
  if (!worker) return Complain(worker.error());
  Result<std::unique_ptr<Agent>> agent = Agent::Open(config, *worker);
  if (!agent) return Complain(agent.error());
  const Result<void> ran = (*agent)->Run();
  const int exit_code = ran ? kExitOk : Complain(ran.error());
  std::fflush(nullptr);
  // The exposer's server takes seconds to stop; nothing of it is worth waiting for, and everything
  // durable is.
  _exit(exit_code);
}

}  // namespace
}  // namespace labrack::session

int main(int argc, char** argv) { return labrack::session::Main(argc, argv); }
