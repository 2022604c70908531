// WorkerProcess: the process of one trial's worker, whether this agent started it or found it
// alive. It leads a session of its own, by which everything that it has started is found when it
// has to be killed.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "agent/exec/child.h"
#include "agent/worker/trial_files.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::session {

class WorkerProcess {
 public:
  // Starts `program --spec ... --dir ...` with its output in worker.log.
  static Result<WorkerProcess> Start(const std::filesystem::path& program,
                                     const worker::TrialFiles& files);
  // Starts `program --undo DIR`.
  static Result<WorkerProcess> StartUndo(const std::filesystem::path& program,
                                         const worker::TrialFiles& files);
  // The worker that an earlier agent has started; nullopt: none lives.
  static Result<std::optional<WorkerProcess>> Find(const worker::TrialFiles& files);

  // Readable (poll) when it has ended; -1: has to be asked.
  int poll_fd() const;
  // How it ended; nullopt while it lives.
  struct End {
    int exit_code = -1;
    std::string how;
  };
  std::optional<End> Poll();

  void Terminate();
  // The worker and everything of its session.
  void Kill();

 private:
  explicit WorkerProcess(worker::TrialFiles files) : files_(std::move(files)) {}
  std::optional<int> pid() const;

  worker::TrialFiles files_;
  std::optional<exec::Child> child_;  // of this agent
  Descriptor pidfd_;                  // of one that was found
};

// Kills every process of the session, and again, until there is none. Gives how many signals it has
// sent.
std::size_t KillSession(int session);

}  // namespace labrack::session
