// What an IoQueue can be told. The defaults are those of the systems that the two policies come
// from:
//   legacy   the deadline queue of ZFS 2005-2013 (illumos before "4045 zfs write throttle"): 35
//            I/Os at a device, deadline order, aggregation to 128 KiB
//   classes  the priority classes of OpenZFS since (vdev_queue.c): limits per class, sorting in
//            buckets of time, aggregation over gaps
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"
#include "storage/block/block_device.h"

namespace labrack::block {

// One number for each PriorityClass, in its order.
template <typename T>
using PerClass = std::array<T, kPriorityClassCount>;

struct LegacyOptions {
  // An I/O that arrives starts at once up to `pending_min` at the device; each that ends starts up
  // to `ramp_rate` others, up to `pending_max`.
  std::uint32_t pending_max = 35;
  std::uint32_t pending_min = 2;
  std::uint32_t ramp_rate = 2;
  // The deadline of an I/O is the tick of its arrival and those of its class: ticks of 100 Hz
  // shifted right by four.
  Nanoseconds tick = std::chrono::milliseconds(160);
  PerClass<std::uint32_t> deadline_ticks = {0, 0, 6, 4, 10};
};

struct ClassLimits {
  std::uint32_t active_min = 1;  // as many are started before any class gets more
  std::uint32_t active_max = 1;
};

struct ClassesOptions {
  PerClass<ClassLimits> limits = {{{10, 10}, {10, 10}, {1, 3}, {2, 10}, {1, 3}}};
  std::uint32_t active_max = 1000;  // of all classes
  // The maximum of asynchronous writes grows from their minimum, at this dirty fraction, to their
  // maximum, at that one.
  double dirty_low = 0.30;
  double dirty_high = 0.60;
  // While others are under way, this many of the scrub class start for each of them that ends, and
  // this many must have ended alone before the class gets its maximum.
  std::uint32_t background_credit = 5;
  // Of the classes that are sorted by offset, what arrived in an earlier bucket goes first.
  Nanoseconds bucket = Nanoseconds(1 << 29);
};

struct AggregationOptions {
  Bytes size_max;  // of what goes out as one; 0: every I/O goes out alone
  Bytes read_gap;  // between two reads: is read, and thrown away
  // Between two writes, filled by IoQueue::WriteOptional and by nothing else.
  Bytes write_gap;
  // Each of size_max; when all are in use an I/O goes out alone.
  std::uint32_t buffers_max = 8;
};

struct QueueOptions {
  enum class Policy { kLegacy, kClasses };
  enum class Medium { kRotating, kSolidState };

  Policy policy = Policy::kClasses;
  LegacyOptions legacy;    // with Policy::kLegacy
  ClassesOptions classes;  // with Policy::kClasses
  AggregationOptions aggregation;

  static QueueOptions Legacy();
  static QueueOptions Classes(Medium medium);

  // All that is wrong; each has the option's path as its subject and its range in the note.
  std::vector<Error> Validate() const;
};

}  // namespace labrack::block
