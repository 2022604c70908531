// Goal: every byte of a RAID-5 has one place, no chunk lies on its line's parity, and a write reads
// the least that makes its parity right. Method: all small layouts; the plans' reads against what
// the formula for parity needs.
#include "storage/volume/raid5_layout.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace labrack::volume {
namespace {

TEST(Raid5Layout, EveryChunkHasItsOwnPlaceBesideParity) {
  for (std::size_t columns = kRaid5ColumnsMin; columns <= 9; ++columns) {
    const Raid5Layout layout(columns, 4_KiB, 3 * columns);
    std::set<std::pair<std::uint64_t, std::size_t>> seen;
    for (std::uint64_t line = 0; line < layout.lines(); ++line) {
      EXPECT_TRUE(seen.emplace(line, layout.ParityColumn(line)).second);
      EXPECT_EQ(layout.DataIndex(line, layout.ParityColumn(line)), columns - 1);
    }
    for (Offset at; at.value() < layout.size().count(); at += layout.interlace()) {
      const Raid5Layout::Place place = layout.Find(at);
      const std::size_t column = layout.DataColumn(place.line, place.index);
      EXPECT_TRUE(seen.emplace(place.line, column).second) << at.value();
      EXPECT_EQ(layout.DataIndex(place.line, column), place.index);
    }
    EXPECT_EQ(seen.size(), layout.lines() * columns);
  }
}

// illumos md: raid_pcolumn and raid_dcolumn, for 4 columns.
TEST(Raid5Layout, ColumnsAreThoseOfTheDrawing) {
  const Raid5Layout layout(4, 4_KiB, 8);
  EXPECT_EQ(layout.ParityColumn(0), 3U);
  EXPECT_EQ(layout.ParityColumn(1), 0U);
  EXPECT_EQ(layout.DataColumn(1, 0), 1U);
  EXPECT_EQ(layout.DataColumn(2, 0), 2U);
  EXPECT_EQ(layout.DataColumn(2, 2), 0U);
}

struct Expected {
  WriteKind kind;
  std::size_t reads;
};

void ExpectPlan(std::size_t columns, LineShare share, std::optional<MissingColumn> missing,
                Expected expected) {
  const Raid5Layout layout(columns, 4_KiB, 16);
  const WritePlan plan = PlanWrite(layout, share, missing);
  EXPECT_EQ(plan.kind, expected.kind) << share.line;
  EXPECT_EQ(plan.read_count, expected.reads);
}

TEST(Raid5Layout, AWriteReadsTheLeast) {
  const LineShare line4{.line = 0, .begin = Bytes(0), .end = 12_KiB};
  const LineShare small{.line = 0, .begin = 1_KiB, .end = 3_KiB};
  const LineShare two_chunks{.line = 0, .begin = Bytes(0), .end = 8_KiB};
  ExpectPlan(4, line4, {}, {WriteKind::kReconstruct, 0});
  ExpectPlan(4, small, {}, {WriteKind::kModify, 2});
  ExpectPlan(4, two_chunks, {}, {WriteKind::kReconstruct, 1});
  ExpectPlan(3, small, {}, {WriteKind::kReconstruct, 1});
  ExpectPlan(8, two_chunks, {}, {WriteKind::kModify, 3});
}

TEST(Raid5Layout, AMissingColumnChangesThePlan) {
  const LineShare line{.line = 0, .begin = Bytes(0), .end = 12_KiB};
  const LineShare small{.line = 0, .begin = 1_KiB, .end = 3_KiB};  // of column 0
  const LineShare wide{.line = 0, .begin = 1_KiB, .end = 7_KiB};   // columns 0 and 1
  ExpectPlan(4, small, MissingColumn{3, false}, {WriteKind::kDataOnly, 0});
  ExpectPlan(4, small, MissingColumn{3, true}, {WriteKind::kReconstruct, 2});
  ExpectPlan(4, small, MissingColumn{2, false}, {WriteKind::kModify, 2});
  ExpectPlan(4, small, MissingColumn{0, false}, {WriteKind::kReconstruct, 2});
  ExpectPlan(4, wide, MissingColumn{0, false}, {WriteKind::kRegenerate, 3});
  ExpectPlan(4, line, MissingColumn{1, false}, {WriteKind::kReconstruct, 0});
}

TEST(Raid5Layout, RowsTouchedAndNotTouchedMakeTheHull) {
  const Raid5Layout layout(4, 4_KiB, 4);
  for (std::uint64_t begin = 0; begin < 12; ++begin) {
    for (std::uint64_t end = begin + 1; end <= 12; ++end) {
      const LineShare share{.line = 1, .begin = 1_KiB * begin, .end = 1_KiB * end};
      const Rows hull = layout.Hull(share);
      Bytes touched;
      for (std::size_t index = 0; index < 3; ++index) {
        const Rows rows = layout.Touched(share, index);
        touched += rows.length();
        EXPECT_EQ(rows.length() + layout.Untouched(share, index).length(), hull.length());
      }
      EXPECT_EQ(touched, share.end - share.begin);
    }
  }
}

}  // namespace
}  // namespace labrack::volume
