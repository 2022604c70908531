// The memory of a RAID-5's lines in work: each write, regenerating read or rebuilt line has one
// LineWork from its lock to its end, which with prewrites is after the acknowledgement. Their
// number is bounded, and who comes too late waits.
//
//   per column:   | entry | new data or parity ... |   | old data, or the image of the hull ... |
//                 +--- what goes into a slot ------+
//
// An image of rows begins at the first row of the hull; what is written of a column begins at the
// first row that is written there.
#pragma once

#include <memory>
#include <vector>

#include "storage/base/aligned_buffer.h"
#include "storage/runtime/sync.h"
#include "storage/volume/parity_log.h"
#include "storage/volume/raid5_layout.h"

namespace labrack::volume {

class LineWork {
 public:
  LineWork(std::size_t columns, Bytes block, Bytes interlace);
  static Bytes Size(std::size_t columns, Bytes interlace);

  // Set by whoever uses it.
  LineShare share;
  ConstView from;  // what is written, until the acknowledgement
  WritePlan plan;
  ParityLog::Ticket ticket;
  block::IoContext io;

  MutableView New(std::size_t column, Bytes length) {
    return memory_.view().subspan(column * stride_ + AlignedBuffer::kAlignment, length.size());
  }
  MutableView Entry(std::size_t column) {
    return memory_.view().subspan(column * stride_ + AlignedBuffer::kAlignment - block_, block_);
  }
  // The entry and `length` of what follows it.
  MutableView Slot(std::size_t column, Bytes length) {
    return memory_.view().subspan(column * stride_ + AlignedBuffer::kAlignment - block_,
                                  block_ + length.size());
  }
  MutableView Old(std::size_t column, Bytes length) {
    return memory_.view().subspan(old_at_ + column * interlace_, length.size());
  }

 private:
  std::size_t block_;
  std::size_t interlace_;  // rounded up to pages
  std::size_t stride_;
  std::size_t old_at_;
  AlignedBuffer memory_;
};

class LineWorkPool {
 public:
  static constexpr std::size_t kWorksMax = 32;
  static constexpr std::size_t kWorksMin = 2;
  static constexpr Bytes kMemoryMax = 64_MiB;  // unless kWorksMin need more

  LineWorkPool(runtime::Reactor& reactor, std::size_t columns, Bytes block, Bytes interlace);

  // `co_await pool.Acquire()`, then Get(); Put() gives it back.
  runtime::QueueWait Acquire(std::source_location where = std::source_location::current()) {
    return free_.Acquire(where);
  }
  LineWork& Get();
  void Put(LineWork& work);

 private:
  std::size_t columns_;
  Bytes block_;
  Bytes interlace_;
  runtime::Semaphore free_;
  std::vector<std::unique_ptr<LineWork>> all_;  // as many as were ever needed at once
  std::vector<LineWork*> idle_;
};

}  // namespace labrack::volume
