// WorkerProcess: the process of one trial's worker, or of what undoes, whether this agent started
// it or found it alive. Nothing is ever signalled by a number alone: what was found is known by
// when it was started, and held by a descriptor.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "agent/exec/child.h"
#include "agent/exec/family.h"
#include "agent/worker/trial_files.h"
#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::session {

class WorkerProcess {
 public:
  // Starts `program --spec ... --dir ...` with its output in worker.log, with `own_cgroup` in a
  // cgroup where one can be made. (Entering one waits for the kernel for tens of milliseconds.)
  static Result<WorkerProcess> Start(const std::filesystem::path& program,
                                     const worker::TrialFiles& files, bool own_cgroup);
  // Starts `program --undo DIR`.
  static Result<WorkerProcess> StartUndo(const std::filesystem::path& program,
                                         const worker::TrialFiles& files);
  // Who has the trial's lock. An error says nothing about that.
  enum class Holder { kNobody, kWorker, kUndo };
  static Result<Holder> FindHolder(const worker::TrialFiles& files);
  // The worker that an earlier agent has started, and that FindHolder has found.
  static WorkerProcess Found(const worker::TrialFiles& files) { return WorkerProcess(files); }

  // Readable (poll) when it has ended; -1: has to be asked.
  int poll_fd() const;
  // How it ended; nullopt while it lives, and while that cannot be told.
  struct End {
    int exit_code = -1;
    std::string how;
  };
  std::optional<End> Poll();

  void Terminate();
  // It and everything of its session.
  void Kill();
  std::string Name() const;  // "labrack-worker (pid 123)"

 private:
  explicit WorkerProcess(worker::TrialFiles files) : files_(std::move(files)) {}
  static Result<WorkerProcess> Spawn(const worker::TrialFiles& files, exec::Command command,
                                     exec::SpawnOptions options);
  void Identify();

  worker::TrialFiles files_;
  std::optional<exec::Child> child_;  // of this agent
  Descriptor pidfd_;                  // of one that was found
  std::optional<int> found_pid_;
};

// What a worker, or what undoes, has said last in worker.log; empty: nothing.
std::string LastWords(const worker::TrialFiles& files);
// Everything that a trial has started, but not what undoes: SIGKILL to all of it. Gives what is
// still there; does not wait for its end.
std::vector<exec::ProcessFacts> KillTrial(const worker::TrialFiles& files);
// The cgroup of a trial whose processes are gone.
void RemoveCgroup(const worker::TrialFiles& files);

}  // namespace labrack::session
