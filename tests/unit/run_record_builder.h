// A made-up run, deterministic to the byte: hosts, cells, and trials whose rates the test chooses.
// Each trial gets a complete, valid result from every host (phases, intervals that sum up,
// histograms); a test then damages what it is about through the returned record.
//
//   RunRecordBuilder run("copy-day");
//   run.AddHost("st-01");
//   run.AddCell("ext4", "pages", kPages);
//   run.AddTrial({.cell = 0, .repeat = 0, .rate = 5e5});
//   v1::Report report = compare::MakeReport(run.Build(), nullptr);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "labrack/v1/control.pb.h"

namespace labrack {

class RunRecordBuilder {
 public:
  // What a cell's step measures.
  struct StepKind {
    std::string step = {};
    std::string operation = {};
    v1::PrimaryMetric primary = v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND;
    std::uint64_t bytes_per_operation = 4096;
  };
  struct Trial {
    std::uint32_t cell = 0;
    std::uint32_t repeat = 0;
    double rate = 0;                        // of one host, in the unit of the primary metric
    double latency_ns = 200'000;            // median; a fixed tail is made from it
    double seconds = 10;                    // measured
    std::vector<double> host_factors = {};  // of the rate, one a host; left out: 1
  };

  explicit RunRecordBuilder(std::string playbook);

  void AddHost(const std::string& name);
  // All hosts so far take part. Returns the index of the cell.
  std::uint32_t AddCell(const std::string& stack, const v1::Workload& workload,
                        std::vector<StepKind> steps, const std::string& parameters = "");
  // The reference is good until the next call.
  v1::TrialRecord& AddTrial(const Trial& trial);
  v1::Playbook& playbook() { return *run_.mutable_plan()->mutable_playbook(); }
  v1::RunRecord& record() { return run_; }
  v1::RunRecord Build();

  static v1::Workload SyncPages(const std::string& name);
  static v1::Workload Copy(const std::string& name);  // ends with fsync
  static v1::Workload Exec(const std::string& name);
  static StepKind PagesStep() { return {.step = "write", .operation = "write"}; }
  static StepKind CopyStep() {
    return {.step = "copy",
            .operation = "copy",
            .primary = v1::PRIMARY_METRIC_BYTES_PER_SECOND,
            .bytes_per_operation = 131072};
  }
  static StepKind ExecStep() {
    return {.step = "run", .operation = "", .primary = v1::PRIMARY_METRIC_SECONDS};
  }

 private:
  void AddAssignment(const Trial& trial, std::size_t host, v1::TrialRecord& record);
  void FillStep(const StepKind& kind, const Trial& trial, std::size_t host, std::int64_t begin_ns,
                v1::AssignmentResult& result);

  v1::RunRecord run_;
  std::vector<std::vector<StepKind>> steps_;  // by cell
};

}  // namespace labrack
