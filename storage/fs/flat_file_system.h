// FlatFileSystem: files on a bare block device, for workloads that are to measure a volume and no
// file system. Nothing of it is on the device: which file lies where is in memory, and gone with
// this object.
//
//   device:  | unit | unit | unit | unit | ...        file: units, the lowest free ones as it grows
//
// So one file that grows alone lies in one piece, from the beginning of the device on. Files take
// reads and writes in whole blocks of the device, and have no holes. There is no cache: every read
// and write goes to the device at once, `direct` or not; with `data_sync` each write is durable.
// Sync is the device's Flush; a device without one (kUnsupported) is taken as it is, as file
// systems do on volumes that have none.
//
// For each operation it counts how long its longest chain of dependent I/Os was (IoTally).
// Lives on the device's reactor; not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/fs/file_system.h"

namespace labrack::fs {

// Operations by the longest chain of I/Os that had to wait for each other before the operation was
// acknowledged: place 0 is "answered without I/O", the last one "as many or more".
struct ChainCounts {
  static constexpr std::size_t kDepthMax = 9;
  std::uint64_t count = 0;
  std::array<std::uint64_t, kDepthMax + 1> by_depth = {};

  void Add(const block::IoTally& tally);
  ChainCounts Since(const ChainCounts& earlier) const;
};

struct FlatFileStats {
  ChainCounts reads;
  ChainCounts writes;
  ChainCounts flushes;
  std::uint64_t flushes_refused = 0;
};

class FlatFileSystem final : public FileSystem {
 public:
  // The device outlives this, and all files are closed before.
  explicit FlatFileSystem(block::BlockDevice& device);
  ~FlatFileSystem() override;

  // kNotFound, kAlreadyExists.
  Task<Result<std::unique_ptr<File>>> Open(std::string path, OpenOptions options) override;
  Task<Result<FileStatus>> Status(std::string path) override;
  // kUnsupported: there are no directories.
  Task<Result<void>> MakeDirectory(std::string path) override;
  // kBusy while it is open.
  Task<Result<void>> Remove(std::string path) override;
  Task<Result<void>> Rename(std::string from, std::string to) override;
  Task<Result<std::vector<std::string>>> List(std::string path) override;
  Task<Result<void>> SyncAll() override;
  Task<Result<SpaceStatus>> Space() override;

  const FlatFileStats& stats() const { return stats_; }
  Bytes unit() const { return unit_; }

 private:
  friend class FlatFile;

  // What a file is; its handles share it.
  struct Node {
    Bytes size;
    std::vector<std::uint64_t> units;
    std::uint32_t open_count = 0;
  };
  struct Piece {
    Offset at;  // on the device
    Bytes length;
  };

  // Where [at, at + length) of the file begins, and how much of it lies there in one piece.
  Piece Locate(const Node& node, Offset at, Bytes length) const;
  // kNoSpace; then the file is as it was.
  Result<void> Grow(Node& node, const std::string& path, Bytes size);
  void Shrink(Node& node, Bytes size);
  Task<Result<void>> Transfer(IoContext io, const Node& node, Offset at, MutableView into);
  Task<Result<void>> Transfer(IoContext io, const Node& node, Offset at, ConstView from);
  Task<Result<void>> Flush(IoContext io);

  block::BlockDevice& device_;
  const block::Geometry geometry_;
  const Bytes unit_;
  std::set<std::uint64_t> free_;
  std::map<std::string, std::unique_ptr<Node>> files_;
  FlatFileStats stats_;
};

}  // namespace labrack::fs
