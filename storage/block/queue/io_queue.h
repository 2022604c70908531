// IoQueue: what stands between those who want I/Os and a disk that should not have all of them at
// once.
//
//   Read, Write --- nobody waits, the policy allows it ----------------------> device
//        \                                                              ^        |
//         \--> waits: by the policy's rank, and by offset --> a run ----/        |
//                         ^                                  (one I/O)           |
//                         |  a cancel: kCancelled                                |
//                         +------------- each I/O that ends starts others <------+
//
// A run is one I/O for several that wait and lie side by side, through a buffer of the queue's own.
// The coroutine of its first member does the I/O for all. Reads may have gaps between them, which
// are read and thrown away. Writes may not: what stands in a gap is not the queue's to know. Who
// owns such a gap offers it with WriteOptional. A run that fails is repeated member by member, so
// that an error reaches whom it concerns, unless the device as a whole is gone or out of time.
//
// Flush goes to the device at once: it covers what has completed, and that is at the device. No run
// has members from before and from after a flush.
//
// Who waits in here is bounded by who calls: the queue itself holds nothing but `buffers_max`
// buffers. I/Os on the same blocks at the same time are done in any order, as on any disk.
// Lives on one reactor; not thread-safe. An I/O that need not wait allocates nothing but its frame.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/base/aligned_buffer.h"
#include "storage/base/histogram.h"
#include "storage/block/block_device.h"
#include "storage/block/queue/options.h"
#include "storage/block/queue/policy.h"
#include "storage/block/queue/request.h"
#include "storage/runtime/reactor.h"

namespace labrack::block {

struct QueueClassStats {
  // Last place of `depths`: that many or more.
  static constexpr std::size_t kDepthMax = 64;

  std::uint64_t started_count = 0;  // I/Os at the device
  std::uint64_t merged_count = 0;   // of callers, that went along with another one
  std::uint64_t cancelled_count = 0;
  std::uint32_t active = 0;
  std::uint32_t active_max = 0;
  std::uint32_t waiting = 0;
  std::uint32_t waiting_max = 0;
  Histogram waits;  // from arrival to start, of all that started or went along
  std::array<std::uint64_t, kDepthMax + 1> depths = {};  // of the class at each start, with itself
  Nanoseconds starvation_max{0};  // the longest time with some waiting and none started
};

struct QueueStats {
  PerClass<QueueClassStats> classes;
  std::uint64_t flush_count = 0;
  std::uint64_t split_count = 0;        // runs that failed and were repeated member by member
  std::uint64_t buffer_miss_count = 0;  // runs not made because all buffers were in use
  std::uint64_t optional_written_count = 0;
  std::uint64_t optional_dropped_count = 0;
};

class IoQueue final : public BlockDevice {
 public:
  // Errors: kInvalidArgument, with all that is wrong. `device` outlives the queue.
  static Result<std::unique_ptr<IoQueue>> Create(runtime::Reactor& reactor, BlockDevice& device,
                                                 const QueueOptions& options);
  ~IoQueue() override;

  Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override;

  // Of blocks whose content is worth nothing, such as padding: written when it closes a gap of at
  // most `write_gap` between two writes that go out together, and otherwise not; succeeds either
  // way.
  Task<Result<void>> WriteOptional(IoContext io, Offset at, ConstView from);

  // How full the memory of what is to be written is, from 0 to 1; the classes policy lets more
  // asynchronous writes through when it fills up.
  void SetDirtyFraction(double fraction) { policy_->SetDirtyFraction(fraction); }

  const QueueStats& stats() const { return stats_; }

 private:
  class Turn;

  IoQueue(runtime::Reactor& reactor, BlockDevice& device, const QueueOptions& options);

  bool StartsAtOnce(PriorityClass priority) const {
    return waiting_count_ == 0 && policy_->StartsAtOnce(priority);
  }
  QueueClassStats& StatsOf(PriorityClass priority) {
    return stats_.classes[static_cast<std::size_t>(priority)];
  }
  bool aggregates() const { return aggregation_.size_max > Bytes(0); }
  RequestsByOffset& TreeOf(Direction direction) {
    return by_offset_[static_cast<std::size_t>(direction)];
  }
  void Began(PriorityClass priority, Offset end);
  void Ended(PriorityClass priority);

  Task<Result<void>> Queued(Request* request);
  void Enter(Request& request);
  void Leave(Request& request, TimePoint now);
  void Remove(Request& request);
  static void Cancelled(runtime::CancelWatch& watch);
  void Complete(Request& request, Result<void> result);

  void Dispatch(QueuePolicy::Occasion occasion, TimePoint now);
  void Start(Request& first, TimePoint now);
  bool Joins(const Request& lower, const Request& upper) const;
  Request& Extend(Request& from, bool upwards, Bytes& length);
  void FormRun(Request& leader);
  AlignedBuffer* TakeBuffer();  // null when all are in use

  Task<Result<void>> Lead(Request* leader);
  Task<Result<void>> Single(const Request& request);
  Task<Result<void>> WholeRun(const Request* leader);
  Task<void> MemberByMember(Request* leader);

  runtime::Reactor& reactor_;
  BlockDevice& device_;
  Geometry geometry_;
  AggregationOptions aggregation_;
  std::unique_ptr<QueuePolicy> policy_;
  std::array<RequestsByOffset, 2> by_offset_;  // by Direction; empty without aggregation
  std::size_t waiting_count_ = 0;
  std::uint64_t next_order_ = 1;
  PerClass<TimePoint> starving_since_ = {};
  std::vector<std::unique_ptr<AlignedBuffer>> buffers_;
  std::vector<AlignedBuffer*> free_buffers_;
  QueueStats stats_;
};

}  // namespace labrack::block
