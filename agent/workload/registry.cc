// The table of workloads, and what they share.
#include <array>

#include "agent/workload/workloads.h"
#include "storage/runtime/host_launcher.h"

namespace labrack::workload {
namespace {

struct Entry {
  v1::Workload::KindCase kind;
  MadeWorkload (*make)(const v1::Workload& spec, const Setup& setup);
};

constexpr std::array<Entry, 8> kWorkloads{{
    {v1::Workload::kStream, MakeStream},
    {v1::Workload::kCopy, MakeCopy},
    {v1::Workload::kChecksum, MakeChecksum},
    {v1::Workload::kRandom, MakeRandom},
    {v1::Workload::kSyncPages, MakeSyncPages},
    {v1::Workload::kFiles, MakeFiles},
    {v1::Workload::kFio, MakeFio},
    {v1::Workload::kExec, MakeExec},
}};

}  // namespace

Result<std::unique_ptr<Workload>> MakeWorkload(const v1::Workload& spec, Seed seed, Target target,
                                               runtime::Env& env) {
  static runtime::HostLauncher host_launcher;  // has no state
  const Setup setup{
      .seed = seed,
      .target = target,
      .env = &env,
      .launcher = target.launcher != nullptr ? target.launcher : &host_launcher,
  };
  for (const Entry& entry : kWorkloads) {
    if (entry.kind == spec.kind_case()) return entry.make(spec, setup);
  }
  return Fail(Errc::kInvalidArgument, spec.name(), "the workload has no kind");
}

StepOutcome FileWorkload::RunEngine(StepPlan plan, const StepContext& context,
                                    const Engine::Body& body,
                                    std::span<const std::unique_ptr<DataFeed>> feeds) {
  Engine engine(*setup_.env, *setup_.launcher);
  StepOutcome outcome = engine.Run(plan, context, body, feeds);
  constexpr double kWaitingShareMax = 0.02;  // less than the margin of a comparison
  if (outcome.waiting_share > kWaitingShareMax) Warn(WarnDataWaits(outcome.waiting_share));
  return outcome;
}

Result<std::unique_ptr<fs::File>> FileWorkload::OpenFile(const std::string& path,
                                                         fs::OpenOptions options) const {
  return RunOne(*setup_.launcher, setup_.file_system().Open(path, options));
}

void FileWorkload::WarnIfCached(Bytes files) {
  const Bytes memory = setup_.target.memory;
  if (memory.count() > 0 && files < memory) Warn(WarnCachedFile(files, memory));
}

void FileWorkload::WarnIfCrowded(std::uint32_t clients) {
  const std::uint32_t cpu_count = setup_.target.cpu_count;
  if (cpu_count > 0 && clients > cpu_count) Warn(WarnClients(clients, cpu_count));
}

}  // namespace labrack::workload
