#include "storage/volume/raid5_buffers.h"

#include <algorithm>

#include "storage/base/check.h"

namespace labrack::volume {
namespace {

std::size_t Pages(Bytes length) {
  constexpr std::size_t kPage = AlignedBuffer::kAlignment;
  return (length.size() + kPage - 1) / kPage * kPage;
}

std::size_t WorkCount(std::size_t columns, Bytes interlace) {
  const std::uint64_t fit = LineWorkPool::kMemoryMax / LineWork::Size(columns, interlace);
  return std::clamp<std::size_t>(fit, LineWorkPool::kWorksMin, LineWorkPool::kWorksMax);
}

}  // namespace

Bytes LineWork::Size(std::size_t columns, Bytes interlace) {
  return Bytes(columns * (AlignedBuffer::kAlignment + 2 * Pages(interlace)));
}

LineWork::LineWork(std::size_t columns, Bytes block, Bytes interlace)
    : block_(block.size()),
      interlace_(Pages(interlace)),
      stride_(AlignedBuffer::kAlignment + interlace_),
      old_at_(columns * stride_),
      memory_(Size(columns, interlace)) {
  LABRACK_CHECK(block_ <= AlignedBuffer::kAlignment);
}

LineWorkPool::LineWorkPool(runtime::Reactor& reactor, std::size_t columns, Bytes block,
                           Bytes interlace)
    : columns_(columns),
      block_(block),
      interlace_(interlace),
      free_(reactor, WorkCount(columns, interlace)) {}

LineWork& LineWorkPool::Get() {
  if (idle_.empty()) {
    all_.push_back(std::make_unique<LineWork>(columns_, block_, interlace_));
    return *all_.back();
  }
  LineWork& work = *idle_.back();
  idle_.pop_back();
  return work;
}

void LineWorkPool::Put(LineWork& work) {
  idle_.push_back(&work);
  free_.Release();
}

}  // namespace labrack::volume
