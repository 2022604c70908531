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

Result<void> Concat::Grow(std::span<const Component> components) {
  const Bytes block_size = geometry().block_size;
  Result<void> fit = CheckParts("concat", components, devices(), block_size);
  if (!fit) return fit;
  for (const Component& component : components) {
    const Bytes whole = component.data_size - component.data_size % block_size;
    AppendRow({{component.device, component.data_at}}, whole, whole);
  }
  AppendDevices(components);
  return {};
}

}  // namespace labrack::volume
