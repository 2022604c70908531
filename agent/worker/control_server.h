// ControlServer: the worker's other thread. It listens on control.sock, takes commands, reports
// progress once a second and at every change, turns signals into a stop, and watches over limits of
// time. It never touches the stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/worker/event_log.h"
#include "agent/worker/frames.h"
#include "agent/worker/trial_control.h"
#include "agent/worker/trial_files.h"
#include "agent/workload/progress.h"
#include "labrack/v1/worker.pb.h"
#include "storage/base/descriptor.h"

namespace labrack::worker {

constexpr Nanoseconds kReportInterval = std::chrono::seconds(1);
constexpr std::size_t kClientsMax = 8;
// Exit code of a worker that ended itself.
constexpr int kExitHung = 4;

class ControlServer {
 public:
  // Blocks SIGTERM, SIGINT and SIGHUP in the calling thread: call it before any thread is made.
  static Result<std::unique_ptr<ControlServer>> Open(const TrialFiles& files,
                                                     std::string assignment_id,
                                                     std::uint64_t epoch);

  // Something changed; from any thread.
  void Ring();

  // Serves until Finish() and until what is queued has been sent (for at most a second).
  void Run(TrialControl& control, EventLog& events, workload::Progress& progress,
           const Clock& clock);
  void Finish();

 private:
  struct Client {
    explicit Client(Descriptor socket) : frames(std::move(socket)) {}
    FrameSocket frames;
    std::uint64_t told_seq = 0;
    std::optional<std::uint32_t> told_gate;
    bool gone = false;
  };
  struct Live;  // what Run works on

  ControlServer() = default;
  void Wait(Nanoseconds longest);
  void Accept();
  void TakeSignals(TrialControl& control);
  void TakeCommands(Client& client, Live& live);
  void Report(Live& live, bool with_progress);
  v1::WorkerReport ProgressReport(Live& live);
  v1::WorkerReport TotalsReport(Live& live);
  void EndIfHung(Live& live);

  std::string assignment_id_;
  std::uint64_t epoch_ = 0;
  Descriptor listener_;
  Descriptor signals_;
  Descriptor bell_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::atomic<bool> finished_ = false;
};

}  // namespace labrack::worker
