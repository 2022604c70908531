// QueuePolicy: who of those that wait is next, and how many may be at the device. It knows nothing
// of what an I/O does: aggregation, errors and cancelling are the queue's (io_queue.h).
#pragma once

#include <cstdint>
#include <memory>

#include "storage/block/queue/options.h"
#include "storage/block/queue/request.h"

namespace labrack::block {

class QueuePolicy {
 public:
  enum class Occasion {
    kArrival,  // of an I/O
    kEnd,      // of one that was at the device
  };

  virtual ~QueuePolicy() = default;

  // Of an I/O that arrives while nobody waits: it need not wait either.
  virtual bool StartsAtOnce(PriorityClass priority) const = 0;
  virtual void Add(Request& request) = 0;     // waits from now on
  virtual void Remove(Request& request) = 0;  // waits no longer
  // The next to start, who still waits; null when none may or nobody waits. `started`: how many
  // have been on this occasion.
  virtual Request* Next(Occasion occasion, std::uint32_t started) = 0;
  virtual void Began(PriorityClass priority, Offset end) = 0;
  virtual void Ended(PriorityClass priority) = 0;
  // How full the memory of what is to be written is, from 0 to 1.
  virtual void SetDirtyFraction(double fraction) = 0;
};

std::unique_ptr<QueuePolicy> MakeLegacyPolicy(const LegacyOptions& options);
std::unique_ptr<QueuePolicy> MakeClassesPolicy(const ClassesOptions& options);

}  // namespace labrack::block
