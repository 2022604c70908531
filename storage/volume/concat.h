// Concat: components one after the other, of any sizes. Grows at its end; what it holds stays where
// it is.
//
//   | A ............ | B ...... | C ................ | (D, appended later)
//
// Lives on one reactor; not thread-safe.
#pragma once

#include <memory>
#include <span>

#include "storage/volume/row_volume.h"

namespace labrack::volume {

class Concat final : public RowVolume {
 public:
  // Errors: kInvalidArgument (no component, mixed sector sizes, one device twice, no room).
  static Result<std::unique_ptr<Concat>> Create(runtime::Reactor& reactor,
                                                std::span<const Component> components,
                                                block::FlushMode flush_mode);
  Result<void> CheckGrow(std::span<const Component> components) const override;

 private:
  using RowVolume::RowVolume;
  void AppendRows(std::span<const Component> components) override;
};

}  // namespace labrack::volume
