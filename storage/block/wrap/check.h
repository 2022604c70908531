// CheckDevice: a shadow in memory of what was written, and a comparison of every read with it. For
// tests and simulations: what it says is never a matter of timing.
//
//   a block is  known      by the last write that completed, or by the first read that found it
//               unknown    never seen; or a write of it failed, or two writes of it overlapped in
//                          time, so that nobody can say which one came last
//               in flight  a write of it is under way: a read beside it may find either content
//
// Reads are compared block by block, as far as a block was known, and no write of it was under way,
// during all of the read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "storage/block/block_device.h"

namespace labrack::block {

class CheckDevice final : public BlockDevice {
 public:
  // `device` outlives this; `name` is the subject of errors.
  CheckDevice(BlockDevice& device, std::string name)
      : device_(device), geometry_(device.geometry()), name_(std::move(name)) {}

  Geometry geometry() const override { return geometry_; }
  // kDataMismatch with the offset of the first byte that differs, and what stands there.
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override { return device_.Flush(io); }

  // Everything is unknown again: after a power cut, or when the device holds something else.
  // Nothing may be in flight.
  void Forget();

  std::uint64_t compared_count() const { return compared_count_; }  // blocks
  std::uint64_t mismatch_count() const { return mismatch_count_; }  // reads

 private:
  struct Block {
    std::unique_ptr<std::byte[]> content;  // null: unknown
    std::uint32_t writes_in_flight = 0;
    bool contended = false;        // some of them overlapped
    std::uint64_t changed_at = 0;  // change_count_ when a write last began or ended
  };
  using Blocks = std::map<std::uint64_t, Block>;  // by number

  Block& At(std::uint64_t number) { return blocks_[number]; }
  void Know(Block& block, ConstView content);
  void Begin(Offset at, std::size_t length);
  void End(Offset at, ConstView from, bool done);
  Result<void> Compare(Offset at, ConstView there, std::uint64_t begun_at);
  Error Mismatch(Offset read_at, std::size_t read_length, Offset block_at, ConstView there,
                 ConstView written) const;

  BlockDevice& device_;
  Geometry geometry_;
  std::string name_;
  Blocks blocks_;
  std::uint64_t change_count_ = 0;
  std::uint64_t compared_count_ = 0;
  std::uint64_t mismatch_count_ = 0;
};

}  // namespace labrack::block
