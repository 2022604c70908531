// Estimates of what a trial writes, needs and takes, from its specification alone. They are there
// so that a plan can be judged before it is run; nothing is decided by them but whether the data
// fits.
//
// Writes are counted as the data that the workload hands to the file system (lay-out and
// measurement); what metadata and journals add is not. A workload that ends by time writes as much
// as the rates below allow, so that the figure for fast disks is too low and that for slow disks
// too high.
#pragma once

#include "labrack/v1/plan.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/clock.h"

namespace labrack::plan {

// What we take a disk to do: a mid-range SATA SSD.
struct AssumedDisk {
  double stream_bytes_per_second = 200e6;  // one stream, read or written
  double verify_bytes_per_second = 400e6;  // reading back and comparing, from memory in part
  Nanoseconds random_operation{100'000};   // one read or buffered write of a small block
  Nanoseconds sync_operation{1'000'000};   // one write made durable
  Nanoseconds small_file{20'000};          // stat, open, delete: the file system's own work
  double operations_per_second_max = 50'000;
  double parallel_sync_max = 8;  // clients that a device serves at once with durable writes
};
inline constexpr AssumedDisk kAssumedDisk;

struct WorkEstimate {
  Bytes written;             // by lay-out and measurement
  Bytes footprint;           // most bytes of files at one time
  Nanoseconds duration;      // lay-out, warm-up, measurement and verification
  bool writes_known = true;  // false for exec: it may write anything
};
WorkEstimate EstimateWork(const v1::Workload& workload);

// Before a trial its file disks are written from end to end, unless the playbook says otherwise.
Bytes EstimatePreparation(const v1::Stack& stack, const v1::Disks& disks);

// Time to write them, one after the other.
Nanoseconds EstimatePreparationTime(const v1::Stack& stack, const v1::Disks& disks);

// How long a host takes to work out so much time of modelled disks.
Nanoseconds OnModels(Nanoseconds virtual_time);

// Time to prepare the disks, and to build, settle and tear down the stack.
Nanoseconds EstimateStack(const v1::Stack& stack, const v1::Disks& disks);

}  // namespace labrack::plan
