#include "storage/volume/stripe.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/units.h"

namespace labrack::volume {

Result<std::unique_ptr<Stripe>> Stripe::Create(runtime::Reactor& reactor,
                                               std::span<const Component> components,
                                               Bytes interlace, block::FlushMode flush_mode) {
  if (components.size() < 2) {
    return Fail(Errc::kInvalidArgument, "stripe",
                "has " + std::to_string(components.size()) +
                    " component(s), too few; it needs at least two");
  }
  const Bytes block_size = components[0].device->geometry().block_size;
  if (interlace == Bytes(0) || !IsAligned(interlace, block_size)) {
    return Fail(Errc::kInvalidArgument, "stripe",
                "an interlace of " + FormatBytesExact(interlace) +
                    " is no multiple of the sector; with these components it must be one of " +
                    FormatBytesExact(block_size));
  }
  std::unique_ptr<Stripe> stripe(new Stripe(reactor, block_size, interlace, flush_mode));
  const Result<void> grown = stripe->Grow(components);
  if (!grown) return std::unexpected(grown.error());
  return stripe;
}

Result<void> Stripe::CheckGrow(std::span<const Component> components) const {
  Result<void> fit = CheckParts("stripe", components, devices(), geometry().block_size);
  if (!fit) return fit;
  for (const Component& component : components) {
    if (component.data_size >= interlace_) continue;
    return Fail(Errc::kInvalidArgument, "stripe",
                "a component has " + FormatBytesExact(component.data_size) +
                    " for data, less than one interlace of " + FormatBytesExact(interlace_));
  }
  return {};
}

void Stripe::AppendRows(std::span<const Component> components) {
  // `done`: of every component that is long enough, this much is dealt out.
  for (Bytes done;;) {
    Bytes end;
    std::vector<Row::Column> columns;
    for (const Component& component : components) {
      const Bytes whole = component.data_size - component.data_size % interlace_;
      if (whole <= done) continue;
      end = columns.empty() ? whole : std::min(end, whole);
      columns.push_back({component.device, component.data_at + done});
    }
    if (columns.empty()) break;
    AppendRow(std::move(columns), end - done, interlace_);
    done = end;
  }
}

}  // namespace labrack::volume
