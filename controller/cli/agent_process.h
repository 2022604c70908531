// A labrack-agent that `labrack run` starts on this machine. It is a real agent of its own process,
// as on any host; its life is tied to ours by its standard input, which it watches: when that
// closes, even because we were killed, it cleans up and ends.
//
// The only file of the command line that starts processes (Boost.Process, agent_process.cc).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

#include "storage/base/clock.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::cli {

class AgentProcess {
 public:
  struct Options {
    std::filesystem::path program;
    std::filesystem::path config;  // file of v1::AgentConfig
    std::filesystem::path log;     // its standard output and error, appended
    std::string name;
  };

  static Result<std::unique_ptr<AgentProcess>> Start(const Options& options);
  // Kills what Stop() has not ended.
  ~AgentProcess();
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  const std::string& name() const { return options_.name; }
  const Options& options() const { return options_; }
  // Whether it ended; says how ("exit code 1", "signal 9") once it has.
  std::optional<std::string> Ended();
  // The last lines of its log from this start.
  std::string LogTail() const;

  static constexpr Nanoseconds kTermLimit = std::chrono::seconds(10);
  static constexpr Nanoseconds kKillLimit = std::chrono::seconds(5);

  // Closes its standard input: please end. Returns at once.
  void AskToEnd();
  // Waits for it: `limit`, then SIGTERM, then SIGKILL to its process group. Errors: kTimedOut when
  // it had to be killed, as something of it may be left then.
  Result<void> WaitUntilEnded(Nanoseconds limit);

 private:
  AgentProcess() = default;
  bool WaitFor(Nanoseconds limit);

  Options options_;
  std::uintmax_t log_begin_ = 0;
  pid_t pid_ = -1;
  Descriptor lifeline_;  // the write end of its standard input
  std::optional<std::string> ended_;
};

// labrack-agent beside our own executable. Errors: kNotFound, saying where it was looked for.
Result<std::filesystem::path> FindAgentProgram();

}  // namespace labrack::cli
