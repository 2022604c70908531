// Workload: what runs on a stack, as a series of named steps. The worker drives it:
//
//   MakeWorkload -> LayOut -> { drop caches if WantsColdCache(i) -> RunStep(i) }* -> Verify
//                                                 (Verify right after step VerifyAfter())
//
// Whether something is verified must not change what is measured: where steps follow, Verify leaves
// the caches as it found them, but for data pages, which it reads again.
//
// Every call blocks until it is done. Clients inside a step are coroutines over fs::FileSystem and
// block::BlockDevice; how they run (a thread each on host file systems) is a runtime::Launcher's
// matter. A Workload is made for one trial and used once; not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/workload/progress.h"
#include "labrack/v1/result.pb.h"
#include "labrack/v1/workload.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/random.h"
#include "storage/base/result.h"
#include "storage/fs/file_system.h"
#include "storage/runtime/env.h"
#include "storage/runtime/launcher.h"

namespace labrack::workload {

// Where a workload works, and what it may do there.
struct Target {
  fs::FileSystem* file_system = nullptr;  // outlives the workload
  std::filesystem::path directory = {};   // the same place as a host path, for external commands
  // Where job files and reports of external commands go, so that a full stack does not lose them;
  // empty: into `directory`.
  std::filesystem::path scratch = {};
  bool allow_exec = false;                // the agent's configuration lets playbooks run commands
  runtime::Launcher* launcher = nullptr;  // null: a thread for each client
  // Facts of the host; 0 where unknown: nothing is warned about or refused then, and clients make
  // their data themselves.
  Bytes memory = {};
  Bytes memory_available = {};  // for buffers; what is asked for beyond it is refused
  std::uint32_t cpu_count = 0;
};

struct StepInfo {
  std::string name;  // "write", "create", "mix"; unique within the workload
  bool has_warm_up = false;
};

struct StepContext {
  // When all clients begin; an instant that has passed means at once. Of Env's clock.
  TimePoint start = {};
  bool barrier = false;                          // `start` was agreed with other hosts
  const runtime::CancelToken* cancel = nullptr;  // may be null
  Progress* progress = nullptr;                  // may be null
  // Called when warm-up, measure and drain begin, with the exact instant, which lies up to 50 ms
  // back. Never called by a client, so it may take its time. May be empty.
  std::function<void(v1::PhaseKind phase, TimePoint at)> enter = {};
};

struct LayOutReport {
  Bytes written = {};
};

struct VerifyReport {
  v1::VerifyOutcome outcome = v1::VERIFY_OUTCOME_UNSPECIFIED;
  std::string detail = {};  // the first mismatch, or what was compared
  Bytes bytes = {};         // read back and compared
};

// Bytes of the counted operations of a step, by where they went: what a copy moves is in both.
struct BytesMoved {
  Bytes read = {};
  Bytes written = {};
};

// What a step gave. When `status` is an error, `result` holds what was counted until then; such a
// step is kept and stays out of statistics. result.devices is the worker's to fill in; so is
// result.cpu, where it is not set yet (external commands set it).
struct StepOutcome {
  Result<void> status;
  v1::StepResult result;
  BytesMoved moved = {};
  // Of the clients' measured time: in which they waited for data to write (LW107).
  double waiting_share = 0;
  // In the measured time, spent on making data: a part of the step's CPU.
  Nanoseconds making{0};
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual std::vector<StepInfo> Steps() const = 0;
  // Makes the files that the steps need, and checks that they are really there (size, allocated
  // blocks).
  virtual Result<LayOutReport> LayOut(const StepContext& context) = 0;
  // Whether what was laid out shall be dropped from memory before the step.
  virtual bool WantsColdCache(std::size_t step) const = 0;
  virtual StepOutcome RunStep(std::size_t step, const StepContext& context) = 0;
  // The step after which Verify is due: the last one that leaves its data in place.
  virtual std::size_t VerifyAfter() const = 0;
  // Whether Verify reads the stack, so that it shall read the medium and not what memory holds.
  virtual bool ReadsBack() const { return false; }
  // Reads back and compares. An error means that it could not be done; damage is an outcome.
  virtual Result<VerifyReport> Verify(const StepContext& context) = 0;
  // Reasons to read the results with care, as known after the steps.
  virtual std::vector<v1::Warning> Warnings() const = 0;
};

// Errors: kInvalidArgument where fields contradict each other (direct and a block that is no
// multiple of 4 KiB), kPermissionDenied for commands that the agent does not allow, kExhausted
// where clients and their buffers take more memory than there is. `spec` has its defaults filled
// in.
Result<std::unique_ptr<Workload>> MakeWorkload(const v1::Workload& spec, Seed seed, Target target,
                                               runtime::Env& env);

}  // namespace labrack::workload
