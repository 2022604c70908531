// ControllerDisk: a controller with a buffer, in front of units that work in parallel: the dies of
// an SSD, or the spindles behind a LUN of a disk array. In virtual time.
//
//   host --bus--> controller: latency, commands per second
//                     |  write: acknowledged from the buffer, when it has room
//                     |  read: a part from each unit that holds one
//          [unit 0] [unit 1] ... [unit n-1]       chunks take turns over the units
//
// Each unit does one thing at a time. A read waits for reads before it and for the rest of one
// write only: a die suspends its programs, an array puts what is written back behind what is read.
// When a command comes, all of its instants follow from those before it, so it sleeps once or
// twice.
//
// A safe buffer (power-loss protection, mirrored NVRAM) makes every acknowledged write durable, and
// a Flush costs next to nothing. With any other, what is acknowledged is durable after a Flush,
// which waits until the buffer is empty and the map of the flash has been written.
//
// What is left out: garbage collection (a drive with enough erased blocks), wear, rebuilds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "storage/block/disk/bus.h"
#include "storage/block/disk/mechanics.h"
#include "storage/block/disk/model_disk.h"
#include "storage/block/disk/track_cache.h"

namespace labrack::block {

struct ControllerDiskOptions {
  Bytes size;
  Bytes block_size{512};
  std::uint32_t queue_depth = 32;
  std::int64_t read_command_ns = 0;  // latency; commands overlap
  std::int64_t write_command_ns = 0;
  std::int64_t read_interval_ns = 0;  // from one command to the next: the most per second
  std::int64_t write_interval_ns = 0;

  std::uint32_t units = 1;
  Bytes chunk{16384};
  std::int64_t chunk_read_ns = 0;  // of any part of a chunk
  std::int64_t chunk_write_ns = 0;
  // Of a part of a chunk at least, when it does not go on where the last write ended. Flash packs
  // such parts together (0); a spindle has to go there.
  std::int64_t part_write_min_ns = 0;
  // The units are disks: reads take what their heads take, not chunk_read_ns.
  std::optional<MechanicsOptions> spindle;

  Bytes buffer;              // of writes
  bool buffer_safe = false;  // keeps its content without power
  std::int64_t flush_ns = 0;
  // Streams of reads that it reads ahead for, and how far.
  std::uint32_t read_segments = 0;
  Bytes segment_size;

  // kInvalidArgument with what is wrong.
  Result<void> Validate() const;
};

class ControllerDisk final : public ModelDisk {
 public:
  static constexpr std::uint32_t kQueueDepthMax = 65'536;
  // Acknowledged writes that no Flush has covered; beyond, the oldest that are on the medium are
  // durable, as a drive that is left alone writes its map from time to time.
  static constexpr std::size_t kUnflushedMax = 4096;

  // `bus` outlives the disk. Errors: those of Validate.
  static Result<std::unique_ptr<ControllerDisk>> Create(runtime::Reactor& reactor,
                                                        ControllerDiskOptions options, Bus& bus);

 protected:
  Task<Served> ServeRead(IoContext io, Offset at, Bytes length) override;
  Task<Served> ServeWrite(IoContext io, Offset at, Bytes length, DiskImage::WriteId id) override;
  Task<Served> ServeFlush(IoContext io) override;
  void Advance(TimePoint) override {}
  void LosePower() override;

 private:
  struct Unit {
    TimePoint read_free_at{};
    TimePoint write_free_at{};
    Mechanics::Position position;
  };
  struct Buffered {
    TimePoint done_at{};
    Bytes length;
  };
  struct Unflushed {
    DiskImage::WriteId id = 0;
    TimePoint done_at{};
  };

  ControllerDisk(runtime::Reactor& reactor, ControllerDiskOptions options, Bus& bus);

  TimePoint TakeInterval(std::int64_t interval_ns);
  TimePoint ReadUnits(Offset at, Bytes length, TimePoint begin);
  TimePoint ReadPart(Offset at, Bytes length, TimePoint begin);
  TimePoint WriteUnits(Offset at, Bytes length, TimePoint begin);
  TimePoint ReadAhead(Offset at, Bytes length, TimePoint begin);
  TimePoint TakeRoom(Bytes length);
  void Acknowledged(DiskImage::WriteId id, TimePoint done_at);

  ControllerDiskOptions options_;
  std::optional<Mechanics> mechanics_;
  Bus& bus_;
  TimePoint next_command_at_{};
  std::vector<Unit> units_;
  std::size_t next_unit_ = 0;  // for a write
  Offset written_to_;          // where the last write ended
  TrackCache read_cache_;
  std::deque<Buffered> buffered_;  // by arrival
  Bytes buffer_used_;
  TimePoint drained_at_{};           // when all that is buffered will be on the medium
  std::deque<Unflushed> unflushed_;  // by acknowledgement
};

}  // namespace labrack::block
