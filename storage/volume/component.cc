#include "storage/volume/component.h"

#include <algorithm>
#include <string>
#include <vector>

#include "storage/base/units.h"

namespace labrack::volume {

std::string_view StateName(State state) {
  switch (state) {
    case State::kOkay:
      return "okay";
    case State::kResyncing:
      return "resyncing";
    case State::kOffline:
      return "offline";
    case State::kFailed:
      return "failed";
  }
  return "unknown";
}

Result<Component> PlaceComponent(block::BlockDevice& device, Bytes head, Bytes log_size,
                                 Bytes unit) {
  const block::Geometry geometry = device.geometry();
  const Bytes before = head + log_size;
  if (geometry.size < before + unit) {
    return Fail(Errc::kInvalidArgument,
                "is too small: it holds " + FormatBytesExact(geometry.size) + "; it needs " +
                    FormatBytesExact(before + unit) + " (" + FormatBytesExact(head) +
                    " for the state database, " + FormatBytesExact(log_size) +
                    " for the volume's log, " + FormatBytesExact(unit) + " of data)");
  }
  const Bytes left = geometry.size - before;
  return Component{.device = &device,
                   .data_at = Offset(before.count()),
                   .data_size = left - left % unit,
                   .log_at = Offset(head.count()),
                   .log_size = log_size};
}

Result<void> CheckParts(std::string_view kind, std::span<const Component> components,
                        std::span<block::BlockDevice* const> present, Bytes block_size) {
  std::vector<block::BlockDevice*> seen(present.begin(), present.end());
  for (const Component& component : components) {
    const Bytes own = component.device->geometry().block_size;
    if (block_size == Bytes(0)) block_size = own;
    if (own != block_size) {
      return Fail(Errc::kInvalidArgument, std::string(kind),
                  "mixes sector sizes: component " + std::to_string(seen.size()) + " has " +
                      FormatBytesExact(own) + ", those before it " + FormatBytesExact(block_size) +
                      "; take components of one sector size");
    }
    if (component.data_size < block_size || !IsAligned(component.data_at, block_size)) {
      return Fail(Errc::kInvalidArgument, std::string(kind),
                  "component " + std::to_string(seen.size()) + " has " +
                      FormatBytesExact(component.data_size) + " for data from byte " +
                      std::to_string(component.data_at.value()) +
                      "; it must begin at a sector and hold at least one");
    }
    if (std::ranges::find(seen, component.device) != seen.end()) {
      return Fail(Errc::kInvalidArgument, std::string(kind),
                  "component " + std::to_string(seen.size()) +
                      " is a device that is in it already; take each device once");
    }
    seen.push_back(component.device);
  }
  return {};
}

Result<void> FlushRefused(std::string_view kind) {
  return Fail(Errc::kUnsupported, std::string(kind),
              "does not support FLUSH, as it was made; flush mode pass does");
}

}  // namespace labrack::volume
