#include "storage/volume/concat.h"

namespace labrack::volume {

Result<std::unique_ptr<Concat>> Concat::Create(runtime::Reactor& reactor,
                                               std::span<const Component> components,
                                               block::FlushMode flush_mode) {
  if (components.empty()) {
    return Fail(Errc::kInvalidArgument, "concat", "has no component; it needs at least one");
  }
  const Bytes block_size = components[0].device->geometry().block_size;
  std::unique_ptr<Concat> concat(new Concat(reactor, block_size, flush_mode));
  const Result<void> grown = concat->Grow(components);
  if (!grown) return std::unexpected(grown.error());
  return concat;
}

Result<void> Concat::CheckGrow(std::span<const Component> components) const {
  return CheckParts("concat", components, devices(), geometry().block_size);
}

void Concat::AppendRows(std::span<const Component> components) {
  for (const Component& component : components) {
    const Bytes whole = component.data_size - component.data_size % geometry().block_size;
    AppendRow({{component.device, component.data_at}}, whole, whole);
  }
}

}  // namespace labrack::volume
