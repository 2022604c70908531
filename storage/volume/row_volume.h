// RowVolume: what concat and stripe have in common. The volume is a sequence of rows; a row lies on
// one or more columns, which are pieces of components, and deals its segments to them in turn:
//
//   row 0:  A0 B0 C0  A1 B1 C1 ...    three columns; segment s is on column s mod 3, at s / 3
//   row 1:  B7 C7  B8 C8 ...          A was smaller: what is left of B and C
//   row 2:  D ...                     appended later; one column, no segments
//
// A transfer is cut at the segments and its pieces run side by side.
// Source: Solaris Volume Manager, md_stripe (segment = offset / interlace, disk = segment mod n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"
#include "storage/volume/component.h"

namespace labrack::volume {

struct Row {
  struct Column {
    block::BlockDevice* device;
    Offset at;
  };
  Offset begin;  // in the volume
  Bytes size;
  Bytes interlace;
  std::vector<Column> columns;
};

// Where [at, at + length) begins, and how much of it lies there in one piece.
struct Piece {
  block::BlockDevice* device;
  Offset at;
  Bytes length;
};

class RowVolume : public block::BlockDevice {
 public:
  block::Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(block::IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(block::IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(block::IoContext io) override;

  // Appends components; what the volume holds stays where it is. Errors: kInvalidArgument, as of
  // making it; then nothing has changed.
  virtual Result<void> CheckGrow(std::span<const Component> components) const = 0;
  Result<void> Grow(std::span<const Component> components);

  const std::vector<Row>& rows() const { return rows_; }
  Piece Locate(Offset at, Bytes length) const;

 protected:
  RowVolume(runtime::Reactor& reactor, Bytes block_size, block::FlushMode flush_mode)
      : reactor_(reactor), geometry_{.size = {}, .block_size = block_size}, flush_(flush_mode) {}

  // All `columns` begin at a segment; each has room for `per_column` bytes.
  void AppendRow(std::vector<Row::Column> columns, Bytes per_column, Bytes interlace);
  virtual void AppendRows(std::span<const Component> components) = 0;

  std::span<block::BlockDevice* const> devices() const { return devices_; }

 private:
  std::size_t CountPieces(Offset at, Bytes length) const;
  Task<Result<void>> ReadPieces(block::IoContext io, Offset at, MutableView into);
  Task<Result<void>> WritePieces(block::IoContext io, Offset at, ConstView from);
  Task<Result<void>> FlushAll(block::IoContext io);

  runtime::Reactor& reactor_;
  block::Geometry geometry_;
  block::FlushMode flush_;
  std::vector<Row> rows_;
  std::vector<block::BlockDevice*> devices_;
};

// An operation that is over at once.
Task<Result<void>> Answered(Result<void> answer);

}  // namespace labrack::volume
