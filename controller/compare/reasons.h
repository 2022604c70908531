// Reasons: what an operation cost on each stack, and sentences on what differs from the base. They
// are sums over valid trials and hosts, divided once; there is no test of significance here: the
// rows say whether there is a difference, this says what goes with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "controller/compare/series.h"
#include "labrack/v1/control.pb.h"

namespace labrack::compare {

class Reasons {
 public:
  // A valid trial; its record is not needed afterwards.
  void Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial);
  // After the last one. In the order of the view's groups and their steps.
  void AddTo(const RunView& view, v1::Report& report) const;

 private:
  struct Sums {
    std::uint32_t trials = 0;
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
    double latency_ns = 0;  // of all operations together
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_written = 0;

    bool has_devices = false;
    std::uint64_t device_reads = 0;
    std::uint64_t device_writes = 0;
    std::uint64_t device_read_bytes = 0;
    std::uint64_t device_write_bytes = 0;
    std::uint64_t device_flushes = 0;

    bool has_io = false;
    std::uint64_t behind = 0;
    std::uint64_t durable_writes = 0;
    std::uint64_t chains = 0;
    std::uint64_t chain_sum = 0;
    std::uint64_t queued = 0;
    std::int64_t queue_wait_ns = 0;
    Histogram read_times;
    Histogram write_times;
    Histogram flush_times;
    std::map<std::pair<std::uint32_t, std::string>, v1::IoSum> stages;  // by depth and purpose

    bool has_cpu = false;
    double cpu_ns = 0;

    bool has_model = false;
    v1::ModelledTime model;
  };

  static void AddStep(const v1::StepResult& step, Sums& sums);
  static void AddIo(const v1::IoUse& io, Sums& sums);
  static v1::StackReasons Of(const std::string& stack, const Sums& sums);

  std::map<std::pair<std::uint32_t, std::string>, Sums> sums_;  // by cell's number and step
};

// What `other` does differently from `base`: first by how much it is slower or faster, then what
// goes with that, the strongest first. Whole sentences (differences.cc).
std::vector<std::string> Differences(const v1::StackReasons& base, const v1::StackReasons& other);

}  // namespace labrack::compare
