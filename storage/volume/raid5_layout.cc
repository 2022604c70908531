#include "storage/volume/raid5_layout.h"

#include <algorithm>
#include <tuple>

#include "storage/base/check.h"

namespace labrack::volume {
namespace {

void AddRead(WritePlan& plan, std::size_t column, Rows rows) {
  if (rows.empty()) return;
  LABRACK_CHECK(plan.read_count < plan.read.size());
  plan.read[plan.read_count++] = {column, rows};
}

WritePlan Reconstruct(const Raid5Layout& layout, const LineShare& share) {
  WritePlan plan{.kind = WriteKind::kReconstruct};
  for (std::size_t index = 0; index < layout.data_columns(); ++index) {
    AddRead(plan, layout.DataColumn(share.line, index), layout.Untouched(share, index));
  }
  return plan;
}

WritePlan Modify(const Raid5Layout& layout, const LineShare& share) {
  WritePlan plan{.kind = WriteKind::kModify};
  for (std::size_t index = 0; index < layout.data_columns(); ++index) {
    AddRead(plan, layout.DataColumn(share.line, index), layout.Touched(share, index));
  }
  AddRead(plan, layout.ParityColumn(share.line), layout.Hull(share));
  return plan;
}

WritePlan Regenerate(const Raid5Layout& layout, const LineShare& share, std::size_t missing) {
  WritePlan plan{.kind = WriteKind::kRegenerate};
  for (std::size_t column = 0; column < layout.columns(); ++column) {
    if (column != missing) AddRead(plan, column, layout.Hull(share));
  }
  return plan;
}

}  // namespace

Raid5Layout::Place Raid5Layout::Find(Offset at) const {
  const std::uint64_t chunk = at.value() / interlace_.count();
  return {.line = chunk / data_columns(),
          .index = static_cast<std::size_t>(chunk % data_columns()),
          .row = Bytes(at.value() % interlace_.count())};
}

LineShare Raid5Layout::FirstShare(Offset at, Bytes length) const {
  const std::uint64_t line = at.value() / line_size().count();
  const Bytes begin(at.value() % line_size().count());
  return {.line = line, .begin = begin, .end = std::min(begin + length, line_size())};
}

Rows Raid5Layout::Touched(const LineShare& share, std::size_t index) const {
  const Bytes chunk = interlace_ * index;
  const Bytes begin = std::max(share.begin, chunk);
  const Bytes end = std::min(share.end, chunk + interlace_);
  if (begin >= end) return {};
  return {begin - chunk, end - chunk};
}

Rows Raid5Layout::Hull(const LineShare& share) const {
  const bool one_chunk = share.begin / interlace_ == (share.end - Bytes(1)) / interlace_;
  if (!one_chunk) return {Bytes(0), interlace_};
  return Touched(share, static_cast<std::size_t>(share.begin / interlace_));
}

Rows Raid5Layout::Untouched(const LineShare& share, std::size_t index) const {
  const Rows hull = Hull(share);
  const Rows touched = Touched(share, index);
  if (touched.empty()) return hull;
  if (touched.begin > hull.begin) return {hull.begin, touched.begin};
  return {touched.end, hull.end};
}

Bytes Raid5Layout::WithinShare(const LineShare& share, std::size_t index) const {
  return std::max(share.begin, interlace_ * index) - share.begin;
}

Bytes WritePlan::read_bytes() const {
  Bytes sum;
  for (const PlannedRead& one : reads()) sum += one.rows.length();
  return sum;
}

WritePlan PlanWrite(const Raid5Layout& layout, const LineShare& share,
                    std::optional<MissingColumn> missing) {
  if (!missing) {
    const WritePlan reconstruct = Reconstruct(layout, share);
    const WritePlan modify = Modify(layout, share);
    const auto cost = [](const WritePlan& plan) {
      return std::tuple(plan.read_count, plan.read_bytes());
    };
    return cost(reconstruct) < cost(modify) ? reconstruct : modify;
  }
  if (missing->column == layout.ParityColumn(share.line)) {
    return missing->writable ? Reconstruct(layout, share) : WritePlan{};
  }
  const std::size_t index = layout.DataIndex(share.line, missing->column);
  if (layout.Touched(share, index).empty()) return Modify(layout, share);
  if (layout.Untouched(share, index).empty()) return Reconstruct(layout, share);
  return Regenerate(layout, share, missing->column);
}

}  // namespace labrack::volume
