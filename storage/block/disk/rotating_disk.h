// RotatingDisk: a disk with heads and platters in virtual time, after Ruemmler and Wilkes ("An
// introduction to disk drive modeling", IEEE Computer 27(3), 1994) and DiskSim's division of a
// drive.
//
//   host --bus--> command --hit?--> track cache, write cache -----------------------> bus --> host
//                 overhead   |miss                                                    ^
//                            v                                                        |
//                   tagged queue --scheduler--> arm: seek, settle, rotate, transfer --+
//                                                ^ while nobody asks: reading ahead, writing back
//
// Commands cost the disk's processor one after the other; positioning overlaps with the commands
// and bus transfers of others. A read of what the heads are about to pass anyway (reading ahead)
// goes on without a seek. A small write that follows another has just missed its block and waits
// for nearly a whole revolution, unless the write cache takes it.
//
// Write cache: off and write-through acknowledge what is on the medium. Write-back acknowledges
// what has crossed the bus; what is cached is written in the order of places when the arm is idle,
// when there is no room, or for a Flush, which takes the arm until the cache is empty and keeps
// other writes out of it meanwhile, as ATA's FLUSH CACHE does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/block/disk/bus.h"
#include "storage/block/disk/mechanics.h"
#include "storage/block/disk/model_disk.h"
#include "storage/block/disk/track_cache.h"
#include "storage/block/disk/write_cache.h"

namespace labrack::block {

enum class WriteCacheMode : std::uint8_t { kOff, kWriteThrough, kWriteBack };

// Which of the queued commands is next.
enum class DiskScheduler : std::uint8_t {
  kFifo,
  kScan,  // up to the last, then down again (an elevator)
  kSatf,  // shortest access time first: seek, settle and rotation (Jacobson and Wilkes, 1991)
};

struct RotatingDiskOptions {
  MechanicsOptions mechanics;
  std::int64_t phase_ns = 0;  // of the rotation, at instant 0: disks do not turn in step
  Bytes size;                 // from block 0, the outer edge, on; 0: all
  Bytes block_size{512};
  std::int64_t read_command_ns = 0;  // the disk's processor, for a command
  std::int64_t write_command_ns = 0;
  std::uint32_t queue_depth = 1;  // tags
  DiskScheduler scheduler = DiskScheduler::kFifo;
  // Who has waited so long is next, whatever the scheduler. Well above what a full queue takes, or
  // it is the scheduler.
  std::int64_t wait_max_ns = 4'000'000'000;
  std::uint32_t cache_segments = 0;  // of the track cache
  Bytes segment_size;
  WriteCacheMode write_cache = WriteCacheMode::kOff;
  Bytes write_cache_size;               // kWriteBack
  Bytes write_back_max{256 << 10};      // in one run
  std::int64_t write_back_idle_ns = 0;  // so long after the last command it begins

  // kInvalidArgument with what is wrong.
  Result<void> Validate() const;
};

class RotatingDisk final : public ModelDisk {
 public:
  // `bus` outlives the disk. Errors: those of Validate.
  static Result<std::unique_ptr<RotatingDisk>> Create(runtime::Reactor& reactor,
                                                      RotatingDiskOptions options, Bus& bus);

  const Mechanics& mechanics() const { return mechanics_; }

 protected:
  Task<Served> ServeRead(IoContext io, Offset at, Bytes length) override;
  Task<Served> ServeWrite(IoContext io, Offset at, Bytes length, DiskImage::WriteId id) override;
  Task<Served> ServeFlush(IoContext io) override;
  void Advance(TimePoint now) override;
  void LosePower() override;

 private:
  // A command that needs the arm; in the frame of who serves it.
  struct ArmRequest {
    Offset at;
    bool write = false;
    bool first = false;  // before all others
    TimePoint since{};
    bool suspended = false;
    runtime::Waiter waiter = {};
  };
  class ArmTurn;
  // The heads have not left the track since a read, and read on into a segment.
  struct ReadAhead {
    TrackCache::Segment* segment = nullptr;
    Offset from;           // where the heads were...
    TimePoint since{};     // ...then
    bool resting = false;  // the segment is full
  };

  RotatingDisk(runtime::Reactor& reactor, RotatingDiskOptions options, Bus& bus);

  Task<bool> TakeCommand(std::int64_t takes_ns);
  Task<Served> TakeArm(ArmRequest* request);
  void ReleaseArm();
  ArmRequest& PickNext();  // takes it out of the queue
  std::size_t IndexOfNext();
  std::size_t IndexByScan();
  std::size_t IndexBySatf() const;
  // Of the arm, which is free: serves the request, and is at its end afterwards.
  Mechanics::Times Move(Offset at, Bytes length, bool write, TimePoint begin);

  Task<Served> ReadFromMedium(IoContext io, Offset at, Bytes length);
  Task<bool> ReadOn(Offset at, Bytes length);
  bool AboutToPass(Offset at) const;
  void ResumeReadAhead(const TrackCache::Segment& segment, TimePoint now);
  void AdvanceReadAhead(TimePoint now);
  void StopReadAhead(TimePoint now);

  Task<Served> WriteToMedium(IoContext io, Offset at, Bytes length, DiskImage::WriteId id,
                             TimePoint data_at);
  Task<Served> WriteToCache(Offset at, Bytes length, DiskImage::WriteId id, TimePoint data_at);
  bool HasRoom(Bytes length) const;
  Task<bool> MakeRoom(Bytes length);
  // Of the write cache, with the arm taken.
  Task<bool> WriteBackRun();
  void BeginRun(TimePoint begin);
  void FinishRun();

  RotatingDiskOptions options_;
  Mechanics mechanics_;
  Bus& bus_;

  TimePoint processor_free_at_{};
  Mechanics::Position position_;
  bool arm_taken_ = false;
  TimePoint arm_free_at_{};         // when nobody has taken it
  Offset arm_at_;                   // kScan: where the last request ended...
  bool upwards_ = true;             // ...and which way it goes
  std::vector<ArmRequest*> queue_;  // by arrival
  TrackCache track_cache_;
  ReadAhead read_ahead_;

  WriteCache write_cache_;
  std::optional<WriteCache::Run> run_;  // being written, until arm_free_at_
  TimePoint write_back_from_{};         // what is cached may be written, when the arm is free
  std::uint32_t flushing_ = 0;
  runtime::Event cache_open_;  // no Flush keeps writes out
};

}  // namespace labrack::block
