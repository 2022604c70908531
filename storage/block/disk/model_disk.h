// ModelDisk: what all modelled disks have in common: the commands that they take at once, their
// bytes, and their power. How long something takes, and when a write is on the medium, is what the
// kinds differ in (rotating_disk.h, controller_disk.h).
//
//   Read, Write, Flush --> one of `queue_depth` slots --> the kind's Serve...: sleeps its time
//                                                             |  Persist(id): survives from now on
//                          DiskImage: what reads see, <-------+
//                          and what a power cut leaves
//
// A model does nothing by itself: what a real disk does while nobody asks (reading ahead, writing
// back) is worked out when the next command comes, for the time that has passed. So a simulation
// ends when its last task does, and idle disks cost nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/block/block_device.h"
#include "storage/block/disk/disk_image.h"
#include "storage/runtime/reactor.h"
#include "storage/runtime/sync.h"

namespace labrack::block {

// Where the time of all commands so far went. Times of commands that overlap are all counted.
struct DiskCounters {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t flushes = 0;
  std::uint64_t cache_hits = 0;   // reads that the medium was not needed for
  std::uint64_t write_backs = 0;  // runs of the cache's content that were written
  Nanoseconds command{0};         // the disk's own processor
  Nanoseconds queue{0};           // other commands first
  Nanoseconds seek{0};
  Nanoseconds rotation{0};
  Nanoseconds transfer{0};  // between medium and buffer
  Nanoseconds bus{0};       // after the medium had done its part
};

class ModelDisk : public BlockDevice {
 public:
  ~ModelDisk() override;

  Geometry geometry() const final { return geometry_; }
  // kIo when there is no power, or when it goes meanwhile.
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) final;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) final;
  Task<Result<void>> Flush(IoContext io) final;

  // The power goes, now. All commands fail; of the writes that were not durable survives what the
  // options and `random` decide.
  void CutPower(const CutOptions& options, Random& random);
  // Comes back when all commands from before have failed.
  Task<void> PowerOn();
  bool powered() const { return powered_; }

  const DiskCounters& counters() const { return counters_; }

 protected:
  enum class Served : std::uint8_t { kYes, kNoPower, kCancelled };

  struct Options {
    Geometry geometry;
    std::uint32_t queue_depth = 1;
  };
  ModelDisk(runtime::Reactor& reactor, Options options);

  // kYes: the data has crossed the bus.
  virtual Task<Served> ServeRead(IoContext io, Offset at, Bytes length) = 0;
  // kYes: acknowledged; with io.durable, Persist(id) has been called.
  virtual Task<Served> ServeWrite(IoContext io, Offset at, Bytes length, DiskImage::WriteId id) = 0;
  // kYes: Persist has been called for all writes that had been acknowledged.
  virtual Task<Served> ServeFlush(IoContext io) = 0;
  // What was done by `now` without being asked.
  virtual void Advance(TimePoint now) = 0;
  // Forgets what only power keeps, and wakes all that wait for their turn.
  virtual void LosePower() = 0;

  runtime::Reactor& reactor() { return reactor_; }
  TimePoint Now() const { return reactor_.Now(); }
  // False when the power went meanwhile.
  Task<bool> SleepUntil(TimePoint until);
  void Persist(DiskImage::WriteId id) { image_.Persist(id); }
  DiskCounters& counted() { return counters_; }

 private:
  class Command;

  Result<void> Answer(Served served) const;
  Error NoPower() const;

  runtime::Reactor& reactor_;
  Geometry geometry_;
  runtime::Semaphore slots_;
  DiskImage image_;
  DiskCounters counters_;
  bool powered_ = true;
  std::unique_ptr<runtime::CancelToken> power_;  // of this time of power; cancelled by its cut
  std::uint32_t commands_ = 0;
  runtime::Event all_over_;  // no commands
};

}  // namespace labrack::block
