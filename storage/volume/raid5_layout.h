// Where the bytes of a RAID-5 lie, and what a write must read first. Pure arithmetic, no I/O.
//
//   line     column 0  column 1  column 2  column 3       A chunk is `interlace` bytes; a line is
//    0          0         1         2         P           one chunk of each column, n-1 of them
//    1          P         3         4         5           data. (illumos md: raid_pcolumn,
//    2          8         P         6         7           raid_dcolumn)
//    3         10        11         P         9
//
//   parity column = (line + n - 1) mod n        data column = (index within line + line) mod n
//
// A write touches a contiguous part of a line's data. Its *hull* is the rows (bytes within a chunk)
// from the first to the last that it touches in any chunk: there parity changes.
//
//              chunk 0     chunk 1     chunk 2
//   row 0     | . . . |   | w w w |   | w w w |  -+        touched(0) = [2, 3)
//   row 1     | . . . |   | w w w |   | . . . |   | hull   touched(1) = [0, 3) = the hull
//   row 2     | w w w |   | w w w |   | . . . |  -+        touched(2) = [0, 1)
//
// Parity for it can come from (what reads least, in I/Os, then in bytes):
//   reconstruct   the data of the hull that is not overwritten; nothing for a whole line
//   modify        the old data of what is overwritten, and the old parity
//   regenerate    all columns but the missing one: the only way when part of what the hull has on
//                 the missing column is overwritten, and part is not
//   data only     nothing; the parity column itself is gone
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "storage/base/bytes.h"

namespace labrack::volume {

inline constexpr std::size_t kRaid5ColumnsMin = 3;
inline constexpr std::size_t kRaid5ColumnsMax = 32;

// [begin, end) of a chunk, in bytes.
struct Rows {
  Bytes begin;
  Bytes end;

  Bytes length() const { return end - begin; }
  bool empty() const { return begin == end; }
  friend bool operator==(const Rows&, const Rows&) = default;
};

// The part of one line that a write covers: [begin, end) of the line's data.
struct LineShare {
  std::uint64_t line = 0;
  Bytes begin;
  Bytes end;
};

class Raid5Layout {
 public:
  Raid5Layout(std::size_t columns, Bytes interlace, std::uint64_t lines)
      : columns_(columns), interlace_(interlace), lines_(lines) {}

  std::size_t columns() const { return columns_; }
  std::size_t data_columns() const { return columns_ - 1; }
  Bytes interlace() const { return interlace_; }
  std::uint64_t lines() const { return lines_; }
  Bytes line_size() const { return interlace_ * (columns_ - 1); }
  Bytes size() const { return line_size() * lines_; }

  std::size_t ParityColumn(std::uint64_t line) const { return (line + columns_ - 1) % columns_; }
  std::size_t DataColumn(std::uint64_t line, std::size_t index) const {
    return (index + line) % columns_;
  }
  // The other way round; columns() - 1 for the parity column.
  std::size_t DataIndex(std::uint64_t line, std::size_t column) const {
    return (column + columns_ - line % columns_) % columns_;
  }

  struct Place {
    std::uint64_t line;
    std::size_t index;
    Bytes row;
  };
  Place Find(Offset at) const;
  // From the beginning of the column's data.
  Bytes InColumn(std::uint64_t line, Bytes row) const { return interlace_ * line + row; }

  // The first share of [at, at + length), which may go on in the next line.
  LineShare FirstShare(Offset at, Bytes length) const;
  Rows Touched(const LineShare& share, std::size_t index) const;
  Rows Hull(const LineShare& share) const;
  // What of the hull the write does not touch in a chunk. One piece, since a write of several
  // chunks touches the end of its first and the beginning of its last.
  Rows Untouched(const LineShare& share, std::size_t index) const;
  // Where the bytes for a chunk begin within the bytes of the share.
  Bytes WithinShare(const LineShare& share, std::size_t index) const;

 private:
  std::size_t columns_;
  Bytes interlace_;
  std::uint64_t lines_;
};

enum class WriteKind : std::uint8_t { kReconstruct, kModify, kRegenerate, kDataOnly };

struct PlannedRead {
  std::size_t column = 0;
  Rows rows;
};

struct WritePlan {
  WriteKind kind = WriteKind::kDataOnly;
  std::size_t read_count = 0;
  std::array<PlannedRead, kRaid5ColumnsMax> read = {};

  std::span<const PlannedRead> reads() const { return {read.data(), read_count}; }
  Bytes read_bytes() const;
};

// A column that cannot be read where the write is.
struct MissingColumn {
  std::size_t column;
  bool writable;  // it takes writes all the same, so what it should hold must be worked out
};

WritePlan PlanWrite(const Raid5Layout& layout, const LineShare& share,
                    std::optional<MissingColumn> missing);

}  // namespace labrack::volume
