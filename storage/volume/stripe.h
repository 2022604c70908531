// Stripe (RAID-0): segments of one interlace, dealt to the components in turn.
//
//   segment:   0  1  2  3  4  5  6 ...        volume offset = segment * interlace
//   component: A  B  C  A  B  C  A ...        at segment / 3 * interlace
//
// Components of different sizes become several stripes, one after the other: the first over all of
// them up to the end of the smallest, the next over what is left, and so on. Grow appends new
// components as stripes of their own; nothing that is held moves.
// Lives on one reactor; not thread-safe.
#pragma once

#include <memory>
#include <span>

#include "storage/volume/row_volume.h"

namespace labrack::volume {

class Stripe final : public RowVolume {
 public:
  // Errors: kInvalidArgument (fewer than two components, mixed sector sizes, one device twice, an
  // interlace that is no multiple of the sector, a component smaller than the interlace).
  static Result<std::unique_ptr<Stripe>> Create(runtime::Reactor& reactor,
                                                std::span<const Component> components,
                                                Bytes interlace, block::FlushMode flush_mode);
  // By one component or more.
  Result<void> CheckGrow(std::span<const Component> components) const override;

  Bytes interlace() const { return interlace_; }

 private:
  Stripe(runtime::Reactor& reactor, Bytes block_size, Bytes interlace, block::FlushMode flush_mode)
      : RowVolume(reactor, block_size, flush_mode), interlace_(interlace) {}

  void AppendRows(std::span<const Component> components) override;

  Bytes interlace_;
};

}  // namespace labrack::volume
