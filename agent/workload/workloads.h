// The workloads, one file each. To add one: its message in proto/labrack/v1/workload.proto, a file
// here with its Make function, and a line in the table of registry.cc.
#pragma once

#include <memory>

#include "agent/workload/file_work.h"
#include "agent/workload/workload.h"

namespace labrack::workload {

// What the workloads on files have in common: their data, and what the engine needs.
class FileWorkload : public Workload {
 public:
  std::size_t VerifyAfter() const override { return Steps().size() - 1; }
  std::vector<v1::Warning> Warnings() const override { return warnings_; }

 protected:
  FileWorkload(Setup setup, v1::DataKind data_kind) : setup_(setup), data_(setup.seed, data_kind) {
    if (data_kind == v1::DATA_KIND_ZEROS) warnings_.push_back(WarnZeros());
  }

  StepOutcome RunEngine(StepPlan plan, const StepContext& context, const Engine::Body& body,
                        std::span<const std::unique_ptr<DataFeed>> feeds = {});
  Result<std::unique_ptr<fs::File>> OpenFile(const std::string& path,
                                             fs::OpenOptions options) const;
  // A step that could not even begin.
  static StepOutcome Stillborn(Error error) { return {std::unexpected(std::move(error)), {}}; }
  void Warn(v1::Warning warning) { warnings_.push_back(std::move(warning)); }
  void WarnIfCached(Bytes files);
  void WarnIfCrowded(std::uint32_t clients);

  Setup setup_;
  Data data_;

 private:
  std::vector<v1::Warning> warnings_;
};

using MadeWorkload = Result<std::unique_ptr<Workload>>;

MadeWorkload MakeStream(const v1::Workload& spec, const Setup& setup);
MadeWorkload MakeCopy(const v1::Workload& spec, const Setup& setup);
MadeWorkload MakeChecksum(const v1::Workload& spec, const Setup& setup);
MadeWorkload MakeRandom(const v1::Workload& spec, const Setup& setup);
MadeWorkload MakeSyncPages(const v1::Workload& spec, const Setup& setup);
MadeWorkload MakeFiles(const v1::Workload& spec, const Setup& setup);
MadeWorkload MakeFio(const v1::Workload& spec, const Setup& setup);
MadeWorkload MakeExec(const v1::Workload& spec, const Setup& setup);

// What direct I/O asks of offsets and lengths.
constexpr Bytes kDirectUnit = 4_KiB;

}  // namespace labrack::workload
